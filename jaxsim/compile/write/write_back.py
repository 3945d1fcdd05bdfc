"""Write changed values of a compiled model back to its Spec, as MuJoCo's `mj_saveLastXML` does.

All values that an element can express are written to it; the result is compiled and its values are
checked before it is returned. Derived values, such as `body_subtreemass`, cannot be written: they
are accepted if they follow from the others, and rejected otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxsim.compile.columns import Column
from jaxsim.compile.context import Compilation
from jaxsim.compile.run import run_passes
from jaxsim.compile.write.appearance import (
    CAMERA_FIELDS,
    MATERIAL_FIELDS,
    SKIN_FIELDS,
    write_cameras,
    write_materials,
    write_skins,
)
from jaxsim.compile.write.changes import Changes, differ
from jaxsim.compile.write.flatten import flatten_spec
from jaxsim.compile.write.frames import write_frames, write_fromto
from jaxsim.compile.write.model import (
    KEY_FIELDS,
    write_custom,
    write_keys,
    write_options,
    write_statistic,
)
from jaxsim.compile.write.parts import (
    ACTUATOR_FIELDS,
    COPIED_FIELDS,
    FLEX_FIELDS,
    GEOM_FIELDS,
    set_if_there,
    write_actuators,
    write_copies,
    write_equalities,
    write_flexes,
    write_geoms,
    write_inertia,
    write_joints,
    write_poses,
    write_tendons,
)
from jaxsim.compile.write.radians import write_radians
from jaxsim.compile.write.unwritable_fields import PARTLY, UNWRITTEN
from jaxsim.spec import Spec, SpecElement

_CompiledTables = Mapping[str, Any]

# Number of rounds in which derived values that must not change are written too.
_MAX_ROUNDS = 3

# Relative tolerance of derived values, by the precision of the given ones.
_DERIVED_TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}
# Tolerance of the pose of a mesh geom, in m or of quaternion components, by precision.
_FITTED_TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-6}
# Partly derived values, which follow their sources unless they are given.
_MEASURED_FIELDS = {"eq_data", "geom_fluid", "cam_fovy", "cam_intrinsic"}
# Fields that are normalized by the compiler.
_UNIT_FIELDS = ("quat", "axis", "dir", "qpos", "qpos0", "qpos_spring", "eq_data", "vertweight")

# Fields that some elements cannot express: the kind, and which of its elements.
_IMPLIED_FIELDS: dict[str, tuple[str, Callable[[SpecElement], bool]]] = {
    "geom_size": ("geom", lambda e: bool(e.get("mesh") or e.get("hfield"))),
    "tendon_width": ("tendon", lambda e: e.tag == "fixed"),
}

# Angles of joints, and positions of elements that may be in a frame.
_ANGLES = ("jnt_range", "jnt_springyield", "qpos0", "qpos_spring")
_POSITION_FIELDS = tuple(
    f"{kind}_{what}" for kind in ("body", "geom", "site", "cam") for what in ("pos", "quat")
)
_POSITION_FIELDS += ("jnt_pos", "jnt_axis", "light_pos", "light_dir", "geom_size", "site_size")


def flatten(spec: Spec) -> Spec:
    """Return the model as compiled, with all expansions written and no other changes.

    Args:
      spec: the model, which is not changed.

    Raises:
      ModelError: the model cannot be compiled, or a part of it was attached from a model whose
        compiler settings cannot be expressed in one file with those of this model.
    """
    return spec_from_tables(spec, {})


def spec_from_tables(
    spec: Spec,
    fields: _CompiledTables,
    opt: _CompiledTables | None = None,
    stat: _CompiledTables | None = None,
) -> Spec:
    """Return a Spec that compiles to these values.

    Args:
      spec: the model that the values belong to; it is not changed.
      fields: fields under MuJoCo's names; fields that are absent, or equal to the compiled ones in
        their own precision, are not written.
      opt: options, treated as fields.
      stat: statistics, treated as fields.

    Returns:
      The flattened model, with the changed values written to its elements.

    Raises:
      ModelError: the model, or the changed model, cannot be compiled.
      ValueError: a field has another size than that of the model, or values that MJCF cannot
        express.
    """
    c = run_passes(spec)
    changes = Changes(c.fields, fields)
    options, statistics = Changes(c.opt, opt or {}), Changes(c.stat, stat or {})
    wanted = {
        name: changes.new[name] for name in _written_fields(c) - (_MEASURED_FIELDS - changes.names)
    }
    flat = flatten_spec(c)
    write_options(options, flat)
    write_statistic(statistics, flat)
    todo = changes
    for rest in reversed(range(_MAX_ROUNDS)):
        _write_changes(c, todo)
        again = run_passes(flat)
        if _resized_fields(wanted, again.fields):
            break
        todo = Changes(again.fields, wanted)
        if not (todo and rest):
            break
        # values that the compiler has derived from the new ones are written too
        c, flat = again, flatten_spec(again)
    wrong = _missing_numbers(c, wanted | changes.changed_fields(), changes, again.fields)
    wrong += _missing_numbers(c, options.changed_fields(), options, again.opt)
    wrong += _missing_numbers(c, statistics.changed_fields(), statistics, again.stat)
    if wrong:
        raise ValueError("MJCF cannot express these values: " + "; ".join(wrong))
    return flat


def _write_changes(c: Compilation, changes: Changes) -> None:
    """Write all changes to the elements of a compilation whose spec is flattened."""
    if changes.names.intersection(_ANGLES):
        write_radians(c)
    if changes.names.intersection(_POSITION_FIELDS):
        write_fromto(c.spec)
        write_frames(c)
    _write_springs(c, changes)
    _write_columns(c, changes)
    for writer in _WRITERS:
        if changes.names.intersection(writer.fields):
            writer.write(c, changes)


class _Writer(NamedTuple):
    """A function that writes changes of certain fields to the elements of the model."""

    fields: tuple[str, ...]
    write: Callable[[Compilation, Changes], None]


_WRITERS = (
    _Writer(_POSITION_FIELDS, write_poses),
    _Writer(("body_mass", "body_ipos", "body_iquat", "body_inertia"), write_inertia),
    _Writer(_ANGLES, write_joints),
    _Writer(("tendon_lengthspring", "wrap_prm"), write_tendons),
    _Writer(ACTUATOR_FIELDS, write_actuators),
    _Writer(("eq_data",), write_equalities),
    _Writer(("numeric_data", "tuple_objprm"), write_custom),
    _Writer(KEY_FIELDS, write_keys),
    _Writer(COPIED_FIELDS, write_copies),
    _Writer(GEOM_FIELDS, write_geoms),
    _Writer(CAMERA_FIELDS, write_cameras),
    _Writer(MATERIAL_FIELDS, write_materials),
    _Writer(SKIN_FIELDS, write_skins),
    _Writer(FLEX_FIELDS, write_flexes),
)

# Fields of the second and third polynomial coefficient, by the field of the first.
_HIGHER = {
    f"{kind}_{what}": f"{kind}_{what}poly"
    for kind, what in (
        ("jnt", "stiffness"),
        ("dof", "damping"),
        ("tendon", "stiffness"),
        ("tendon", "damping"),
        ("actuator", "damping"),
    )
}


def _write_springs(c: Compilation, changes: Changes) -> None:
    """Write stiffness and damping, if they came from `springdamper`."""
    new = changes.new
    rows = set(changes.rows("jnt_stiffness", "jnt_stiffnesspoly"))
    rows |= {int(new["dof_jntid"][i]) for i in changes.rows("dof_damping", "dof_dampingpoly")}
    for i in rows:
        joint = c.elements["joint"][i]
        if np.any(joint.get("springdamper")):
            dof = new["jnt_dofadr"][i]
            joint.set("springdamper", [0, 0])
            joint.set("stiffness", [new["jnt_stiffness"][i], *new["jnt_stiffnesspoly"][i]])
            joint.set("damping", [new["dof_damping"][dof], *new["dof_dampingpoly"][dof]])


def _write_columns(c: Compilation, changes: Changes) -> None:
    """Write values that are plain copies of attributes."""
    joints = {
        e: i
        for elements, column in c.copied
        if column.field == "jnt_solref"
        for i, e in enumerate(elements)
    }
    for elements, column in c.copied:
        assert isinstance(column, Column)
        higher = _HIGHER.get(column.field)
        for i in changes.rows(column.field, *([higher] if higher else [])):
            value = changes.new[column.field][i]
            if higher:
                value = np.concatenate([[value], changes.new[higher][i]])
            if column.keywords is not None:
                value = next(word for word, k in column.keywords.items() if k == value)
            elif column.dtype is bool:
                value = bool(value)
            element = elements[i]
            if element.spec is None and element in joints:  # it represents a <freejoint>
                element = _convert_freejoint(c.elements["joint"][joints[element]])
            elif element.spec is None:  # a part of a flex that is not written in the file
                c.elements["flex"][i].adopt(element)
            set_if_there(element, column.attr, value)


def _convert_freejoint(element: SpecElement) -> SpecElement:
    """Convert a `<freejoint>` to the equivalent `<joint>`, which inherits nothing from its
    class."""
    if element.tag != "joint":
        element.tag, element.row = "joint", element.holder.row.children["joint"]
        element.attrs["type"] = "free"
        for name in {name for layer in element.layers()[:-1] for name in layer.attrs}:
            default = element.row.attrs[name].default
            if name not in element.attrs and default is not None:
                element.set(name, default)
        if element.attrs.pop("align", "auto") != "auto":
            raise ValueError(f"{element.label} is aligned, which only a <freejoint> can be")
    return element


def _resized_fields(given: _CompiledTables, compiled: _CompiledTables) -> list[str]:
    """Return the fields whose size differs from the given one."""
    return [name for name, value in given.items() if np.size(compiled[name]) != np.size(value)]


def _missing_numbers(
    c: Compilation, given: _CompiledTables, changes: Changes, compiled: _CompiledTables
) -> list[str]:
    """Return the values that the written model does not reproduce."""
    wrong = []
    for name, value in sorted(given.items()):
        value = np.asarray(value)
        if name not in compiled or np.size(compiled[name]) != value.size:
            wrong.append(f"{name} has another size: the number of yielding objects has changed")
            continue
        want = np.asarray(changes.new[name])
        got = np.asarray(compiled[name]).reshape(want.shape)
        missed = differ(got, value)
        if missed.any() and want.dtype.kind == "f":
            missed &= ~_is_near(c, name, got, want, value.dtype, name in changes.names)
        if missed.any():
            rows = sorted(set(np.argwhere(missed)[:, 0].tolist()))[:5] if got.ndim else []
            place = f" (row {', '.join(map(str, rows))})" if rows else ""
            reason = UNWRITTEN.get(name) or PARTLY.get(name)
            wrong.append(name + place + (f": {reason}" if reason else ""))
    return wrong


def _is_near(
    c: Compilation, name: str, got: np.ndarray, want: np.ndarray, dtype: np.dtype, changed: bool
) -> np.ndarray:
    """Return where a value reproduces the wanted one: exactly, if it is written.

    Values that have not been `changed_fields` may follow from changed ones.
    """
    if name.endswith(_UNIT_FIELDS):
        eps = max(float(np.finfo(kind).eps) for kind in (dtype, got.dtype))
        near = np.isclose(got, want, rtol=4 * eps, atol=1e-16)
    elif name in _written_fields(c) or name in c.opt or name in c.stat:
        near = got == want
    else:
        near = np.isclose(got, want, rtol=_DERIVED_TOLERANCE.get(dtype, 0.0), atol=0)
    if name in ("geom_pos", "geom_quat", "geom_surfacevel"):
        # the frame of a mesh differs from that of its element, and values are converted between
        # them
        fitted = np.array([[e.get("mesh") is not None] for e in c.elements["geom"]])
        near |= fitted & np.isclose(got, want, rtol=0, atol=_FITTED_TOLERANCE.get(dtype, 0.0))
    if name in _IMPLIED_FIELDS and not changed:
        kind, unsaid = _IMPLIED_FIELDS[name]
        rows = np.array([unsaid(e) for e in c.elements[kind]], bool)
        near |= rows.reshape(-1, *[1] * (near.ndim - 1))
    return near


def _written_fields(c: Compilation) -> set[str]:
    """Return the fields that attributes can express."""
    names = {column.field for _, column in c.copied} | set(_HIGHER.values())
    return names.union(*(writer.fields for writer in _WRITERS)) & c.fields.keys()
