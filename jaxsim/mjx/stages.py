"""Functions whose results in MJX differ from those in MuJoCo, which `jaxsim` follows."""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import stages, support
from jaxsim.arrays.array import Array
from jaxsim.enums import ObjType
from jaxsim.io import bridge
from jaxsim.model import names
from jaxsim.model.allocate import Keep, add_fields
from jaxsim.model.data import ROW_FIELDS, Data
from jaxsim.model.model import Model
from jaxsim.physics.pipeline.stages import STAGES
from jaxsim.physics.public.wrapper import make_public
from jaxsim.physics.query.jacobian import jac_of_poses
from jaxsim.physics.query.ray import ray as cast

_jac = make_public(jac_of_poses)


def rne(m: Model, d: Data, flg_acc: bool = False) -> Data:
    """Return `d` with the bias force of the bodies in `qfrc_bias`, without that of tendons.

    `tendon_bias` adds the latter.
    """
    return d.replace(qfrc_bias=stages.rne(m, d, flg_acc))


def factor_m(m: Model, d: Data) -> Data:
    """Return `d` with the factors of the mass matrix, `qLD` and `qLDiagInv`.

    `solve_m` factorizes by itself.
    """
    lower, diagonal = stages.factor_m(m, d)
    eye = jnp.eye(m.nv, dtype=diagonal.dtype)
    return d.replace(qLD=lower + eye * (diagonal[:, None] - 1), qLDiagInv=1 / diagonal)


def _keep_outputs(name: str, *fields: str) -> Callable:
    """Return a stage that makes Data carry what it computes, or the given fields."""
    stage = getattr(stages, name)
    outputs = fields or STAGES[name].fields.writes & Data.fields.keys()

    @functools.wraps(stage)
    def of(m: Model, d: Data) -> Data:
        filled: Data = stage(m, add_fields(m, d, outputs))
        return filled

    return of


make_constraint = _keep_outputs("make_constraint", *ROW_FIELDS)
rne_postconstraint = _keep_outputs("rne_postconstraint")
subtree_vel = _keep_outputs("subtree_vel")
com_pos = _keep_outputs("com_pos")
crb = _keep_outputs("crb", "crb", "M")
tendon = _keep_outputs("tendon")
transmission = _keep_outputs("transmission")


# inexpensive results of MJX's stages that a Data carries besides those of `jaxsim.make_data`
_KEPT_FIELDS = "cdof cdof_dot cinert qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid".split()
_KEPT_FIELDS += [name for name, field in Data.fields.items() if field.keep]


def make_data(m: Any, keep: Keep = _KEPT_FIELDS, **choices: Any) -> Data:
    """Call `jaxsim.make_data`; Data also carries `cdof`, `cdof_dot`, `cinert`, passive forces."""
    return bridge.make_data(m, keep, **choices)


def put_data(
    model: Any, data: Any, device: Any = None, *, keep: Keep = _KEPT_FIELDS, **choices: Any
) -> Data:
    """Call `jaxsim.put_data`; Data also carries the fields that `make_data` adds."""
    return bridge.put_data(model, data, device, keep=keep, **choices)


def tendon_armature(m: Model, d: Data) -> Data:
    """Return `d` unchanged: `crb` has added the inertia of tendons."""
    del m
    return d


def jac(m: Model, d: Data, point: Array, body_id: Array | int) -> tuple[jax.Array, jax.Array]:
    """Return the Jacobians (nv, 3) of a point that moves with a body, at the poses in `d`.

    After a step, poses belong to the state before it, while `jaxsim.support.jac` uses `d.qpos`.
    """
    return _jac(m, d, point, body_id)


def full_m(m: Model, d: Data) -> jax.Array:
    """Return `d.M`, or the result of `jaxsim.support.full_m` if `d` carries none.

    After a step, `d.M` is the mass matrix of the state before the step.
    """
    return support.full_m(m, d) if d.M is None else d.M


def apply_ft(
    m: Model, d: Data, force: Array, torque: Array, point: Array, body_id: Array | int
) -> jax.Array:
    """Return the generalized force (nv,) of a force and a torque on a body.

    `jaxsim.support.apply_ft` adds it to `qfrc_target` instead.
    """
    return support.apply_ft(m, d, force, torque, point, body_id, jnp.zeros_like(d.qvel))


def ray(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[int] = (),
    flg_static: bool = True,
    bodyexclude: Array | Sequence[int | str] | int | str = -1,
) -> tuple[jax.Array, jax.Array]:
    """Return distance and geom of `jaxsim.support.ray`, without the normal.

    An empty `geomgroup` includes all groups.
    """
    groups = [bool(g) for g in geomgroup] or None
    hit = cast(m, d, pnt, vec, groups, flg_static, bodyexclude)
    return hit.dist, hit.geomid


def contact_force(
    m: Model, d: Data, contact_id: Array | int, to_world_frame: bool = False
) -> jax.Array:
    """Return `jaxsim.support.contact_force`, (6,), in the frame of the contact, or of the world."""
    force = support.contact_force(m, d, contact_id)
    if not to_world_frame:
        return force
    return (force.reshape(2, 3) @ d.contact.frame[contact_id]).reshape(6)


def is_sparse(m: Any) -> bool:
    """Return False: matrices are dense here."""
    del m
    return False


def name2id(m: Any, typ: Any, name: str | None) -> int:
    """Return the id of a named object; -1 if there is none. See `jaxsim.name2id` for names.

    Args:
      m: a Model, or a `mujoco.MjModel`.
      typ: the kind, an `ObjType` or `mujoco.mjtObj`.
      name: its name.
    """
    kind = ObjType(int(typ))
    if not isinstance(m, Model):
        return int(_package(m).mj_name2id(m, int(kind), name or ""))
    try:
        return names.name2id(m, kind, name or "")
    except ValueError:
        return -1


def id2name(m: Any, typ: Any, i: int) -> str | None:
    """Return the name of an object of a Model or a `mujoco.MjModel`; None: it has none."""
    if not isinstance(m, Model):
        name: str | None = _package(m).mj_id2name(m, int(typ), i)
        return name
    return names.id2name(m, ObjType(int(typ)), i)


def _package(model: Any) -> Any:
    """Return MuJoCo's Python package, which the owner of the model has imported."""
    return sys.modules[type(model).__module__.partition(".")[0]]
