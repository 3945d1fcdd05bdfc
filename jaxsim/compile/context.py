"""State shared by the compiler's passes: the model being compiled and the arrays made so far.

A pass is a function of one `Compilation`: it reads the spec and the fields of earlier passes, adds
fields of its own, and reports faults to `problems` with the location of the element. `passes.py`
lists the passes in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxsim.assets.source.resource import Resources
from jaxsim.compile.expand.known_inertia import KnownInertia
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.identity import Identity, identities
from jaxsim.compile.products import Products
from jaxsim.compile.settings import Settings
from jaxsim.errors import UNKNOWN_LOCATION, Problems, SourceLocation
from jaxsim.model.derived import DAMPING_RATIO, LengthRanges
from jaxsim.spec import Spec, SpecElement
from jaxsim.spec.origin import Origin
from jaxsim.spelling import remedy


@dataclass(eq=False)
class ExpansionState:
    """Attached models and number of added elements, shared with the models that are attached.

    Attributes:
      models: attached models as they are written, by path; None for an invalid one.
      elements: number of elements added so far.
    """

    models: dict[str, Spec | None] = field(default_factory=dict)
    elements: int = 0


@dataclass(eq=False)
class Compilation(Products):
    """The state of one compilation: fields, objects, products (products.py), and caches.

    `fields` holds arrays and sizes under MuJoCo's mjModel names, in float64, int32 and bool; `opt`
    and `stat` hold options and statistics. For each kind of object ("body", "joint", "geom", ...),
    in order of ids, `elements` holds its source elements, `names` its names or "", and `ids` maps
    names to ids.

    Caches and state that passes share:

      frames: poses of frames in their bodies, computed so far.
      resources: files, by the path of the model that they belong to and its files in memory.
      written_out: file of each skin whose values have been written to its element.
      copied: (elements, column) of attributes that were copied unchanged to a field (columns.py),
        for write/write_back.py; the elements are in the order of the field's rows.
      known_inertia: inertias of all bodies of the original tree, by id; None if not computed.
      expansion, depth: state shared with attached models; nesting depth of this one.
      flexcomp_sections: the section for each kind of element that flexcomps are expanded to.
      last_twist_body: for each body of the world, the last body that was added after it for the
        twist of a rod (compile/flex/rod_twist.py).
      _attached_settings: compiler settings of attached models, by their origin.
    """

    spec: Spec
    fields: dict[str, Any] = field(default_factory=dict)
    opt: dict[str, Any] = field(default_factory=dict)
    stat: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, dict[str, int]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    elements: dict[str, list[Any]] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    frames: dict[SpecElement, FramePose] = field(default_factory=dict)
    resources: dict[tuple[str, int], Resources] = field(default_factory=dict)
    written_out: dict[SpecElement, str] = field(default_factory=dict)
    copied: list[tuple[list[SpecElement], Any]] = field(default_factory=list)
    known_inertia: list[KnownInertia] | None = None
    expansion: ExpansionState = field(default_factory=ExpansionState)
    depth: int = 0
    flexcomp_sections: dict[str, SpecElement] = field(default_factory=dict)
    last_twist_body: dict[SpecElement, SpecElement] = field(default_factory=dict)
    _attached_settings: dict[Origin, Settings] = field(default_factory=dict)

    def settings_of(self, element: SpecElement | None) -> Settings:
        """Return the compiler settings of an element: the model's, or those of the model it was
        attached from."""
        origin = element.origin if element is not None else None
        if origin is None:
            return self.settings
        if origin not in self._attached_settings:
            self._attached_settings[origin] = Settings.of(origin.compiler)
        return self._attached_settings[origin]

    def use_radians(self) -> None:
        """Switch the angles of the spec to radians, for all models that it came from."""
        self.settings = replace(self.settings, degree=False)
        self._attached_settings = {
            o: replace(s, degree=False) for o, s in self._attached_settings.items()
        }

    def fault(self, element: SpecElement | None, message: str) -> None:
        """Report a fault of an element; the message gives the fault and the remedy."""
        label = element.label if element is not None else "<mujoco>"
        self.problems.add(element.place if element is not None else None, f"{label}: {message}")

    def register(
        self, kind: str, elements: Sequence[SpecElement | None], names: Sequence[str | None]
    ) -> None:
        """Assign ids to the objects of one kind, in the order of the list; names must be unique."""
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

    def resolve_name(self, kind: str, name: str | None, element: SpecElement, attr: str) -> int:
        """Return the id of a named object, or -1; report an unknown name with the nearest known
        one."""
        known = self.ids.get(kind, {})
        if name in known:
            return known[name]
        end = remedy(str(name), known)
        self.fault(element, f"{attr}='{name}' names no {kind} of this model{end}")
        return -1

    def resolve_attribute(self, kind: str, element: SpecElement, attr: str) -> int:
        """Return the id of the object that `attr` of the element names, -1 if the attribute is
        absent."""
        name = element.get(attr)
        return -1 if name is None else self.resolve_name(kind, name, element, attr)


@dataclass(frozen=True)
class Compiled:
    """The result of a compilation: arrays under MuJoCo's names, and names and source locations by
    id.

    `actuator_origin` has what a file gives for the parameters of each actuator that cannot be
    inferred from them (identify/targets/actuators.py); () if there is no such actuator.
    `length_ranges` are ranges of actuator lengths that are not in `fields` yet, because they need a
    simulation (reference/length_range.py). `plugins` names the plugin of each instance.
    `identities` match objects between consecutive compilations of a spec.
    """

    fields: MappingProxyType[str, Any]
    opt: MappingProxyType[str, Any]
    stat: MappingProxyType[str, Any]
    names: MappingProxyType[str, tuple[str, ...]]
    locations: MappingProxyType[str, tuple[SourceLocation, ...]]
    identities: MappingProxyType[str, tuple[Identity, ...]]
    length_ranges: LengthRanges | None = None
    plugins: tuple[str, ...] = ()
    actuator_origin: tuple[tuple, ...] = ()

    @classmethod
    def of(cls, c: Compilation) -> Compiled:
        """Return the frozen result of a compilation; the arrays become read-only."""
        for table in (c.fields, c.opt, c.stat):
            for value in table.values():
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
        return cls(
            fields=MappingProxyType(dict(c.fields)),
            opt=MappingProxyType(dict(c.opt)),
            stat=MappingProxyType(dict(c.stat)),
            names=MappingProxyType({kind: tuple(names) for kind, names in c.names.items()}),
            locations=MappingProxyType(
                {
                    kind: tuple(e.place if e is not None else UNKNOWN_LOCATION for e in elements)
                    for kind, elements in c.elements.items()
                }
            ),
            identities=MappingProxyType(identities(c.elements, c.names)),
            length_ranges=c.length_ranges,
            plugins=tuple(instance.plugin.name for instance in c.instances.made),
            actuator_origin=_actuator_origin(c),
        )


def _actuator_origin(c: Compilation) -> tuple[tuple, ...]:
    """Return what the file gives for each actuator; () if no actuator needs it."""
    origin = tuple(
        DAMPING_RATIO if i in c.damping_ratios else own for i, own in enumerate(c.motors)
    )
    return origin if any(origin) else ()
