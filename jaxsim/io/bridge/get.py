"""Convert a Data to a `mujoco.MjData`, with all of its fields.

MuJoCo stores more than a Data does: factors of the mass matrix, constraint rows, buffers. Its own
functions compute them for the state to which the results of `d` belong; the fields of `d` are then
written over them.
"""

import sys
from typing import Any

import jax
import numpy as np

from jaxsim.enums import SleepState, SolverType
from jaxsim.io.bridge.check import check_one_world, check_same_model
from jaxsim.io.bridge.sparse import sparse_pattern
from jaxsim.model.contact import Contact
from jaxsim.model.data import ALWAYS_KEPT, JUST_AWAKE, ROW_FIELDS, SLEEP_FIELDS, Data
from jaxsim.model.indices import time_indices
from jaxsim.physics.history.clock import clock_low

# Poses that MuJoCo does not recompute for sleeping trees, with the tables of their bodies.
_POSE_FIELDS = {
    **dict.fromkeys(("xpos", "xquat", "xmat", "xipos", "ximat", "subtree_com"), ""),
    **dict.fromkeys(("geom_xpos", "geom_xmat"), "geom_bodyid"),
    **dict.fromkeys(("site_xpos", "site_xmat"), "site_bodyid"),
    **dict.fromkeys(("xanchor", "xaxis"), "jnt_bodyid"),
}
# Fields that MuJoCo duplicates in the order of its constraint islands.
_ISLAND_FIELDS = {
    "iacc": "qacc",
    "iacc_smooth": "qacc_smooth",
    "ifrc_smooth": "qfrc_smooth",
    "ifrc_constraint": "qfrc_constraint",
}
# Counters that are members of one struct per warning in MuJoCo.
_MJ_WARNING_FIELDS = {"warning": "number", "warning_lastinfo": "lastinfo"}
# Values of the flex fields of a contact between geoms.
NO_FLEX = {"flex": -1, "elem": -1, "vert": -1}


def get_data(model: Any, d: Data) -> Any:
    """Return a `mujoco.MjData` of one world, or a list of them if `d` has a leading batch axis.

    Raises:
      ValueError: the state does not belong to this model.
    """
    if np.ndim(d.time):
        d = jax.device_get(d)
        worlds = range(np.shape(d.time)[0])
        return [get_data(model, jax.tree.map(lambda x, i=i: x[i], d)) for i in worlds]
    data = _package(model).MjData(model)
    get_data_into(data, model, d)
    return data


def get_data_into(data: Any, model: Any, d: Data) -> None:
    """Write one world into a `mujoco.MjData`: state, inputs, and results.

    MuJoCo computes what `d` does not keep, at the state to which its results belong: the state of
    `d` after `forward`, the previous state after `step`. Constraint rows are those of the contacts
    in `d`, with forces that agree with `d.qacc` (with PGS and no-slip iterations: forces that
    MuJoCo solves for at that state). If the results belong to neither state, as after a step of
    RK4, contacts are written without rows (`nefc` is 0): call `forward` first.

    Args:
      data: the `mujoco.MjData` to overwrite.
      model: its `mujoco.MjModel`.
      d: one world.

    Raises:
      ValueError: the state, or `data`, does not belong to this model.
    """
    check_same_model("get_data_into", model, data)
    check_one_world("get_data_into", model, d)
    d = _to_double_precision(model, jax.device_get(d))
    mujoco = _package(model)
    for name in ALWAYS_KEPT - SLEEP_FIELDS - {"solver_niter"}:
        if (value := getattr(d, name)) is not None:
            _write_field(model, data, name, value)
    _write_sleep(model, data, np.full(model.ntree, JUST_AWAKE))
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    poses = {name: getattr(data, name).copy() for name in _POSE_FIELDS}
    belongs = _recompute_in_mujoco(mujoco, model, data, d)
    if d.tree_asleep is not None:
        _write_sleep(model, data, d.tree_asleep)
    if d.contact is not None:
        _write_contacts(mujoco, data, d)
    if belongs:
        mujoco.mj_makeConstraint(model, data)
        mujoco.mj_island(model, data)
        mujoco.mj_projectConstraint(model, data)
        mujoco.mj_referenceConstraint(model, data)
        _row_forces(mujoco, model, data, d)
    for name, field in Data.fields.items():
        known = hasattr(data, name) or name in _MJ_WARNING_FIELDS
        if field.nested is None and getattr(d, name) is not None and known:
            _write_field(model, data, name, getattr(d, name))
    for name, own in poses.items():  # different rounding would wake sleeping trees
        body = getattr(model, _POSE_FIELDS[name]) if _POSE_FIELDS[name] else np.arange(model.nbody)
        asleep = data.body_awake[body] == SleepState.ASLEEP
        getattr(data, name)[asleep] = own[asleep]
    if d.solver is not None:
        for name in d.solver.fields:
            getattr(data.solver, name)[:] = np.ravel(getattr(d.solver, name))
    for own, whole in _ISLAND_FIELDS.items():
        getattr(data, own)[:] = getattr(data, whole)[data.map_idof2dof[: data.nidof]]
    data.iefc_force[:] = data.efc_force[data.map_iefc2efc]
    if d.M is not None:
        mujoco.mj_factorM(model, data)


def _to_double_precision(model: Any, d: Data) -> Data:
    """Return a state with time and sample times in double precision."""
    if d.time_low is None:
        return d
    whole: dict[str, Any] = {
        "time": np.float64(d.time) + np.float64(clock_low(d)),
        "time_low": None,
    }
    if d.history_low is not None:
        history = np.array(d.history, np.float64)
        history[time_indices(model)] += d.history_low
        whole |= {"history": history, "history_low": None}
    return d.replace_unchecked(whole, native=False)


def _package(model: Any) -> Any:
    """Return MuJoCo's Python package, which the caller has imported."""
    return sys.modules[type(model).__module__.partition(".")[0]]


def _recompute_in_mujoco(mujoco: Any, model: Any, data: Any, d: Data) -> bool:
    """Let MuJoCo compute everything at the state to which the results of `d` belong.

    Returns:
      Whether that state was recovered: the state of `d`, or the one before a step. A step moves
        qpos along the new velocity; the old velocity follows from the velocities of the bodies.
    """
    mujoco.mj_forward(model, data)
    if _has_results(data, d):
        return True
    mujoco.mj_integratePos(model, data.qpos, np.array(d.qvel, float), -model.opt.timestep)
    if d.act_dot is not None:
        data.act -= model.opt.timestep * d.act_dot
    mujoco.mj_forward(model, data)
    if d.cvel is not None:
        data.qvel[:] = _velocity(model, data, np.asarray(d.cvel, float))
        mujoco.mj_forward(model, data)
    if d.cvel is not None and _has_results(data, d):
        return True
    data.qpos[:], data.qvel[:], data.act[:] = d.qpos, d.qvel, d.act
    mujoco.mj_forward(model, data)
    mujoco._functions._realloc_con_efc(data, 0, 0, 0)
    return False


def _has_results(data: Any, d: Data) -> bool:
    """Return whether MuJoCo's body poses and velocities equal those kept in `d`."""
    precise = 1e-9 if np.asarray(d.qpos).dtype == np.float64 else 1e-4
    return all(
        np.allclose(getattr(data, name), mine, rtol=precise, atol=precise)
        for name in ("xpos", "xquat", "cvel")
        if (mine := getattr(d, name)) is not None
    )


def _velocity(model: Any, data: Any, cvel: np.ndarray) -> np.ndarray:
    """Return the generalized velocity that gives the bodies their velocities, (nv,).

    The velocity of a body is the sum over the dofs between it and the world.
    """
    moves = np.zeros((model.nbody, model.nv))
    for body in range(1, model.nbody):
        moves[body] = moves[model.body_parentid[body]]
        first = model.body_dofadr[body]
        moves[body, first : first + model.body_dofnum[body]] = 1
    matrix = (moves[:, None] * data.cdof.T).reshape(-1, model.nv)
    return np.linalg.lstsq(matrix, cvel.ravel(), rcond=None)[0]


_DERIVED_CONTACT_FIELDS = {
    "force",
    "passive",
    "mu",
    "H",
}  # contact fields that MuJoCo stores elsewhere


def _write_contacts(mujoco: Any, data: Any, d: Data) -> None:
    """Write the contacts of `d`, without rows."""
    count = int(d.ncon) if d.ncon is not None else int(np.sum(d.contact.exists))
    mujoco._functions._realloc_con_efc(data, count, 0, 0)
    into = data.contact
    for name in Contact.fields.keys() - _DERIVED_CONTACT_FIELDS:
        values, ours = getattr(into, name), getattr(d.contact, name)
        none = NO_FLEX.get(name, 0)
        values[...] = none if ours is None else np.asarray(ours)[:count].reshape(values.shape)
    into.geom1[...], into.geom2[...] = into.geom.T
    into.exclude[...] = d.contact.exclude[:count]
    into.efc_address[...] = -1  # until rows are assigned


def _write_sleep(model: Any, data: Any, tree_asleep: np.ndarray) -> None:
    """Write the sleep state of trees and bodies, and MuJoCo's lists of awake bodies and dofs."""
    data.tree_asleep[:] = tree_asleep
    data.tree_awake[:] = data.tree_asleep < 0
    tree = model.body_treeid
    moved = model.body_mocapid[model.body_rootid] >= 0
    state = np.where(moved, SleepState.AWAKE, SleepState.STATIC)
    data.body_awake[:] = np.where(tree >= 0, data.tree_awake[np.maximum(tree, 0)], state)
    up = data.body_awake != SleepState.ASLEEP
    lists = {
        "body_awake_ind": np.flatnonzero(up),
        "parent_awake_ind": 1 + np.flatnonzero(up[model.body_parentid[1:]]),
        "dof_awake_ind": np.flatnonzero(data.tree_awake[model.dof_treeid]),
    }
    for name, ids in lists.items():
        getattr(data, name)[: len(ids)] = ids
    data.ntree_awake = int(data.tree_awake.sum())
    data.nbody_awake, data.nparent_awake, data.nv_awake = map(len, lists.values())


def _row_forces(mujoco: Any, model: Any, data: Any, d: Data) -> None:
    """Compute states and forces of the constraint rows from the acceleration of `d`.

    With PGS and no-slip iterations the forces do not follow from the acceleration; MuJoCo solves
    for them.
    """
    if data.nefc and d.qacc_smooth is not None:
        mujoco.mj_mulJacVec(model, data, data.efc_b, np.asarray(d.qacc_smooth, float))
        data.efc_b[:] -= data.efc_aref
    own = model.opt.noslip_iterations > 0 or model.opt.solver == SolverType.PGS
    if data.nefc and own:
        mujoco.mj_fwdConstraint(model, data)
    elif data.nefc and d.qacc is not None:
        residual = np.zeros(data.nefc)
        mujoco.mj_mulJacVec(model, data, residual, np.asarray(d.qacc, float))
        mujoco.mj_constraintUpdate(model, data, residual - data.efc_aref, np.zeros(1), 1)


def _write_field(model: Any, data: Any, name: str, value: Any) -> None:
    """Write one field of a Data."""
    if name in _COUNT_FIELDS:
        return
    if name in _MJ_WARNING_FIELDS:
        for warning, number in zip(data.warning, np.asarray(value), strict=False):
            setattr(warning, _MJ_WARNING_FIELDS[name], int(number))
        return
    value, into = np.asarray(value), getattr(data, name)
    if name == "solver_niter":
        into[:] = 0
        into[0] = value
    elif (at := sparse_pattern(name, model, data)) is not None:
        into[: len(at.row)] = value[at]
    elif isinstance(into, np.ndarray):
        into[...] = value.reshape(into.shape)
    else:
        setattr(data, name, value.item())


# Counts that follow from the contacts and rows.
_COUNT_FIELDS = (*ROW_FIELDS, "ncon", "ne", "nf", "nl", "nefc", "nisland", "tree_island")
