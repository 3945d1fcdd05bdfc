"""Models and states whose constraints are compared with MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim
from jaxsim import Data, Model

KEPT = [n for n, f in Data.fields.items() if f.keep or n.startswith("efc_")]
STATE = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "mocap_pos", "mocap_quat")


def compile_xml(xml: str, disable: int = 0) -> mujoco.MjModel:
    """A model whose solver goes on until rounding stops it, with some flags disabled."""
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    mj.opt.iterations, mj.opt.tolerance = 100, 1e-16
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    mj.opt.disableflags |= disable
    return mj


def state(mj: mujoco.MjModel, seed: int, spread=0.4, settle=0) -> mujoco.MjData:
    """A random state, moved on by some steps under random controls."""
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, d.qpos, spread * rng.normal(size=mj.nv), 1.0)
    d.qvel[:] = spread * rng.normal(size=mj.nv)
    d.ctrl[:] = rng.normal(size=mj.nu)
    for _ in range(settle):
        mujoco.mj_step(mj, d)
    d.qfrc_applied[:] = rng.normal(size=mj.nv)
    mujoco.mj_forward(mj, d)
    return d


def world(mj: mujoco.MjModel, mjd: mujoco.MjData) -> tuple[Model, Data]:
    """Return model and state in jaxsim, with the oracle's acceleration."""
    m = jaxsim.put_model(mj)
    d = jaxsim.make_data(m, KEPT)
    given = {name: jnp.asarray(getattr(mjd, name)) for name in (*STATE, "qacc")}
    return m, d.replace(eq_active=jnp.asarray(mjd.eq_active.astype(bool)), **given)


@jax.jit
def answer(m: Model, d: Data):
    """Rows with the forces at the given acceleration; forward dynamics with their solution."""
    return jaxsim.support.constraint_rows(m, d), jaxsim.forward(m, d)
