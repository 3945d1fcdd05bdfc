"""Schema of a control loop file; docs/mpc.md has an example."""

from dataclasses import dataclass

from jaxsim.control.optimization.form import MAX_ARRAY, MAX_SECONDS, ProblemForm
from jaxsim.control.receding_horizon import PLANNING_METHODS
from jaxsim.io.config import setting


@dataclass(frozen=True)
class PlantForm:
    """The plant: the model of the file, unless changed here."""

    model: str | None = setting(None, doc="a model file, relative to this one; default: `model`")
    timestep: float | None = setting(
        None, doc="overrides the model's [s]", above=0, most=MAX_SECONDS
    )
    scale: dict[str, float] = setting(
        dict, doc="factors by parameter, such as body:pole/mass", above=0, most=1e6
    )


@dataclass(frozen=True)
class DisturbanceForm:
    """A force and a torque on a body of the plant, for some time."""

    body: str = setting(doc="name of the body")
    at: float = setting(doc="time of its start [s]", least=0, most=MAX_SECONDS)
    seconds: float = setting(0.1, doc="duration [s]", above=0, most=MAX_SECONDS)
    force: tuple[float, ...] = setting((), doc="at the center of mass, in the world [N]")
    torque: tuple[float, ...] = setting((), doc="in the world [N m]")


@dataclass(frozen=True)
class ConstantGuess:
    """First guess of the controls."""

    ctrl: dict[str, float] = setting(dict, doc="constant controls by actuator; others are zero")


@dataclass(frozen=True, kw_only=True)
class ClosedLoopForm(ProblemForm):
    """A control loop file."""

    method: str = setting("ilqr", doc="planning method", choices=tuple(PLANNING_METHODS))
    horizon: int = setting(25, doc="steps of a plan", least=1, most=MAX_ARRAY)
    iterations: int = setting(1, doc="iterations per plan", least=1, most=MAX_ARRAY)
    rate: float = setting(50.0, doc="plans per second [Hz]", above=0, most=1e6)
    seconds: float = setting(5.0, doc="length of the run [s]", above=0, most=MAX_SECONDS)
    plant: PlantForm = setting(PlantForm, doc="the plant")
    disturbance: tuple[DisturbanceForm, ...] = setting(
        (), doc="pushes on the plant: [[disturbance]] tables"
    )
    guess: ConstantGuess = setting(ConstantGuess, doc="first guess of the controls")
