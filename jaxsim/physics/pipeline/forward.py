"""Forward dynamics of one step: the stages of the table, in their order.

MuJoCo's documentation, Programming: Simulation loop; Computation: Forward dynamics. stages.py has
the table; each stage is a pure function `(m, d) -> d` in a module of its own.
"""

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.callback import call_control
from jaxsim.physics.pipeline.row import StageRow
from jaxsim.physics.pipeline.stages import (
    DYNAMICS,
    MAKE_ROWS,
    POSITION,
    SENSORS,
    TO_ACCELERATION,
    TO_POSITION,
    TO_VELOCITY,
    VELOCITY,
)


def run_stages(m: Model, d: Data, stages: tuple[StageRow, ...], sensors: bool = True) -> Data:
    """Run stages as a step does: one after the other, with what follows for sleeping trees.

    Args:
      m: model.
      d: data before the first of them.
      stages: rows of the table.
      sensors: False: omit the stages of sensors.
    """
    before = d
    for stage in stages:
        if not stage.runs(m) or (stage.name in SENSORS and not sensors):
            continue
        d = stage.call(m, d)
        if stage.sleeping is not None:
            d = stage.sleeping(m, before, d)
    return d


def forward(m: Model, d: Data) -> Data:
    """Compute everything that follows from state and inputs, up to `qacc` and sensors.

    Corresponds to `mj_forward` in MuJoCo.

    Example:
      >>> level = d.replace(qpos=jnp.full(1, jnp.pi / 2))  # a pendulum held level
      >>> round(float(jax.jit(jaxsim.forward)(m, level).qacc[0]), 2)
      -9.77
    """
    return from_velocity(m, to_position(m, d))


def run_step1(m: Model, d: Data) -> Data:
    """Compute what follows from positions and velocities, including their sensors.

    Forces, accelerations and acceleration-stage sensors keep their values. Corresponds to
    `mj_step1` in MuJoCo.
    """
    return velocity_stages(m, to_position(m, d))


def from_velocity(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the forward dynamics from the velocity stages on."""
    return from_control(m, velocity_stages(m, d, sensors), sensors)


def to_position(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the position stages, with their sensors and the potential energy."""
    return run_stages(m, d, TO_POSITION, sensors)


def velocity_stages(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the velocity stages, with their sensors and the kinetic energy."""
    return run_stages(m, d, TO_VELOCITY, sensors)


def from_control(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the forward dynamics from the control callback on."""
    return from_actuation(m, call_control(m, d), sensors)


def from_actuation(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the forward dynamics from actuation on."""
    return run_stages(m, d, TO_ACCELERATION, sensors)


def fwd_position(m: Model, d: Data) -> Data:
    """Run the position stages; corresponds to `mj_fwdPosition` in MuJoCo."""
    return run_stages(m, d, POSITION)


def fwd_velocity(m: Model, d: Data) -> Data:
    """Run the velocity stages and make the constraint rows, whose reference depends on velocity."""
    return run_stages(m, d, VELOCITY + MAKE_ROWS)


def fwd_dynamics(m: Model, d: Data) -> Data:
    """Compute the acceleration from positions, velocities and controls, without sensors."""
    return run_stages(m, d, DYNAMICS)
