"""Constants and rules of computed model fields, shared by the compiler (numpy) and the physics.

Also the request for length ranges of actuators, which the compiler makes and the physics serves.
"""

from dataclasses import dataclass

from jaxsim.errors import SourceLocation

SLIDERS_ONLY = 2  # body_simple of a body with slide joints along its own axes only
AUTOMATIC_LENGTH = -1.0  # spring length that the compiler computes
# entry of the table `actuator_origin` for a servo whose damping the file gives as a ratio
DAMPING_RATIO = ("dampratio",)
MIN_BODY_SIZE = 1e-5  # smallest size of a body [m]

# Fields of `stat`, and their values for a model without bodies or dofs.
STATISTICS = ("meaninertia", "meanmass", "meansize", "extent", "center")
NO_INERTIA, NO_MASS, NO_SIZE, NO_EXTENT = 1.0, 1.0, 0.2, 2.0
INFINITE_PLANE = 0.01  # half size used for an infinite plane [m]
FINITE_PLANE = 0.1  # fraction of its size used for a finite plane


@dataclass(frozen=True)
class ActuatorOutput:
    """An actuator whose length range is computed: its force output, and its name for messages."""

    output: int
    label: str
    place: SourceLocation


@dataclass(frozen=True)
class LengthRanges:
    """Length ranges to be computed by simulation; the settings are those of `<lengthrange>`.

    Attributes:
      pullers: the actuators.
      accel: target joint acceleration of the pulling force [m/s^2 or rad/s^2].
      maxforce: largest norm of the generalized force; 0: no bound.
      timeconst: time constant of the decay of velocities [s].
      timestep: time step of the simulation [s]; 0: that of the model.
      inttotal: duration of the simulation [s].
      interval: final interval in which the length is measured [s].
      tolrange: largest spread of a converged length, as a fraction of its range.
    """

    pullers: tuple[ActuatorOutput, ...]
    accel: float
    maxforce: float
    timeconst: float
    timestep: float
    inttotal: float
    interval: float
    tolrange: float
