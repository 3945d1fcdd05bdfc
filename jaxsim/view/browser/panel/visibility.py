"""Visibility controls: marks, groups, transparency, and the cameras of the model."""

from typing import Any

from jaxsim.escape import unique
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.deformable import Deformable
from jaxsim.view.browser.draw.part import Part
from jaxsim.view.browser.draw.scene import BrowserScene

_MARK_KINDS = ("tendons", "contacts", "forces", "centers", "cameras")
_MARK_LABELS = {
    "contacts": "contact points",
    "forces": "contact forces",
    "centers": "centers of mass",
}
_FREE_CAMERA_LABEL = "free"


def add_sight(server: Any, m: Model, scene: BrowserScene, contacts: bool) -> None:
    """Add the visibility controls to the panel of a page, those of contacts only if there may be
    some."""
    gui = server.gui
    there = {"tendons": m.ntendon, "cameras": m.ncam, "contacts": contacts, "forces": contacts}
    with gui.add_folder("See", expand_by_default=False, order=40):
        for name in _MARK_KINDS:
            if there.get(name, True):
                _add_mark_switch(gui, scene, name)
        frames = gui.add_checkbox("frames of bodies", initial_value=False)
        frames.on_update(lambda _: scene.show_frames(frames.value))
        _add_environment_switches(gui, scene)
        opacity = gui.add_slider("opacity", min=0.1, max=1.0, step=0.1, initial_value=1.0)

        @opacity.on_update
        def _(_: Any) -> None:
            scene.opacity = opacity.value
            scene.draw()

        for kind in scene.groups:
            _groups(gui, scene, kind)
    if m.ncam:
        _cameras(gui, m, scene)


def _add_environment_switches(gui: Any, scene: BrowserScene) -> None:
    """Add switches for the model's lights and skybox."""
    if len(scene.lights.ids):
        lights = gui.add_checkbox("lights of the model", initial_value=scene.lights.shown)

        @lights.on_update
        def _(_: Any) -> None:
            scene.lights.shine(lights.value)
            scene.redraw()

    if scene.sky is not None:
        sky = gui.add_checkbox("sky", initial_value=True)

        @sky.on_update
        def _(_: Any) -> None:
            scene.sky.visible = sky.value


def _add_mark_switch(gui: Any, scene: BrowserScene, name: str) -> None:
    box = gui.add_checkbox(_MARK_LABELS.get(name, name), initial_value=name in scene.marks.shown)

    box.on_update(lambda _: scene.mark(name))


def _groups(gui: Any, scene: BrowserScene, kind: str) -> None:
    """Add a switch for each nonempty group."""
    parts: list[Part | Deformable] = [*scene.parts, *scene.softs.drawn]
    used = sorted({part.group for part in parts if part.kind == kind})
    many = "flexes" if kind == "flex" else f"{kind}s"
    for group in used:
        box = gui.add_checkbox(f"{many} of group {group}", initial_value=scene.groups[kind][group])

        def change(_: Any, group: int = group, box: Any = box) -> None:
            scene.groups[kind][group] = box.value
            scene.show_groups()

        box.on_update(change)


def _cameras(gui: Any, m: Model, scene: BrowserScene) -> None:
    """Add a selector of the camera that the page looks through."""
    names = unique((name_of(m, "camera", i) for i in range(m.ncam)), (_FREE_CAMERA_LABEL,))
    choice = gui.add_dropdown(
        "camera", (_FREE_CAMERA_LABEL, *names), initial_value=_FREE_CAMERA_LABEL, order=41
    )

    @choice.on_update
    def _(_: Any) -> None:
        scene.look_through(
            None if choice.value == _FREE_CAMERA_LABEL else names.index(choice.value)
        )
