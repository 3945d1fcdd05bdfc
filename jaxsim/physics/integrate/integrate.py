"""Time integrators: from the acceleration to the next state.

MuJoCo's documentation, Computation: Numerical integration. All but RK4 are semi-implicit Euler with
different effective inertias (effective_inertia.py). A step ends with activations, histories, sleep,
velocity, configuration, plastic state and plugins, in this order.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import DynType, EnableBit, IntegratorType
from jaxsim.math import select_where
from jaxsim.model.data import ROW_FIELDS, Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator import orientation, plugins
from jaxsim.physics.actuator.actuation import next_activation
from jaxsim.physics.actuator.setpoint import has_circular_setpoints, nearest_activation
from jaxsim.physics.body.configuration import displacement_rate, integrate_pos
from jaxsim.physics.body.singular_inertia import count_massless
from jaxsim.physics.callback import stage_inputs
from jaxsim.physics.history.clock import advance_clock
from jaxsim.physics.history.write import record_history
from jaxsim.physics.integrate.effective_inertia import effective_inertia
from jaxsim.physics.ipc.pipeline import solve_without_penetration
from jaxsim.physics.passive.plastic import advance_plastic_state
from jaxsim.physics.pipeline.forward import from_velocity, to_position
from jaxsim.physics.pipeline.sleeping import PASSIVE_AND_BIAS_FORCES
from jaxsim.physics.sleep.sleep_islands import fall_asleep
from jaxsim.physics.sleep.trees import (
    can_sleep,
    can_wake,
    dof_awake,
    qpos_awake,
    qpos_tree,
    trees_with_objects,
    update_sleep_counts,
)
from jaxsim.transforms.platform import platform


def single_step(m: Model, d: Data, kind: IntegratorType | None = None) -> Data:
    """Integrate by semi-implicit Euler, with the implicit forces of an integrator.

    `kind` is the integrator; None: the model's. Corresponds to `mj_Euler` and `mj_implicit` in
    MuJoCo.

    (M + h D) a = qfrc_smooth + qfrc_constraint qvel += h a,   qpos moves along the new qvel
    """
    # Mode ipc: the step itself resolves contacts.
    if m.resolves_shells and kind in (None, IntegratorType.DISCRETE):
        d = solve_without_penetration(m, d)
        return advance(m, d, d.qacc)
    inertia = effective_inertia(m, d, kind)
    if inertia is None:
        return advance(m, d, d.qacc)
    d = count_massless(d, inertia.matrix.diagonal)
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
    unseen = dict.fromkeys(_BODY_FRAME_FIELDS) if can_sleep(m) else {}
    d = d.replace(**dict.fromkeys(Data.working))  # each stage computes its own
    first = (d.qvel, d.qacc, d.act_dot)

    # One stage: advance from the start along the last slope, and evaluate the dynamics.
    def stage(carry, part):
        before, (vel, acc, act_dot), mean = carry
        fraction, weight = part
        dt = fraction * h
        # State at this stage.
        there = d.replace(
            **advance_clock(d, dt),
            qpos=integrate_pos(m, d.qpos, vel, dt),
            qvel=d.qvel + dt * acc,
            act=d.act + dt * act_dot,
            qacc_warmstart=acc,
            warning=before.warning,
            warning_lastinfo=before.warning_lastinfo,
            tree_asleep=before.tree_asleep,
            **unseen,
            **stage_inputs(m, before),
        )
        there = from_velocity(m, to_position(m, there, sensors=False), sensors=False)
        # Slope at this stage, and its weight in the mean.
        slope = (displacement_rate(m, dt * vel, there.qvel), there.qacc, there.act_dot)
        mean = jax.tree.map(lambda a, b: a + weight * b, mean, slope)
        left = {name: getattr(there, name) for name in _INTERMEDIATE_FIELDS} if can_sleep(m) else {}
        return (_copy_fields(d, there), slope, mean), left

    # Butcher tableau of RK4; the first stage is the forward pass of the step.
    dtype = d.qpos.dtype
    parts = (np.array([1 / 2, 1 / 2, 1], dtype), np.array([1 / 3, 1 / 3, 1 / 6], dtype))
    start = (d, first, jax.tree.map(lambda a: a / 6, first))
    (last, _, (vel, acc, act_dot)), left = lax.scan(stage, start, parts)
    # Activations advance along their mean rate, with the working values of the start.
    from_start = d.replace(act_dot=act_dot, **at_start, **stage_inputs(m, last))
    new = advance_activations(m, from_start)
    return _finish_rk4(m, d, last, new, vel, acc, left)


def _finish_rk4(
    m: Model, d: Data, last: Data, new: Data, vel: Array, acc: Array, left: dict
) -> Data:
    """Return the end of a step by RK4: put trees to sleep, and advance along the mean slope.

    Args:
      m: the model.
      d, last: the start of the step, and the last stage.
      new: the start with advanced activations.
      vel, acc: mean slope of the configuration and of the velocity, `[nv, *W]`.
      left: working values of each stage, with a leading stage axis; empty if no tree can sleep.
    """
    end = _restore_start_results(m, d, last)
    # Sleep, by the velocities of the start and the islands of the last stage.
    if can_sleep(m):
        end = _fallen_asleep(m, d, last, end, new, left)
        new = new.replace(qvel=end.qvel, tree_asleep=end.tree_asleep)
    new = integrate_position(m, new, acc, vel)
    end = end.replace(**{n: getattr(new, n) for n in _ADVANCED_FIELDS})
    return end.replace(qacc=acc, qacc_warmstart=last.qacc)


def _restore_start_results(m: Model, start: Data, last: Data) -> Data:
    """Replace results of the last stage by those of the start where the step uses them."""
    end = last
    # Plasticity uses positions of the start.
    if m.nplastic:
        names = OF_FLEXES + OF_TENDONS if np.any(m.flex_plasticadr >= 0) else OF_TENDONS
        end = end.replace(**{n: getattr(start, n) for n in names})
    back = has_circular_setpoints(m)
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
    begun = {n: getattr(new, n) for n in _STEP_STATE_FIELDS}
    # Islands and working values of the last stage.
    of_last = jax.tree.map(lambda a: a[-1], left)
    end = put_to_sleep(m, end.replace(**begun, **of_last)).replace(
        **dict.fromkeys(_INTERMEDIATE_FIELDS)
    )
    return _keep_resting_frames(m, start, last, end)


def _keep_resting_frames(m: Model, start: Data, last: Data, d: Data) -> Data:
    """Restore the exact frames of the start for trees that did not move."""
    # Trees whose qpos did not change.
    stays = ~trees_with_objects(qpos_tree(m), last.qpos != start.qpos, m.ntree) | (
        last.tree_asleep >= 0
    )
    stays = gather_static(stays, np.maximum(m.body_treeid, 0)) & column(m.body_treeid >= 0, d.qpos)
    return d.replace(
        **{n: select_where(stays, getattr(start, n), getattr(d, n)) for n in _BODY_FRAME_FIELDS}
    )


_BODY_FRAME_FIELDS = ("xpos", "xquat")
AT_START = ("readings", "frames")  # working values that outlive the stages
_INTERMEDIATE_FIELDS = tuple(n for n in Data.working if n not in AT_START)
_STEP_STATE_FIELDS = ("time", "time_low", "qpos", "qvel", "act", "history", "history_low")
_ADVANCED_FIELDS = (*_STEP_STATE_FIELDS, "plastic", "plugin_state")
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
    d = advance_activations(m, d)
    return integrate_position(m, put_to_sleep(m, d) if can_wake(m) else d, acc, vel)


def advance_activations(m: Model, d: Data) -> Data:
    """Advance histories and activations by one time step."""
    # Histories first: they store the controls of this step.
    d = d.replace(**record_history(m, d))
    act = nearest_activation(m, d, next_activation(m, d))
    return d.replace(act=orientation.wrap_goals(m, act))


def integrate_position(m: Model, d: Data, acc: Array, vel: Array | None = None) -> Data:
    """Advance the rest of the state by one time step; see `advance`."""
    h = m.opt.timestep
    # Semi-implicit: the new velocity moves the configuration.
    qvel = d.qvel + h * acc
    qpos = integrate_pos(m, d.qpos, qvel if vel is None else vel, h)
    # Sleeping dofs keep their state.
    if can_sleep(m):
        qvel = jnp.where(dof_awake(m, d), qvel, d.qvel)
        qpos = jnp.where(qpos_awake(m, d), qpos, d.qpos)
    # Plastic state, then clock and warm start.
    plastic = advance_plastic_state(m, d, qpos, qvel if vel is None else vel)
    # Under the flag ipc a step has many solves, and the warm start is left unchanged.
    warm = d.qacc_warmstart if m.opt.enableflags & EnableBit.IPC else d.qacc
    new = d.replace(
        **advance_clock(d, h), qpos=qpos, qvel=qvel, plastic=plastic, qacc_warmstart=warm
    )
    return plugins.advance_plugin_states(m, new)


def put_to_sleep(m: Model, d: Data) -> Data:
    """Put trees to sleep that have rested long enough.

    Their velocity is zero from now on. In a world where a tree falls asleep all results that follow
    from velocities are recomputed, and kept with the trees while they sleep.
    """
    number, falls = fall_asleep(m, d)
    some = falls.any(axis=0, keepdims=True)
    names = tuple(n for n in FROM_VELOCITY if getattr(d, n) is not None)

    # Recompute only in worlds where a tree falls asleep.
    def stored_results(d: Data) -> dict:
        return {n: getattr(d, n) for n in names}

    def recompute_results(d: Data) -> dict:
        return select_where(some, stored_results(from_velocity(m, d)), stored_results(d))

    still = d.replace(qvel=jnp.where(gather_static(falls, m.dof_treeid), 0, d.qvel))
    if platform().branches:
        results = lax.cond(
            jnp.any(some), lambda: recompute_results(still), lambda: stored_results(still)
        )
    else:
        results = recompute_results(still)
    return update_sleep_counts(m, still.replace(**results, tree_asleep=number))


FROM_VELOCITY = (
    *("solver_niter", "solver", "contact", "ten_velocity", "actuator_velocity", "cvel", "cdof_dot"),
    *(
        "act_dot",
        "subtree_linvel",
        "subtree_angmom",
        "cacc",
        "cfrc_int",
        "cfrc_ext",
        *PASSIVE_AND_BIAS_FORCES,
    ),
    *("actuator_force", "qfrc_actuator", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc"),
    *("sensordata", "energy", *ROW_FIELDS),
)


def _copy_fields(like: Data, d: Data) -> Data:
    """Restrict a Data to the fields that another has."""
    names = (*Data.fields, *Data.working)
    return d.replace(**{n: None for n in names if getattr(like, n) is None})
