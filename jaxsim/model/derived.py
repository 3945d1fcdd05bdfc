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

# 15-point Gauss-Kronrod rule on [-1, 1]: the nodes from the end to the middle, and their weights.
NODES = [
    0.991455371120812639206854697526329,
    0.949107912342758524526189684047851,
    0.864864423359769072789712788640926,
    0.741531185599394439863864773280788,
    0.586087235467691130294144691258662,
    0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
    0.0,
]
WEIGHTS = [
    0.022935322010529224963732008058970,
    0.063092092629978553290700663189204,
    0.104790010322250183839876322541518,
    0.140653259715525918745189590510238,
    0.169004726639267902826583426598550,
    0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
    0.209482141084727828012999174891714,
]


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
