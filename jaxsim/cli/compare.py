"""`jaxsim compare MODEL.xml`: compare with MuJoCo, first one state stage by stage, then a
rollout."""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import support
from jaxsim.cli.user_error import InputProblem
from jaxsim.enums import SolverType
from jaxsim.io.load import load_model
from jaxsim.io.phase import named_phase
from jaxsim.io.save import is_saved
from jaxsim.mjcf import file_contents
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.optional import require
from jaxsim.physics.public import api as physics
from jaxsim.physics.public.make_data import make_data

# Results of each stage of the forward dynamics, in the order of the stages.
_COMPARED_FIELDS = {
    "positions": ("xpos", "xquat", "xipos", "geom_xpos", "site_xpos", "subtree_com"),
    "tendons": ("ten_length", "actuator_length"),
    "inertia": ("M",),
    "velocities": ("cvel", "ten_velocity", "actuator_velocity"),
    "bias": ("qfrc_bias",),
    "passive": ("qfrc_passive",),
    "actuation": ("actuator_force", "qfrc_actuator"),
    "smooth": ("qacc_smooth",),
    "contacts": ("contact.dist", "contact.pos"),
    "constraint": ("qfrc_constraint",),
    "result": ("qacc", "sensordata"),
}
ITERATIONS, TOLERANCE = 100, 1e-12
_SETTLING_STEPS = 20  # steps of MuJoCo before the comparison, so that the state is a typical one


def compare(args: argparse.Namespace) -> int:
    """Print the largest difference of each quantity."""
    mujoco = require("mujoco", "mujoco")
    if not args.float32:
        jax.config.update("jax_enable_x64", True)
    m = load_model(args.model)
    if is_saved(file_contents(args.model)):
        raise InputProblem(
            f"{args.model}: a compiled model, which MuJoCo cannot read; give the XML"
        )
    theirs = mujoco.MjModel.from_xml_path(args.model)
    m = _make_converged(m, theirs)
    state = _state(mujoco, theirs, m, args)

    mujoco.mj_forward(theirs, state)
    d = _same_state(m, state, keep="all")
    with named_phase("compile the stages"):
        mine = jax.jit(physics.forward)(m, d)
        M = jax.jit(support.full_m)(m, mine)

    print(
        f"{args.model}: state after {_SETTLING_STEPS} steps of MuJoCo {mujoco.__version__}; ",
        end="",
    )
    print(f"both solve by Newton's method, to a tolerance of {TOLERANCE:g}")
    print(f"{'stage':12} {'quantity':18} {'largest value':>14} {'difference':>12} {'relative':>10}")
    for stage, names in _COMPARED_FIELDS.items():
        for name in names:
            ours, reference = _pair(mujoco, theirs, state, mine, M, name)
            _report(stage, name, ours, reference)
            stage = ""

    print()
    d = _same_state(m, state, keep="default")
    with named_phase("compile a step"):
        step, done = jax.jit(physics.step).lower(m, d).compile(), 0
    for count in sorted({n for n in (1, 10, 100) if n <= args.steps} | {args.steps}):
        while done < count:
            d = step(m, d)
            mujoco.mj_step(theirs, state)
            done += 1
        stage = f"{count} step" + "s" * (count > 1)
        _report(stage, "qpos", np.asarray(d.qpos), state.qpos)
        _report("", "qvel", np.asarray(d.qvel), state.qvel)
    return 0


def _make_converged(m: Model, theirs) -> Model:
    """Return the model with solver settings that converge, so that iteration limits do not
    matter."""
    theirs.opt.iterations = theirs.opt.ls_iterations = ITERATIONS
    theirs.opt.tolerance = theirs.opt.ls_tolerance = TOLERANCE
    theirs.opt.solver = SolverType.NEWTON
    tolerance = jnp.asarray(TOLERANCE, m.qpos0.dtype)
    opt = m.opt.replace(
        iterations=ITERATIONS,
        ls_iterations=ITERATIONS,
        tolerance=tolerance,
        ls_tolerance=tolerance,
        solver=SolverType.NEWTON,
    )
    return m.replace(opt=opt)


def _state(mujoco, theirs, m: Model, args: argparse.Namespace):
    """Return a state with random velocities and controls, from the seed, after `_SETTLING_STEPS`
    steps."""
    state, rng = mujoco.MjData(theirs), np.random.default_rng(args.seed)
    if args.key is not None:
        try:
            mujoco.mj_resetDataKeyframe(theirs, state, name2id(m, "key", args.key))
        except ValueError as error:
            raise InputProblem(f"--key: {error}") from None
    state.qvel[:] += 0.3 * rng.standard_normal(m.nv)
    low, high = np.asarray(m.actuator_ctrlrange).T if m.nu else (np.zeros(0), np.zeros(0))
    unlimited = low == high
    low, high = np.where(unlimited, -1, low), np.where(unlimited, 1, high)
    state.ctrl[:] += 0.3 * (rng.uniform(low, high) - state.ctrl)
    mujoco.mj_step(theirs, state, _SETTLING_STEPS)
    return state


def _same_state(m: Model, state, keep):
    d = make_data(m, keep)
    names = ("time", "qpos", "qvel", "act", "history", "plastic", "ctrl", "qacc_warmstart")
    # Copy, because MuJoCo's next step overwrites the originals.
    return d.replace(**{n: jnp.array(getattr(state, n), m.qpos0.dtype) for n in names})


def _pair(mujoco, theirs, state, mine, M, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a quantity of jaxsim and of MuJoCo."""
    if name == "M":
        full = np.zeros((theirs.nv, theirs.nv))
        mujoco.mj_fullM(theirs, state, full)
        return np.asarray(M), full
    if not name.startswith("contact."):
        return np.asarray(getattr(mine, name)), np.asarray(getattr(state, name))
    field = name.removeprefix("contact.")
    count = int(mine.ncon)
    ours, geom = np.asarray(getattr(mine.contact, field))[:count], mine.contact.geom[:count]
    reference = np.asarray(getattr(state.contact, field))
    return _sort_contacts(ours, geom), _sort_contacts(reference, state.contact.geom)


def _sort_contacts(values: np.ndarray, geom) -> np.ndarray:
    """Return contact quantities in an order that both sides share: by geoms, then by value."""
    if not len(values):
        return values
    columns = np.round(values.reshape(len(values), -1), 6)
    return values[np.lexsort((*columns.T[::-1], *np.asarray(geom).T[::-1]))]


def _report(stage: str, name: str, ours: np.ndarray, reference: np.ndarray) -> None:
    if ours.shape != reference.shape:
        print(f"{stage:12} {name:18} {len(ours)} here, {len(reference)} in MuJoCo")
        return
    if not reference.size:
        return
    scale = np.abs(reference).max()
    difference = np.abs(ours - reference).max()
    relative = difference / scale if scale else difference
    print(f"{stage:12} {name:18} {scale:14.6g} {difference:12.2e} {relative:10.1e}")
