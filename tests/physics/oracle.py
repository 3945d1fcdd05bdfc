"""The oracle's model and data as records of the physics, for testing one stage at a time."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from states import stack

from jaxsim.io.bridge import put_model
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.fields import FIELD_KINDS
from jaxsim.model.record.record import Record
from jaxsim.transforms import layout

# as one program: a component of a field by itself would be one of its own
unpack = jax.jit(layout.unpack_record, static_argnums=1)


def compile_xml(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def model(mj: mujoco.MjModel) -> Model:
    """The public Model of the oracle's."""
    return put_model(mj)


def data(mj: mujoco.MjModel, mjd: mujoco.MjData) -> Data:
    """A public Data with everything the oracle computed."""
    sizes = {n: getattr(mj, n) for n in dir(mj) if n.startswith("n") and _is_int(getattr(mj, n))}
    values = _reals(Data, mjd, sizes)
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, mjd, M) if mj.nv else None
    values["M"] = jnp.asarray(M)
    values["ten_J"] = jnp.asarray(dense_tendon(mj, mjd))
    values["actuator_moment"] = jnp.asarray(dense_moment(mj, mjd))
    values["warning"] = values["warning_lastinfo"] = jnp.zeros(7, jnp.int32)
    n = mjd.ncon
    con = mjd.contact
    values["ncon"] = jnp.asarray(n, jnp.int32)
    values["contact"] = Contact(
        dist=jnp.asarray(con.dist),
        pos=jnp.asarray(con.pos.reshape(n, 3)),
        frame=jnp.asarray(con.frame.reshape(n, 3, 3)),
        geom=jnp.asarray(con.geom.reshape(n, 2)),
        dim=jnp.asarray(con.dim),
        includemargin=jnp.asarray(con.includemargin),
        friction=jnp.asarray(con.friction.reshape(n, 5)),
        solref=jnp.asarray(con.solref.reshape(n, 2)),
        solreffriction=jnp.asarray(con.solreffriction.reshape(n, 2)),
        solimp=jnp.asarray(con.solimp.reshape(n, 5)),
        adhesion=jnp.asarray(con.adhesion),
        surfacevel=jnp.asarray(con.surfacevel.reshape(n, 3)),
        efc_address=jnp.asarray(con.efc_address),
    )
    return Data(**values)


def contact_forces(mj: mujoco.MjModel, mjd: mujoco.MjData) -> np.ndarray:
    """Forces of the contacts, (ncon, 6)."""
    forces = np.zeros((mjd.ncon, 6))
    for k, force in enumerate(forces):
        mujoco.mj_contactForce(mj, mjd, k, force)
    return forces


def pair(mj: mujoco.MjModel, mjd: mujoco.MjData) -> tuple[Model, Data]:
    """Unpacked model and data, as a stage takes them."""
    return unpack(model(mj), 0), unpack(data(mj, mjd), 0)


def many(mj: mujoco.MjModel, states: list[mujoco.MjData]) -> tuple[Model, Data]:
    """Apply `pair` to several worlds, without contacts (their number differs)."""
    each = [data(mj, s).replace(contact=None) for s in states]
    return unpack(stack([model(mj)], -1), 1), unpack(stack(each, -1), 1)


def assert_worlds_are_a_loop(stage: Callable, mj, states: list, tolerance: dict) -> None:
    """A stage gives all worlds at once, worlds last, what it gives each of them alone.

    Args:
      stage: takes a model and a data as `pair` and `many` make them, returns arrays.
      mj: the oracle's model.
      states: the oracle's states, one a world.
      tolerance: of the results.
    """
    run = jax.jit(stage)
    together = run(*many(mj, states))
    for k, mjd in enumerate(states):
        alone = run(*pair(mj, mjd))
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a[..., k], b, **tolerance)


def dense_moment(mj, mjd) -> np.ndarray:
    moment = np.zeros((mj.nout, mj.nv))
    if mj.nout and mj.nv:
        mujoco.mju_sparse2dense(
            moment, mjd.actuator_moment, mjd.moment_rownnz, mjd.moment_rowadr, mjd.moment_colind
        )
    return moment


def dense_tendon(mj, mjd) -> np.ndarray:
    J = np.zeros((mj.ntendon, mj.nv))
    for t in range(mj.ntendon):
        first = mj.ten_J_rowadr[t]
        for k in range(first, first + mj.ten_J_rownnz[t]):
            J[t, mj.ten_J_colind[k]] = mjd.ten_J.reshape(-1)[k]
    return J


def _reals(record: type[Record], source, sizes: dict) -> dict:
    values = {}
    for name, field in record.fields.items():
        if field.static or field.nested or not hasattr(source, name):
            continue
        value = np.asarray(getattr(source, name))
        if "nrow" in field.shape:  # test_rows.py compares them
            continue
        if name in ("warning", "contact", "M", "qLD", "ten_J", "actuator_moment", "solver_niter"):
            continue
        dims = tuple(n if isinstance(n, int) else sizes[n] for n in field.shape)
        shape = dims + FIELD_KINDS[field.kind]
        dtype = {"float": np.float64, "int": np.int32, "bool": bool}[field.dtype]
        values[name] = jnp.asarray(value.reshape(shape).astype(dtype))
    return values


def _is_int(value) -> bool:
    return isinstance(value, (int, np.integer))


def consistent_state(mj: mujoco.MjModel, d: mujoco.MjData) -> None:
    """States of the rows at `qacc`: with islands MuJoCo leaves some of an iteration before."""
    residual = np.zeros(d.nefc)
    mujoco.mj_mulJacVec(mj, d, residual, d.qacc)
    mujoco.mj_constraintUpdate(mj, d, residual - d.efc_aref, np.zeros(1), 0)
