"""Time integrators: from the acceleration to the next state.

MuJoCo's documentation, Computation: Numerical integration. All but RK4 are semi-implicit Euler with
different effective inertias (effective_inertia.py). A step ends with activations, histories, sleep,
velocity, configuration, plastic state and plugins, in this order.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import DynType, EnableBit, IntegratorType
from jaxsim.math import select
from jaxsim.model.data import OF_ROWS, Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator import orientation, plugins
from jaxsim.physics.actuator.actuation import next_activation
from jaxsim.physics.actuator.setpoint import nearest_activation, turns_back
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.body.configuration import displacement_rate, integrate_pos
from jaxsim.physics.body.singular import count_massless
from jaxsim.physics.callback import control, inputs_of
from jaxsim.physics.forward import (
    FORCES,
    from_velocity,
    fwd_actuation,
    fwd_constraint,
    fwd_position,
    fwd_velocity,
    smooth_force,
)
from jaxsim.physics.history.clock import later
from jaxsim.physics.history.write import recorded
from jaxsim.physics.integrate.effective_inertia import effective_inertia
from jaxsim.physics.ipc.mode import pass_through_nothing
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.plastic import yielded
from jaxsim.physics.sleep.asleep import fall_asleep
from jaxsim.physics.sleep.trees import (
    dof_awake,
    in_trees,
    may_stir,
    qpos_awake,
    qpos_tree,
    report,
    sleeps,
)


def single_step(m: Model, d: Data, kind: IntegratorType | None = None) -> Data:
    """Integrate by semi-implicit Euler, with the implicit forces of an integrator.

    `kind` is the integrator; None: the model's. Corresponds to `mj_Euler` and `mj_implicit` in
    MuJoCo.

    (M + h D) a = qfrc_smooth + qfrc_constraint qvel += h a,   qpos moves along the new qvel
    """
    # Mode ipc: the step itself resolves contacts.
    if m.resolves_shells and kind in (None, IntegratorType.DISCRETE):
        d = pass_through_nothing(m, d)
        return advance(m, d, d.qacc)
    inertia = effective_inertia(m, d, kind)
    if inertia is None:
        return advance(m, d, d.qacc)
    d = count_massless(d, inertia.diagonal)
    return advance(m, d, inertia.solve(d.qfrc_smooth + d.qfrc_constraint))


def rk4(m: Model, d: Data) -> Data:
    """Integrate by the classical fourth-order Runge-Kutta method; corresponds to `mj_RungeKutta`.

    Stage i starts from the state moved along the slope of stage i - 1. A configuration's slope is
    the rate of its displacement from `d.qpos` (`displacement_rate`), so that slopes can be added
    for rotations too. The later stages are one program, run three times.

    As in MuJoCo, `qacc` becomes the weighted mean of the slopes, and other results are those of the
    last stage. Exceptions have the values of the start of the step: sensors and results that only
    they use; the inputs of yielding, in models with springs that yield or with rods that twist;
    lengths of actuators whose setpoint is limited by them, and velocities of DC motors, whose
    friction is integrated with them.

    Each stage wakes trees, as a step would: sleeping trees have the acceleration with which they
    fell asleep, so that a nonzero one wakes them. Trees fall asleep by the velocities of the start
    and the islands of the last stage; results recomputed then have the poses of that stage, and so
    has the tree: where this differs from its qpos, the next step wakes it.
    """
    h = m.opt.timestep
    at_start = {name: getattr(d, name) for name in AT_START}
    # moving trees are detected by their velocity
    unseen = dict.fromkeys(FRAMES) if sleeps(m) else {}
    d = d.replace(**dict.fromkeys(Data.working))  # each stage computes its own
    first = (d.qvel, d.qacc, d.act_dot)

    # One stage: advance from the start along the last slope, and evaluate the dynamics.
    def stage(carry, part):
        before, (vel, acc, act_dot), mean = carry
        fraction, weight = part
        dt = fraction * h
        # State at this stage.
        there = d.replace(
            **later(d, dt),
            qpos=integrate_pos(m, d.qpos, vel, dt),
            qvel=d.qvel + dt * acc,
            act=d.act + dt * act_dot,
            qacc_warmstart=acc,
            warning=before.warning,
            warning_lastinfo=before.warning_lastinfo,
            tree_asleep=before.tree_asleep,
            **unseen,
            **inputs_of(m, before),
        )
        there = _dynamics(m, there)
        # Slope at this stage, and its weight in the mean.
        slope = (displacement_rate(m, dt * vel, there.qvel), there.qacc, there.act_dot)
        mean = jax.tree.map(lambda a, b: a + weight * b, mean, slope)
        left = {name: getattr(there, name) for name in BETWEEN} if sleeps(m) else {}
        return (_kept(d, there), slope, mean), left

    # Butcher tableau of RK4; the first stage is the forward pass of the step.
    dtype = d.qpos.dtype
    parts = (np.array([1 / 2, 1 / 2, 1], dtype), np.array([1 / 3, 1 / 3, 1 / 6], dtype))
    start = (d, first, jax.tree.map(lambda a: a / 6, first))
    (last, _, (vel, acc, act_dot)), left = lax.scan(stage, start, parts)
    # Combine: activations and results of the start where MuJoCo uses them, then the mean slope.
    from_start = d.replace(act_dot=act_dot, **at_start, **inputs_of(m, last))
    new, end = acted(m, from_start), _with_start(m, d, last)
    # Sleep, by the velocities of the start and the islands of the last stage.
    if sleeps(m):
        end = _fallen_asleep(m, d, last, end, new, left)
        new = new.replace(qvel=end.qvel, tree_asleep=end.tree_asleep)
    new = moved(m, new, acc, vel)
    end = end.replace(**{n: getattr(new, n) for n in ADVANCED})
    return end.replace(qacc=acc, qacc_warmstart=last.qacc)


def _with_start(m: Model, start: Data, last: Data) -> Data:
    """Replace results of the last stage by those of the start where the step uses them."""
    end = last
    # Plasticity uses positions of the start.
    if m.nplastic:
        names = OF_FLEXES + OF_TENDONS if np.any(m.flex_plasticadr >= 0) else OF_TENDONS
        end = end.replace(**{n: getattr(start, n) for n in names})
    back = turns_back(m)
    if back is not None:
        length = jnp.where(back, start.actuator_length, last.actuator_length)
        end = end.replace(actuator_length=length)
    if m.na and np.any(m.actuator_dyntype == DynType.DCMOTOR):
        end = end.replace(actuator_velocity=start.actuator_velocity)
    return end


def _fallen_asleep(m: Model, start: Data, last: Data, end: Data, new: Data, left: dict) -> Data:
    """Return the end of a step with trees that fall asleep, from values of the last stage.

    Args:
      start, last, end: the start, the last stage, and the results so far.
      new: the new state of the trees.
      left: working values of each stage, with a leading stage axis.
    """
    begun = {n: getattr(new, n) for n in BEGUN}
    # Islands and working values of the last stage.
    of_last = jax.tree.map(lambda a: a[-1], left)
    end = rest(m, end.replace(**begun, **of_last)).replace(**dict.fromkeys(BETWEEN))
    return _in_place(m, start, last, end)


def _in_place(m: Model, start: Data, last: Data, d: Data) -> Data:
    """Restore the exact frames of the start for trees that did not move."""
    # Trees whose qpos did not change.
    stays = ~in_trees(qpos_tree(m), last.qpos != start.qpos, m.ntree) | (last.tree_asleep >= 0)
    stays = take(stays, np.maximum(m.body_treeid, 0)) & column(m.body_treeid >= 0, d.qpos)
    return d.replace(**{n: select(stays, getattr(start, n), getattr(d, n)) for n in FRAMES})


FRAMES = ("xpos", "xquat")
AT_START = ("readings", "frames")  # working values that outlive the stages
BETWEEN = tuple(n for n in Data.working if n not in AT_START)
BEGUN = ("time", "time_low", "qpos", "qvel", "act", "history", "history_low")
ADVANCED = (*BEGUN, "plastic", "plugin_state")
# Inputs of yielding.
OF_FLEXES = ("xpos", "xquat", "xmat", "subtree_com", "cdof", "flexvert_xpos")
OF_TENDONS = ("ten_length", "ten_J")


def advance(m: Model, d: Data, acc: Array, vel: Array | None = None) -> Data:
    """Advance the state by one time step.

    Args:
      m: model.
      d: data with the activation rates and the acceleration, which warm-starts the next step's
        solver.
      acc: acceleration `[nv, *W]`.
      vel: velocity along which the configuration moves; None: the new velocity.
    """
    d = acted(m, d)
    return moved(m, rest(m, d) if may_stir(m) else d, acc, vel)


def acted(m: Model, d: Data) -> Data:
    """Advance histories and activations by one time step."""
    # Histories first: they store the controls of this step.
    d = d.replace(**recorded(m, d))
    act = nearest_activation(m, d, next_activation(m, d))
    return d.replace(act=orientation.anchored(m, act))


def moved(m: Model, d: Data, acc: Array, vel: Array | None = None) -> Data:
    """Advance the rest of the state by one time step; see `advance`."""
    h = m.opt.timestep
    # Semi-implicit: the new velocity moves the configuration.
    qvel = d.qvel + h * acc
    qpos = integrate_pos(m, d.qpos, qvel if vel is None else vel, h)
    # Sleeping dofs keep their state.
    if sleeps(m):
        qvel = jnp.where(dof_awake(m, d), qvel, d.qvel)
        qpos = jnp.where(qpos_awake(m, d), qpos, d.qpos)
    # Plastic state, then clock and warm start.
    plastic = yielded(m, d, qpos, qvel if vel is None else vel)
    # Under the flag ipc a step has many solves, and the warm start is left unchanged.
    warm = d.qacc_warmstart if m.opt.enableflags & EnableBit.IPC else d.qacc
    new = d.replace(**later(d, h), qpos=qpos, qvel=qvel, plastic=plastic, qacc_warmstart=warm)
    return plugins.advance(m, new)


def rest(m: Model, d: Data) -> Data:
    """Put trees to sleep that have rested long enough.

    Their velocity is zero from now on. In a world where a tree falls asleep all results that follow
    from velocities are recomputed, and kept with the trees while they sleep.
    """
    number, falls = fall_asleep(m, d)
    some = falls.any(axis=0, keepdims=True)
    names = tuple(n for n in FROM_VELOCITY if getattr(d, n) is not None)

    # Recompute only in worlds where a tree falls asleep.
    def found(d: Data) -> dict:
        return {n: getattr(d, n) for n in names}

    def again(d: Data) -> dict:
        return select(some, found(from_velocity(m, d)), found(d))

    still = d.replace(qvel=jnp.where(take(falls, m.dof_treeid), 0, d.qvel))
    if platform().branches:
        results = lax.cond(jnp.any(some), lambda: again(still), lambda: found(still))
    else:
        results = again(still)
    return report(m, still.replace(**results, tree_asleep=number))


FROM_VELOCITY = (
    *("solver_niter", "solver", "contact", "ten_velocity", "actuator_velocity", "cvel", "cdof_dot"),
    *("act_dot", "subtree_linvel", "subtree_angmom", "cacc", "cfrc_int", "cfrc_ext", *FORCES),
    *("actuator_force", "qfrc_actuator", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc"),
    *("sensordata", "energy", *OF_ROWS),
)


def _has(m: Model, kind: IntegratorType) -> bool:
    return m.opt.integrator == kind


def _dynamics(m: Model, d: Data) -> Data:
    """Run the forward dynamics without sensors."""
    energies = m.opt.enableflags & EnableBit.ENERGY
    d = fwd_position(m, d)
    d = energy_pos(m, d) if energies else d
    d = fwd_velocity(m, d)
    d = energy_vel(m, d) if energies else d
    for part in (control, fwd_actuation, smooth_force, fwd_constraint):
        d = part(m, d)
    return d


def _kept(like: Data, d: Data) -> Data:
    """Restrict a Data to the fields that another has."""
    names = (*Data.fields, *Data.working)
    return d.replace(**{n: None for n in names if getattr(like, n) is None})
