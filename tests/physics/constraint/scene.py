"""A state of the oracle, and this package's constraint rows and solution for the same state.

What comes before the constraints (contacts, forces) is taken from the oracle, so that a difference
is one of the constraints.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from jaxsim.bridge import put_model
from jaxsim.make_data import make_data
from jaxsim.math import Rot, Vec
from jaxsim.physics.constraint.listing import list_rows
from jaxsim.physics.constraint.make import make_constraint
from jaxsim.physics.inertia import com_pos, crb
from jaxsim.physics.kinematics import kinematics
from jaxsim.physics.native import unpack
from jaxsim.physics.solver.newton import Settings, solve
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.tendon import tendon, tendon_velocity
from jaxsim.physics.velocity import com_vel

KEPT = "dist pos frame dim includemargin friction solref solreffriction solimp".split()


def compile_xml(xml: str, **options) -> mujoco.MjModel:
    """A model whose solver goes on until rounding stops it."""
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    mj.opt.iterations, mj.opt.tolerance = 100, 1e-16
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    for name, value in options.items():
        setattr(mj.opt, name, value)
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


def inputs(mj: mujoco.MjModel, mjd: mujoco.MjData, room: int):
    """Model, data and contacts of a state of the oracle; contacts are padded to `room`."""
    m = put_model(mj)
    names = ("qpos", "qvel", "eq_active", "mocap_pos", "mocap_quat")
    d = make_data(m, "all").replace(**{n: jnp.asarray(getattr(mjd, n)) for n in names})
    d = d.replace(eq_active=d.eq_active.astype(bool))
    assert mjd.ncon <= room
    found = {}
    for name in KEPT:
        value = np.asarray(getattr(mjd.contact, name))
        full = np.zeros((room, *value.shape[1:]), value.dtype)
        full[: mjd.ncon] = value
        found[name] = jnp.asarray(full)
    body = np.zeros((room, 2), np.int32)
    body[: mjd.ncon] = mj.geom_bodyid[mjd.contact.geom.reshape(-1, 2)]
    found["body"] = jnp.asarray(body)
    found["active"] = jnp.arange(room) < mjd.ncon
    d = d.replace(qacc=jnp.asarray(mjd.qacc), qfrc_smooth=jnp.asarray(mjd.qfrc_smooth))
    return m, d, found


@jax.jit(static_argnames=("size", "rank"))
def rows_of(m, d, found, size: int = 0, rank: int = 0):
    """Constraint rows as a list, with the forces at the given acceleration, and their counts.

    Contacts have dimensions up to `size`; `rank` is the number of axes of worlds.
    """
    d = _with_rows(unpack(m, rank), unpack(d, rank), found, size)
    return list_rows(d.rows, d.qacc), (d.ne, d.nf, d.nl, d.nefc)


def kinds_of_rows(m, d) -> set[int]:
    """Types of the rows a model can have, except those of contacts; nothing is computed."""
    kinds = set()

    def trace(d):
        rows = _with_rows(unpack(m, 0), unpack(d, 0), {}, 0).rows
        kinds.update(int(b.type) for b in (*rows.dof, *rows.dense))

    jax.eval_shape(trace, d)
    return kinds


@jax.jit(static_argnames="size")
def solution(m, d, found, size: int = 0):
    """Acceleration and constraint force."""
    m = unpack(m, 0)
    d = _with_rows(m, unpack(d, 0), found, size)
    settings = Settings(
        warm=None,
        tolerance=m.opt.tolerance,
        ls_tolerance=m.opt.ls_tolerance,
        scale=1 / (m.stat.meaninertia * m.nv),
    )
    problem = Problem(d.M, d.qfrc_smooth, d.rows)
    found = solve(problem, settings, m.opt.iterations, m.opt.ls_iterations)
    return found.qacc, found.force


def _with_rows(m, d, found, size: int):
    for stage in (kinematics, com_pos, tendon, crb, tendon_velocity, com_vel):
        d = stage(m, d)
    if size:
        d = d.replace(rows=(contacts(found), size))
    return make_constraint(m, d)


def contacts(found: dict) -> SimpleNamespace:
    """Contacts in the form in which the collision stage hands them on."""
    by_column = {"friction": 5, "solref": 2, "solreffriction": 2, "solimp": 5}
    c = {name: [found[name][:, k] for k in range(n)] for name, n in by_column.items()}
    body1, body2 = (found["body"][:, k] for k in range(2))
    return SimpleNamespace(
        dist=found["dist"],
        pos=Vec.from_array(found["pos"]),
        frame=Rot.from_array(found["frame"]),
        dim=found["dim"],
        includemargin=found["includemargin"],
        body1=body1,
        body2=body2,
        active=found["active"] & (found["dist"] < found["includemargin"]),
        **c,
    )
