"""The selected object: its name, its body and some of its properties, shown in the panel."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsim.escape import markdown
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.deformable import Deformable
from jaxsim.view.browser.draw.part import Part


class Selected:
    """The object that the user has clicked.

    Attributes:
      part: the part; None: nothing was selected yet.
      soft: the flex or skin, if it was selected after the part.
      world: index of its world.
    """

    def __init__(self, server: Any, m: Model):
        self._m = m
        self.part: Part | None = None
        self.soft: Deformable | None = None
        self.world = 0
        self._text = server.gui.add_markdown("Click on something to see what it is.", order=50)
        self.then: list[Callable[[], None]] = []

    def watch(self, handle: Any, part: Part, world: int) -> None:
        """Select a part when it is clicked.

        Args:
          handle: its viser handle.
          part: the part.
          world: index of the world of its first instance.
        """

        @handle.on_click
        def _(event: Any) -> None:
            self.part, self.soft, self.world = part, None, world + (event.instance_index or 0)
            self._text.content = describe_part(self._m, part, self.world)
            for act in self.then:
                act()

    def watch_soft(self, handle: Any, soft: Deformable) -> None:
        """Select a flex or skin of the first world when it is clicked."""

        @handle.on_click
        def _(_: Any) -> None:
            self.part, self.soft, self.world = None, soft, 0
            self._text.content = describe_deformable(self._m, soft)
            for act in self.then:
                act()


def describe_part(m: Model, part: Part, world: int) -> str:
    """Return a description of a part, in Markdown."""
    name, body = markdown(part.name), markdown(name_of(m, "body", part.body))
    rows = [
        f"**{name}** ({part.kind} {part.id}, {part.type.name.lower()}, group {part.group})",
        f"body **{body}** ({part.body}), {float(np.asarray(m.body_mass)[part.body]):.4g} kg",
    ]
    joints = np.flatnonzero(m.jnt_bodyid == part.body)
    if len(joints):
        listed = ", ".join(markdown(name_of(m, "joint", int(j))) for j in joints)
        rows.append(f"joints: {listed}")
    if world:
        rows.append(f"world {world}")
    return "  \n".join(rows)


def describe_deformable(m: Model, soft: Deformable) -> str:
    """Return a description of a flex or skin, in Markdown."""
    if soft.kind == "skin":
        number, bones = int(m.skin_vertnum[soft.id]), int(m.skin_bonenum[soft.id])
        return (
            f"**{markdown(soft.name)}** (skin {soft.id}, group {soft.group})  \n"
            f"{number} vertices, {bones} bones"
        )
    number, elements = int(m.flex_vertnum[soft.id]), int(m.flex_elemnum[soft.id])
    return (
        f"**{markdown(soft.name)}** (flex {soft.id}, {int(m.flex_dim[soft.id])} dimensions, "
        f"group {soft.group})  \n{number} vertices, {elements} elements"
    )
