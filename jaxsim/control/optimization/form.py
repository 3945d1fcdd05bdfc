"""What an optimisation file may say. docs/control.md, An optimisation as a file, has an example."""

from dataclasses import dataclass

from jaxsim.control.norms import NORMS
from jaxsim.io.config import setting

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")

# the settings of each method, besides `name`, `iterations` and `report`
SAMPLED = ("samples", "knots", "sigma", "interpolation")
SETTINGS = {
    "ilqr": ("tolerance",),
    "multiple_shooting": ("tolerance", "nodes"),
    "shoot": ("rate",),
    "predictive_sampling": SAMPLED,
    "mppi": (*SAMPLED, "temperature"),
    "cem": (*SAMPLED, "elites", "least_sigma"),
}


@dataclass(frozen=True)
class Start:
    """Where the motion begins: a key frame, changed by joint."""

    key: str | None = setting(None, doc="a key frame; without it the reference pose, at rest")
    qpos: dict[str, tuple[float, ...]] = setting(dict, doc="positions by joint [m or rad]")
    qvel: dict[str, tuple[float, ...]] = setting(dict, doc="velocities by joint [m/s or rad/s]")


@dataclass(frozen=True)
class Guess:
    """What the search begins with."""

    ctrl: dict[str, float] = setting(dict, doc="constant controls by actuator; others are zero")
    motion: str | None = setting(None, doc="a motion file whose controls of world 0 are the guess")
    knots: int = setting(6, doc="of the splines that several guesses differ by", least=1)
    line_to: str | None = setting(
        None, doc="multiple shooting: a key frame, states on a line to it are guessed"
    )


@dataclass(frozen=True)
class Method:
    """How controls are sought; each method has settings of its own (`SETTINGS`)."""

    name: str = setting("ilqr", doc="which", choices=tuple(SETTINGS))
    iterations: int = setting(50, doc="turns, of each length of `smooth`", least=1)
    report: int = setting(10, doc="turns between two lines of progress", least=1)
    tolerance: float | None = setting(
        None, doc="relative fall of the cost that is no more", above=0
    )
    nodes: int | None = setting(None, doc="pieces; divides the steps", least=1)
    rate: float | None = setting(None, doc="step length of Adam (0.05)", above=0)
    samples: int | None = setting(None, doc="motions a turn (64)", least=1)
    knots: int | None = setting(None, doc="knots of a plan (6)", least=1)
    sigma: float | None = setting(None, doc="spread of the knots in half ranges (0.3)", above=0)
    interpolation: str | None = setting(
        None, doc="between knots (cubic)", choices=("zero", "linear", "cubic")
    )
    temperature: float | None = setting(None, doc="in units of cost (0.1)", above=0)
    elites: int | None = setting(None, doc="plans that count (8)", least=1)
    least_sigma: float | None = setting(None, doc="least spread (0.02)", above=0)


@dataclass(frozen=True)
class Cost:
    """One term: weight norm(of - minus - target)."""

    name: str = setting(doc="of the term")
    of: str = setting(doc="what is read: sensor:NAME, qpos:JOINT, body:NAME.xpos, ctrl, ...")
    minus: str | None = setting(None, doc="what is taken away from it, likewise")
    target: tuple[float, ...] = setting((), doc="what it should be; without it zero")
    weight: float = setting(1.0, doc="of each step", least=0)
    terminal: float | None = setting(None, doc="weight at the end; without it `weight`", least=0)
    norm: str = setting("quadratic", doc="of the residual", choices=tuple(NORMS))
    parameters: tuple[float, ...] = setting((), doc="of the norm; without them its defaults")


@dataclass(frozen=True)
class Form:
    """An optimisation file."""

    model: str = setting(doc="a model file, relative to this one, or task:NAME")
    cost: tuple[Cost, ...] = setting(doc="terms of the cost: [[cost]] tables")
    steps: int | None = setting(None, doc="length of the motion, or `seconds`", least=1)
    seconds: float | None = setting(None, doc="length of the motion [s]", above=0)
    timestep: float | None = setting(None, doc="instead of the model's [s]", above=0)
    integrator: str | None = setting(None, doc="instead of the model's", choices=INTEGRATORS)
    contacts: int | None = setting(None, doc="contacts there is room for", least=1)
    smooth: tuple[float, ...] = setting(
        (), doc="lengths from which contacts are felt [m], one stage of the search each", least=0
    )
    start: Start = setting(Start, doc="where the motion begins")
    limits: dict[str, tuple[float, ...]] = setting(dict, doc="least and most by actuator")
    method: Method = setting(Method, doc="how controls are sought")
    guess: Guess = setting(Guess, doc="what the search begins with")
    guesses: int = setting(1, doc="searches from different guesses; the best counts", least=1)
    spread: float = setting(0.3, doc="of the guesses, in half ranges of the controls", least=0)
    seed: int = setting(0, doc="of the random numbers")
    record: tuple[str, ...] = setting(
        ("time", "qpos", "qvel", "ctrl"), doc="fields of the motion file"
    )
