"""What the compiler's passes share: the model being compiled and the arrays made so far.

A pass is a function of one `Compilation`: it reads the spec and the fields of earlier passes, adds
fields of its own, and reports faults to `problems` with the place of the element. `passes.py` lists
the passes in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxsim.assets.source.resource import Resources
from jaxsim.compile.expand.known_inertia import KnownInertia
from jaxsim.compile.geometry.pose import Pose
from jaxsim.compile.identity import Identity, identities
from jaxsim.compile.products import Products
from jaxsim.compile.settings import Settings
from jaxsim.errors import NOWHERE, Place, Problems
from jaxsim.model.derived import LengthRanges
from jaxsim.spec import Spec, SpecElement
from jaxsim.spec.origin import Origin
from jaxsim.words import remedy


@dataclass(eq=False)
class Growth:
    """What a model and all models attached to it share while elements are put into them.

    Attributes:
      models: attached models as they are written, by path; None for one that is wrong.
      elements: how many elements have been put in.
    """

    models: dict[str, Spec | None] = field(default_factory=dict)
    elements: int = 0


@dataclass(eq=False)
class Compilation(Products):
    """The state of one compilation: fields, objects, products (products.py), and memory.

    `fields` holds arrays and sizes under MuJoCo's mjModel names, in float64, int32 and bool; `opt`
    and `stat` likewise. For each kind of object ("body", "joint", "geom", ...), in order of ids,
    `elements` has what it was written as, `names` its name or "", and `ids` the way back from a
    name to the id.

    What is remembered from one element to the next:

      frames: poses of frames in their bodies, found so far.
      resources: files, by the path of the model that they belong to and its files in memory.
      written_out: file of each skin whose numbers have been written on its element.
      copied: plain copies of attributes: elements in order of rows, and the column (columns.py).
      known_inertia: of all bodies of the tree as it was written, by id; None if nobody has asked.
      growth, depth: of models that attach models; how deep inside others this one is.
      flexcomp_sections: the section for each kind of element that flexcomps are expanded to.
      twist_places: the last twist body that was put after a body of the world (rod_twist.py).
    """

    spec: Spec
    fields: dict[str, Any] = field(default_factory=dict)
    opt: dict[str, Any] = field(default_factory=dict)
    stat: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, dict[str, int]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    elements: dict[str, list[Any]] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    frames: dict[SpecElement, Pose] = field(default_factory=dict)
    resources: dict[tuple[str, int], Resources] = field(default_factory=dict)
    written_out: dict[SpecElement, str] = field(default_factory=dict)
    copied: list[tuple[list[SpecElement], Any]] = field(default_factory=list)
    known_inertia: list[KnownInertia] | None = None
    growth: Growth = field(default_factory=Growth)
    depth: int = 0
    flexcomp_sections: dict[str, SpecElement] = field(default_factory=dict)
    twist_places: dict[SpecElement, SpecElement] = field(default_factory=dict)
    _foreign: dict[Origin, Settings] = field(default_factory=dict)

    def settings_of(self, element: SpecElement | None) -> Settings:
        """Return the compiler settings an element was written for: the model's, or those it came
        with."""
        origin = element.origin if element is not None else None
        if origin is None:
            return self.settings
        if origin not in self._foreign:
            self._foreign[origin] = Settings.of(origin.compiler)
        return self._foreign[origin]

    def use_radians(self) -> None:
        """From here on the angles of the spec are in radians, whatever model they came from."""
        self.settings = replace(self.settings, degree=False)
        self._foreign = {o: replace(s, degree=False) for o, s in self._foreign.items()}

    def fault(self, element: SpecElement | None, message: str) -> None:
        """Report a fault of an element; the message says what is wrong and what would be right."""
        label = element.label if element is not None else "<mujoco>"
        self.problems.add(element.place if element is not None else None, f"{label}: {message}")

    def register(
        self, kind: str, elements: Sequence[SpecElement | None], names: Sequence[str | None]
    ) -> None:
        """Give the objects of one kind their ids, in the order of the list; names must differ."""
        self.elements[kind] = list(elements)
        self.names[kind] = [name or "" for name in names]
        ids = self.ids[kind] = {}
        for i, (element, name) in enumerate(zip(elements, names, strict=True)):
            if not name:
                continue
            if name in ids:
                first = self.elements[kind][ids[name]]
                where = f" (first at {first.place})" if first is not None else ""
                self.fault(
                    element, f"a {kind} named '{name}' exists already{where}; rename one of them"
                )
            ids.setdefault(name, i)

    def find(self, kind: str, name: str | None, element: SpecElement, attr: str) -> int:
        """Return the id of a named object, or -1; reports an unknown name with the nearest known
        one."""
        known = self.ids.get(kind, {})
        if name in known:
            return known[name]
        end = remedy(str(name), known)
        self.fault(element, f"{attr}='{name}' names no {kind} of this model{end}")
        return -1

    def find_own(self, kind: str, element: SpecElement, attr: str) -> int:
        """Return the id of the object that `attr` of the element names, -1 if the attribute is
        absent."""
        name = element.get(attr)
        return -1 if name is None else self.find(kind, name, element, attr)


@dataclass(frozen=True)
class Compiled:
    """The result of a compilation: arrays under MuJoCo's names, and names and places by id.

    `length_ranges` are ranges of actuator lengths that are not in `fields` yet: it takes a
    simulation to find them (reference/length_range.py). `plugins` names the plugin of each
    instance. `identities` tells objects from one compilation of a spec in the next.
    """

    fields: MappingProxyType[str, Any]
    opt: MappingProxyType[str, Any]
    stat: MappingProxyType[str, Any]
    names: MappingProxyType[str, tuple[str, ...]]
    places: MappingProxyType[str, tuple[Place, ...]]
    identities: MappingProxyType[str, tuple[Identity, ...]]
    length_ranges: LengthRanges | None = None
    plugins: tuple[str, ...] = ()

    @classmethod
    def of(cls, c: Compilation) -> Compiled:
        """Freeze what a compilation made; the arrays become read-only."""
        for table in (c.fields, c.opt, c.stat):
            for value in table.values():
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
        return cls(
            fields=MappingProxyType(dict(c.fields)),
            opt=MappingProxyType(dict(c.opt)),
            stat=MappingProxyType(dict(c.stat)),
            names=MappingProxyType({kind: tuple(names) for kind, names in c.names.items()}),
            places=MappingProxyType(
                {
                    kind: tuple(e.place if e is not None else NOWHERE for e in elements)
                    for kind, elements in c.elements.items()
                }
            ),
            identities=MappingProxyType(identities(c.elements, c.names)),
            length_ranges=c.length_ranges,
            plugins=tuple(instance.plugin.name for instance in c.instances.made),
        )
