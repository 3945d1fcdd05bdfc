"""From the acceleration to the next state: the integrators.

MuJoCo's documentation, Computation: Numerical integration.
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
    """Semi-implicit Euler; the integrator says which forces are implicit in velocity.

    `kind` is that integrator; None: the model's.

    (M + h D) a = qfrc_smooth + qfrc_constraint
    qvel += h a,   qpos moves along the new qvel
    """
    if m.resolves_shells and kind in (None, IntegratorType.DISCRETE):
        d = pass_through_nothing(m, d)
        return advance(m, d, d.qacc)
    inertia = effective_inertia(m, d, kind)
    if inertia is None:
        return advance(m, d, d.qacc)
    d = count_massless(d, inertia.diagonal)
    return advance(m, d, inertia.solve(d.qfrc_smooth + d.qfrc_constraint))


def rk4(m: Model, d: Data) -> Data:
    """The classical Runge-Kutta method of fourth order.

    Stage i starts from the state moved along the slope of stage i - 1. A configuration's slope is
    that of its displacement from `d.qpos` (`displacement_rate`), so that slopes may be added where
    there are rotations. The later stages are one program, run three times.

    As in MuJoCo, `qacc` becomes the mean of the slopes, and other results are those of the last
    stage, but for the sensors and what only they need, which are those of the start of the step; so
    is what springs that yield go by, in models with such springs or with rods that twist, and so
    are lengths of actuators where a setpoint is turned back by them, and their velocities where a
    DC motor is, whose friction is integrated with them.

    Each stage wakes trees, as a step would: those that sleep have the acceleration that they fell
    asleep with, so that one other than zero wakes them. Trees fall asleep by the speeds of the
    start and the islands of the last stage; what is found again then has the poses of that stage,
    and so has the tree: where it is not in its place the next step wakes it.
    """
    h = m.opt.timestep
    at_start = {name: getattr(d, name) for name in AT_START}
    unseen = dict.fromkeys(FRAMES) if sleeps(m) else {}  # what moves has a speed
    d = d.replace(**dict.fromkeys(Data.working))  # each stage has its own
    first = (d.qvel, d.qacc, d.act_dot)

    def stage(carry, part):
        before, (vel, acc, act_dot), mean = carry
        fraction, weight = part
        dt = fraction * h
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
        slope = (displacement_rate(m, dt * vel, there.qvel), there.qacc, there.act_dot)
        mean = jax.tree.map(lambda a, b: a + weight * b, mean, slope)
        left = {name: getattr(there, name) for name in BETWEEN} if sleeps(m) else {}
        return (_kept(d, there), slope, mean), left

    dtype = d.qpos.dtype
    parts = (np.array([1 / 2, 1 / 2, 1], dtype), np.array([1 / 3, 1 / 3, 1 / 6], dtype))
    start = (d, first, jax.tree.map(lambda a: a / 6, first))
    (last, _, (vel, acc, act_dot)), left = lax.scan(stage, start, parts)
    from_start = d.replace(act_dot=act_dot, **at_start, **inputs_of(m, last))
    new, end = acted(m, from_start), _with_start(m, d, last)
    if sleeps(m):
        end = _fallen_asleep(m, d, last, end, new, left)
        new = new.replace(qvel=end.qvel, tree_asleep=end.tree_asleep)
    new = moved(m, new, acc, vel)
    end = end.replace(**{n: getattr(new, n) for n in ADVANCED})
    return end.replace(qacc=acc, qacc_warmstart=last.qacc)


def _with_start(m: Model, start: Data, last: Data) -> Data:
    """The results of the last stage, with those of the start that the rest of the step goes by."""
    end = last
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
    """The end of a step with the trees that fall asleep, by what the last stage left.

    Args:
      start, last, end: the start, the last stage, and the results so far.
      new: the state that the trees have then.
      left: working values of each stage, with a leading axis of stages.
    """
    begun = {n: getattr(new, n) for n in BEGUN}
    of_last = jax.tree.map(lambda a: a[-1], left)
    end = rest(m, end.replace(**begun, **of_last)).replace(**dict.fromkeys(BETWEEN))
    return _in_place(m, start, last, end)


def _in_place(m: Model, start: Data, last: Data, d: Data) -> Data:
    """Trees that did not move in a step have exactly the frames of its start."""
    stays = ~in_trees(qpos_tree(m), last.qpos != start.qpos, m.ntree) | (last.tree_asleep >= 0)
    stays = take(stays, np.maximum(m.body_treeid, 0)) & column(m.body_treeid >= 0, d.qpos)
    return d.replace(**{n: select(stays, getattr(start, n), getattr(d, n)) for n in FRAMES})


FRAMES = ("xpos", "xquat")
AT_START = ("readings", "frames")  # working values that stages leave
BETWEEN = tuple(n for n in Data.working if n not in AT_START)
BEGUN = ("time", "time_low", "qpos", "qvel", "act", "history", "history_low")
ADVANCED = (*BEGUN, "plastic", "plugin_state")
# by which they yield
OF_FLEXES = ("xpos", "xquat", "xmat", "subtree_com", "cdof", "flexvert_xpos")
OF_TENDONS = ("ten_length", "ten_J")


def advance(m: Model, d: Data, acc: Array, vel: Array | None = None) -> Data:
    """The state one time step later.

    Args:
      m: model.
      d: data with the activation rates and the acceleration, which starts the next step's solver.
      acc: acceleration `[nv, *W]`.
      vel: velocity along which the configuration moves; None: the new velocity.
    """
    d = acted(m, d)
    return moved(m, rest(m, d) if may_stir(m) else d, acc, vel)


def acted(m: Model, d: Data) -> Data:
    """The histories and the activations one time step later."""
    d = d.replace(**recorded(m, d))
    act = nearest_activation(m, d, next_activation(m, d))
    return d.replace(act=orientation.anchored(m, act))


def moved(m: Model, d: Data, acc: Array, vel: Array | None = None) -> Data:
    """The rest of the state one time step later; see `advance`."""
    h = m.opt.timestep
    qvel = d.qvel + h * acc
    qpos = integrate_pos(m, d.qpos, qvel if vel is None else vel, h)
    if sleeps(m):
        qvel = jnp.where(dof_awake(m, d), qvel, d.qvel)
        qpos = jnp.where(qpos_awake(m, d), qpos, d.qpos)
    plastic = yielded(m, d, qpos, qvel if vel is None else vel)
    # the flag ipc, whose turns are many problems, leaves the start of the solver as it is
    warm = d.qacc_warmstart if m.opt.enableflags & EnableBit.IPC else d.qacc
    new = d.replace(**later(d, h), qpos=qpos, qvel=qvel, plastic=plastic, qacc_warmstart=warm)
    return plugins.advance(m, new)


def rest(m: Model, d: Data) -> Data:
    """Puts trees to sleep that have rested long enough.

    They stand still from now on. In a world where one falls asleep all that follows from the
    velocities is found again, and stays with the trees while they sleep.
    """
    number, falls = fall_asleep(m, d)
    some = falls.any(axis=0, keepdims=True)
    names = tuple(n for n in FROM_VELOCITY if getattr(d, n) is not None)

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
    """Forward dynamics without sensors."""
    energies = m.opt.enableflags & EnableBit.ENERGY
    d = fwd_position(m, d)
    d = energy_pos(m, d) if energies else d
    d = fwd_velocity(m, d)
    d = energy_vel(m, d) if energies else d
    for part in (control, fwd_actuation, smooth_force, fwd_constraint):
        d = part(m, d)
    return d


def _kept(like: Data, d: Data) -> Data:
    """What one data has of another."""
    names = (*Data.fields, *Data.working)
    return d.replace(**{n: None for n in names if getattr(like, n) is None})
