"""Describe the state of a world: the part of `describe` that reads a Data.

Lists show only their first or largest entries, so that the text is about a page long for any model.
Fields that the Data does not carry are left out.
"""

from typing import Any

import jax
import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.data import Data
from jaxsim.model.describe.lines import (
    dof_labels,
    format_number,
    format_numbers,
    name_of,
    truncate_lines,
)
from jaxsim.model.describe.warnings import warning_texts
from jaxsim.model.model import Model
from jaxsim.model.warning import warning_counts

_FORCE_NAMES = (
    "qfrc_applied qfrc_actuator qfrc_passive qfrc_bias qfrc_smooth qfrc_constraint qfrc_inverse "
    "qacc_smooth qacc"
).split()


def describe_state(m: Model, d: Data, world: int = 0) -> str:
    """Return a description of one world of a Data, and for a batch a summary of all worlds.

    Raises:
      ValueError: `d` is not a Data of the model, is traced, or has no such world.
    """
    batch = leading_axes(m, d)
    many = int(np.prod(batch, dtype=int))
    if not 0 <= world < many:
        raise ValueError(f"describe: there is no world {world}; the batch has {many}")
    every = jax.tree.map(lambda a: np.asarray(a).reshape(many, *a.shape[len(batch) :]), d)
    one = every[world]
    sections = {
        "world": describe_batch(every, world) if batch else [],
        "time": [f"{float(one.time):g} s"],
        "joints": _joints(m, one),
        "mocap": _mocap(m, one),
        "controls": _controls(m, one),
        "contacts": _contacts(m, one),
        "rows": _rows(one),
        "forces": _forces(m, one),
        "bodies": _applied_forces(m, one),
        "energy": _energy(one),
        "not finite": not_finite(one),
        "warnings": [
            *(f"{w.type.name}: {w}" for w in warning_counts(d)),
            *warning_texts(m, d, worlds=1),
        ],
    }
    return "\n".join(
        f"{'' if k else name:11} {line}".rstrip()
        for name, lines in sections.items()
        for k, line in enumerate(lines)
    )


def _joints(m: Model, d: Data) -> list[str]:
    """Return the position and velocity of each joint."""
    lines = []
    for j in range(m.njnt):
        kind = JointType(int(m.jnt_type[j]))
        q, v = m.jnt_qposadr[j], m.jnt_dofadr[j]
        qpos, qvel = d.qpos[q : q + kind.nq], d.qvel[v : v + kind.nv]
        name = name_of(m, "joint", j)
        lines.append(
            f"{name:20} {kind.name.lower():5} {format_numbers(qpos)} | {format_numbers(qvel)}"
        )
    return truncate_lines(["name, type, qpos | qvel", *lines]) if lines else []


def _mocap(m: Model, d: Data) -> list[str]:
    bodies = sorted(
        np.flatnonzero(m.body_mocapid >= 0).tolist(), key=lambda b: int(m.body_mocapid[b])
    )
    pairs = zip(bodies, d.mocap_pos, d.mocap_quat, strict=True)
    return truncate_lines(
        f"{name_of(m, 'body', b):20} {format_numbers(p)} | {format_numbers(q)}" for b, p, q in pairs
    )


def _controls(m: Model, d: Data) -> list[str]:
    """Return the controls, and the actuator forces where each actuator has one."""
    force: Any = d.actuator_force
    if force is None or len(force) != m.nu:
        force = [None] * m.nu
    return truncate_lines(
        f"{name_of(m, 'actuator', k):20} {format_number(d.ctrl[k])}" + ("" if f is None else _to(f))
        for k, f in enumerate(force)
    )


def _to(force: float) -> str:
    return f" -> {format_number(force)}"


def _contacts(m: Model, d: Data) -> list[str]:
    """Return the number of contacts, and the deepest: geoms, distances, points, normal forces."""
    c = d.contact
    if c is None or d.ncon is None or not m.ncontact:
        return []
    count = int(d.ncon)
    lines = []
    for k in np.argsort(c.dist[:count], kind="stable"):
        one, two = (_surface(m, d, k, side) for side in range(2))
        force = "" if c.force is None else f", normal force {format_number(c.force[k, 0])} N"
        place = format_numbers(c.pos[k])
        lines.append(f"{one} - {two}: {format_number(c.dist[k])} m, at {place}{force}")
    return [f"{count} of {m.ncontact} slots used, the deepest first", *truncate_lines(lines)]


def _surface(m: Model, d: Data, contact: int, side: int) -> str:
    """Return the name of the geom or flex on one side of a contact."""
    geom, flex = d.contact.geom[contact, side], d.contact.flex
    if geom >= 0 or flex is None:
        return name_of(m, "geom", geom)
    return name_of(m, "flex", flex[contact, side])


def _rows(d: Data) -> list[str]:
    number: Any = d.nefc
    if number is None:
        return []
    kinds = {"equality": d.ne, "friction loss": d.nf, "limit": d.nl}
    some = ", ".join(f"{int(n)} of {kind}" for kind, n in kinds.items() if n is not None and n)
    turns = f", {int(d.solver_niter)} iterations" if d.solver_niter is not None else ""
    return [f"{int(number)}{f' ({some})' if some else ''}{turns}"]


def _forces(m: Model, d: Data) -> list[str]:
    """Return the largest entry of each generalized force, and its dof."""
    names, lines = dof_labels(m), []
    for field in _FORCE_NAMES:
        value = getattr(d, field)
        if value is not None and np.any(value):
            k = int(np.argmax(np.abs(value)))
            lines.append(f"{field:16} at most {format_number(value[k])}, of {names[k]}")
    return lines


def _applied_forces(m: Model, d: Data) -> list[str]:
    """Return the bodies with an applied force and torque."""
    bodies = np.flatnonzero(np.any(d.xfrc_applied, axis=1)).tolist()
    return truncate_lines(
        f"{name_of(m, 'body', b):20} xfrc_applied {format_numbers(d.xfrc_applied[b])}"
        for b in bodies
    )


def _energy(d: Data) -> list[str]:
    if d.energy is None or not np.any(d.energy):
        return []
    potential, kinetic = d.energy
    return [f"{format_number(potential)} J potential, {format_number(kinetic)} J kinetic"]


def leading_axes(m: Model, d: Any) -> tuple[int, ...]:
    """Return the shape of the batch; () for one world."""
    if not isinstance(d, Data):
        raise ValueError(f"describe: d: expected a Data, got {type(d).__name__}")
    if any(isinstance(a, jax.core.Tracer) for a in jax.tree.leaves(d)):
        raise ValueError("describe: d is traced: it has no numbers; describe it outside of jit")
    shape = np.shape(d.qpos)
    if shape[-1:] != (m.nq,):
        raise ValueError(f"describe: d.qpos: expected shape (..., {m.nq}), got {shape}")
    return shape[:-1]


def describe_batch(every: Data, world: int) -> list[str]:
    """Return a line with the world shown, and the ranges of time and contacts over the batch."""
    many = len(every.qpos)
    spread = f"time {_range(every.time)} s"
    if every.ncon is not None:
        spread += f", contacts {_range(every.ncon)}"
    lost = sum(bool(not_finite(every[k])) for k in _nonfinite_worlds(every))
    bad = f", {lost} not finite" if lost else ""
    return [f"{world} of {many}; in all of them {spread}{bad}"]


def _nonfinite_worlds(every: Data) -> np.ndarray:
    """Return the indices of the worlds whose state has a non-finite value."""
    state = [x for x in (every.qpos, every.qvel, every.qacc) if x is not None]
    return np.flatnonzero(~np.all([np.isfinite(x).all(axis=1) for x in state], axis=0))


def _range(values: jax.Array) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def not_finite(d: Data) -> list[str]:
    """Return the names of fields with non-finite values."""
    found = [
        name
        for name in Data.fields
        if isinstance(a := getattr(d, name), np.ndarray | np.generic)
        and np.issubdtype(a.dtype, np.floating)
        and not np.isfinite(a).all()
    ]
    return [", ".join(found)] if found else []
