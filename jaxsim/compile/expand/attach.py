"""Expand `<attach>`: read the attached models, and replace the elements by the attached parts.

An attached keyframe has the values of the model in which it was written; once the addresses of
joints are known, `attach_keys` scatters them over the whole model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.expand.classes import classes
from jaxsim.compile.expand.conflict import resolve_conflicts
from jaxsim.compile.expand.replicate import replicate_elements
from jaxsim.compile.flex.flexcomp import expand_flexcomp
from jaxsim.compile.options.bounds import MAX_ELEMENTS, count_elements
from jaxsim.compile.options.settings import read_settings
from jaxsim.compile.step import declare_pass
from jaxsim.enums import JointType
from jaxsim.errors import ModelError
from jaxsim.mjcf import find_model
from jaxsim.mjcf.element import AttrValue
from jaxsim.spec import Spec, SpecElement
from jaxsim.spec.attach import attach_copy, attach_model
from jaxsim.spec.element import Layout
from jaxsim.spec.references import definition
from jaxsim.spec.referrers import names_defined_before

_MAX_ATTACH_DEPTH = 32  # nesting limit of attached models


@declare_pass(needs="read_settings", gives="spec")
def attach(c: Compilation) -> None:
    """Replace every `<attach>` by the part of a model that it names, and expand every `<flexcomp>`.

    Both add flexes and constraints, whose ids are in document order.
    """
    for attach_element in [
        element for element in c.spec.walk() if element.tag in ("attach", "flexcomp")
    ]:
        if c.expansion.elements > MAX_ELEMENTS:
            break
        if attach_element.tag == "flexcomp":
            expand_flexcomp(c, attach_element)
        elif attach_element.own("model") is None:
            _attach_own(c, attach_element)
        else:
            _attach_other(c, attach_element)
    for section in c.spec.sections("asset"):
        section.children = [child for child in section.children if child.tag != "model"]


def _attach_own(c: Compilation, attach_element: SpecElement) -> None:
    """Replace an `<attach>` by a copy of a body or frame of the same model."""
    part = _find_attached_part(c, c.spec, attach_element)
    if part is None:
        return
    if part in attach_element.ancestors():
        c.fault(
            attach_element,
            "it would attach its own parent; attach a body or frame that is elsewhere",
        )
        return
    if definition(part) not in names_defined_before(c.spec, attach_element):
        c.fault(attach_element, f"{part.label} is defined after it; move it before the <attach>")
        return
    if count_elements(c, attach_element, sum(1 for _ in part.walk())):
        attach_copy(c.spec, attach_element, part, attach_element.get("prefix"))


def _attach_other(c: Compilation, attach_element: SpecElement) -> None:
    """Replace an `<attach>` by another model, or by a body or frame of it."""
    model = _model(c, attach_element)
    child = None if model is None else _read(c, model)
    if child is None:
        return
    named = attach_element.own("body") or attach_element.own("frame")
    part = _find_attached_part(c, child, attach_element) if named else None
    if not count_elements(c, attach_element, sum(1 for _ in (part or child).walk())):
        return
    if part is not None or not named:
        resolve_conflicts(c, attach_element, child)
        attach_model(c.spec, attach_element, child, part, attach_element.get("prefix"))


def _find_attached_part(
    c: Compilation, spec: Spec, attach_element: SpecElement
) -> SpecElement | None:
    """Return the body or frame of a model that an `<attach>` names; None, and a fault, if none."""
    for tag in ("body", "frame"):
        name = attach_element.own(tag)
        if name is not None:
            found = spec.find(tag, name)
            if found is None:
                c.fault(
                    attach_element,
                    f"{tag}='{name}' names no {tag} of the attached model; correct the name, or "
                    "attach the whole model without it",
                )
            return found
    c.fault(
        attach_element, "it names no body or frame of this model; add body='...' or model='...'"
    )
    return None


def _model(c: Compilation, attach_element: SpecElement) -> SpecElement | None:
    """Return the `<asset><model>` that an `<attach>` names."""
    name = attach_element.own("model")
    for element in c.spec.section("asset"):
        if element.tag == "model" and (element.name or _read_name(c, element)) == name:
            return element
    c.fault(
        attach_element,
        f"model='{name}' names no <model> of the assets; add <model name='{name}' file=.../>",
    )
    return None


def _read_name(c: Compilation, model: SpecElement) -> AttrValue | None:
    """Return the name that the file of a `<model>` gives its model."""
    child = _read_spec_once(c, model)
    return None if child is None else child.root.attrs.get("model")


def _read_spec_once(c: Compilation, model: SpecElement) -> Spec | None:
    """Return the model of a file before any expansion; each file is read once."""
    known = c.expansion.models
    path = c.spec.path_of(model.get("file"))
    if path not in known:
        try:
            known[path] = Spec.from_source(find_model(path, c.spec.files))
        except ModelError as error:
            for problem in error.problems:
                c.problems.add(problem.place, problem.message)
            known[path] = None
    return known[path]


def _read(c: Compilation, model: SpecElement) -> Spec | None:
    """Return a fresh Spec of an attached model, with its own `<attach>` and `<replicate>`
    expanded."""
    written = _read_spec_once(c, model)
    if written is None:
        return None
    if c.depth >= _MAX_ATTACH_DEPTH:
        c.fault(
            model, f"models attach each other more than {_MAX_ATTACH_DEPTH} deep; check for a cycle"
        )
        return None
    spec = written.copy()
    inner = Compilation(spec=spec, problems=c.problems, expansion=c.expansion, depth=c.depth + 1)
    for expand in (read_settings, classes, attach, replicate_elements):
        expand(inner)
    return spec


@dataclass(frozen=True)
class _Vector:
    """A vector of keyframes, such as qpos, and the elements that it has values of.

    Attributes:
      attr: attribute of `<key>`.
      elements: elements of the attached model, in the order of its values.
      sizes: number of values of each element.
      addresses: address of each element in the vector of the whole model.
      rest: vector of the whole model at rest: qpos0, poses of mocap bodies, otherwise 0.
    """

    attr: str
    elements: tuple[SpecElement, ...]
    sizes: list[int]
    addresses: dict[SpecElement, int]
    rest: np.ndarray


@declare_pass(needs="bodies joints align_free actuators", gives="spec")
def attach_keys(c: Compilation) -> None:
    """Rewrite the vectors of attached keyframes for the whole model.

    Elements outside of the attached model get their values at rest.
    """
    for key in c.spec.section("keyframe"):
        if key.layout is None:
            continue
        for vector in _vectors(c, key.layout):
            given = key.own(vector.attr)
            if given is not None:
                key.attrs[vector.attr] = _scatter_key_vector(c, key, vector, np.atleast_1d(given))


def _vectors(c: Compilation, layout: Layout) -> list[_Vector]:
    """Return the vectors of a keyframe of an attached model with the given elements."""
    f = c.fields
    kinds = [JointType[(joint.get("type") or "free").upper()] for joint in layout.joints]
    joints: dict[SpecElement, int] = {e: i for i, e in enumerate(c.elements["joint"])}
    qpos = {e: f["jnt_qposadr"][i] for e, i in joints.items()}
    qvel = {e: f["jnt_dofadr"][i] for e, i in joints.items()}
    controls = {e: f["actuator_ctrladr"][i] for i, e in enumerate(c.elements["actuator"])}
    number = {e: int(f["actuator_ctrlnum"][i]) for i, e in enumerate(c.elements["actuator"])}
    mocap = {e: f["body_mocapid"][i] for i, e in enumerate(c.elements["body"])}
    moved = np.argsort(f["body_mocapid"])[-f["nmocap"] :] if f["nmocap"] else np.zeros(0, int)
    rest_pos, rest_quat = f["body_pos"][moved].ravel(), f["body_quat"][moved].ravel()
    return [
        _Vector("qpos", layout.joints, [k.nq for k in kinds], qpos, f["qpos0"]),
        _Vector("qvel", layout.joints, [k.nv for k in kinds], qvel, np.zeros(f["nv"])),
        _Vector(
            "ctrl",
            layout.actuators,
            [number.get(e, 1) for e in layout.actuators],
            controls,
            np.zeros(f["nu"]),
        ),
        _Vector(
            "mpos",
            layout.mocaps,
            [3] * len(layout.mocaps),
            {e: 3 * i for e, i in mocap.items()},
            rest_pos,
        ),
        _Vector(
            "mquat",
            layout.mocaps,
            [4] * len(layout.mocaps),
            {e: 4 * i for e, i in mocap.items()},
            rest_quat,
        ),
    ]


def _scatter_key_vector(
    c: Compilation, key: SpecElement, vector: _Vector, given: np.ndarray
) -> np.ndarray:
    """Return the vector of the whole model; elements that were deleted are left out."""
    if len(given) != sum(vector.sizes):
        c.fault(key, f"{vector.attr} needs {sum(vector.sizes)} numbers, got {len(given)}")
    full, start = vector.rest.copy(), 0
    for element, size in zip(vector.elements, vector.sizes, strict=True):
        adr = vector.addresses.get(element)
        part = given[start : start + size]
        if adr is not None and len(part) == size:
            full[adr : adr + size] = part
        start += size
    return full
