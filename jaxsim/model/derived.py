"""What the compiler and the physics both say of numbers that follow from others.

The compiler finds them with numpy, the physics with JAX: the rules that both obey stand here.
"""

from dataclasses import dataclass

from jaxsim.enums import GeomType
from jaxsim.errors import Place

SLIDERS_ONLY = 2  # body_simple of a body that only slides, along its own axes
AUTOMATIC = -1.0  # a spring length that the compiler is to measure
SHORTEST = 1e-5  # least size of a body [m]

# `stat`, and its values for a model without bodies or dofs
STATISTICS = ("meaninertia", "meanmass", "meansize", "extent", "center")
NO_INERTIA, NO_MASS, NO_SIZE, NO_EXTENT = 1.0, 1.0, 0.2, 2.0
INFINITE_PLANE = 0.01  # half size that a plane without limits counts with [m]
FINITE_PLANE = 0.1  # share of its size that a plane with limits counts with

# Semi-axes of the ellipsoid that stands for a geom in the fluid model: the places of the sizes that
# are added up to each of the three. Kinds that are not here have their sizes as semi-axes.
SEMIAXES = {
    GeomType.SPHERE: ((0,), (0,), (0,)),
    GeomType.CAPSULE: ((0,), (0,), (0, 1)),
    GeomType.CYLINDER: ((0,), (0,), (1,)),
}
OWN_SEMIAXES = ((0,), (1,), (2,))

# 15-point Gauss-Kronrod rule on [0, 1], in the eight decimals that MuJoCo computes with: the
# virtual mass of thin ellipsoids tells them from the exact numbers.
NODES = (
    *(0.00427231, 0.02544604, 0.06756779, 0.12923441, 0.20695638, 0.29707742, 0.39610752),
    *(0.5, 0.60389248, 0.70292258, 0.79304362, 0.87076559, 0.93243221, 0.97455396, 0.99572769),
)
WEIGHTS = (
    *(0.01146766, 0.03154605, 0.05239501, 0.07032663, 0.08450236, 0.09517529, 0.10221647),
    *(0.10474107, 0.10221647, 0.09517529, 0.08450236, 0.07032663, 0.05239501, 0.03154605),
    0.01146766,
)


@dataclass(frozen=True)
class Puller:
    """An actuator whose range is wanted: its force output, and how messages name it."""

    output: int
    label: str
    place: Place


@dataclass(frozen=True)
class LengthRanges:
    """Ranges to be found by simulation; the numbers are those of `<lengthrange>`.

    Attributes:
      pullers: the actuators.
      accel: joint acceleration that the pulling force aims at [m/s^2 or rad/s^2].
      maxforce: largest norm of the generalized force; 0: no bound.
      timeconst: time constant of the decay of velocities [s].
      timestep: step of the simulation [s]; 0: the model's own.
      inttotal: length of the simulation [s].
      interval: end of it over which the length is measured [s].
      tolrange: largest spread of a length that has settled, as a share of its range.
    """

    pullers: tuple[Puller, ...]
    accel: float
    maxforce: float
    timeconst: float
    timestep: float
    inttotal: float
    interval: float
    tolrange: float
