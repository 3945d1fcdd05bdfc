"""What an optimisation file may say. docs/control.md, An optimisation as a file, has an example."""

from dataclasses import dataclass

from jaxsim.control.norms import NORMS
from jaxsim.control.sampling import BASES
from jaxsim.io.config import setting

MAX_SIZE = 10_000_000  # of what there is an array of, before its memory is computed
MAX_STEPS = 1_000_000_000
MAX_SECONDS = 1e9

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")

METHODS = ("ilqr", "multiple_shooting", "shoot", "predictive_sampling", "mppi", "cem")


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
    knots: int = setting(
        6, doc="of the splines that several guesses differ by", least=1, most=MAX_SIZE
    )


@dataclass(frozen=True)
class Ilqr:
    """Settings of iLQR."""

    tolerance: float = setting(1e-6, doc="relative fall of the cost that is no more", above=0)


@dataclass(frozen=True)
class MultipleShooting:
    """Settings of multiple shooting."""

    nodes: int | None = setting(
        None, doc="pieces; divides the steps; without it all", least=1, most=MAX_SIZE
    )
    line_to: str | None = setting(None, doc="a key frame: states on a line to it are the guess")
    tolerance: float = setting(1e-6, doc="relative fall of the cost that is no more", above=0)


@dataclass(frozen=True)
class Shoot:
    """Settings of shooting."""

    rate: float = setting(0.05, doc="step length of Adam", above=0)


@dataclass(frozen=True)
class Sampling:
    """Settings of predictive sampling, MPPI and CEM."""

    samples: int = setting(64, doc="motions a turn", least=1, most=MAX_SIZE)
    knots: int = setting(6, doc="of the spline of a plan", least=1, most=MAX_SIZE)
    sigma: float = setting(0.3, doc="spread of the knots, in half ranges", above=0)
    interpolation: str = setting("cubic", doc="between knots", choices=tuple(BASES))


@dataclass(frozen=True)
class Mppi:
    """Settings of MPPI alone."""

    temperature: float = setting(0.1, doc="how much dearer counts 1/e, in units of cost", above=0)


@dataclass(frozen=True)
class Cem:
    """Settings of CEM alone."""

    elites: int = setting(8, doc="plans that count", least=1, most=MAX_SIZE)
    least_sigma: float = setting(0.02, doc="least spread, in half ranges", above=0)


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
    steps: int | None = setting(
        None, doc="length of the motion, or `seconds`", least=1, most=MAX_STEPS
    )
    seconds: float | None = setting(None, doc="length of the motion [s]", above=0, most=MAX_SECONDS)
    timestep: float | None = setting(
        None, doc="instead of the model's [s]", above=0, most=MAX_SECONDS
    )
    integrator: str | None = setting(None, doc="instead of the model's", choices=INTEGRATORS)
    contacts: int | None = setting(None, doc="contacts there is room for", least=1, most=2**20)
    smooth: tuple[float, ...] = setting(
        (),
        doc="lengths from which contacts are felt [m], one stage of the search each",
        least=0,
        most=1e6,
    )
    start: Start = setting(Start, doc="where the motion begins")
    limits: dict[str, tuple[float, ...]] = setting(dict, doc="least and most by actuator")
    method: str = setting("ilqr", doc="how controls are sought", choices=METHODS)
    iterations: int = setting(50, doc="turns, of each length of `smooth`", least=1, most=MAX_SIZE)
    report: int = setting(10, doc="turns between two lines of progress", least=1, most=MAX_SIZE)
    ilqr: Ilqr = setting(Ilqr, doc="settings")
    multiple_shooting: MultipleShooting = setting(MultipleShooting, doc="settings")
    shoot: Shoot = setting(Shoot, doc="settings")
    sampling: Sampling = setting(Sampling, doc="settings of the three methods that follow")
    mppi: Mppi = setting(Mppi, doc="settings")
    cem: Cem = setting(Cem, doc="settings")
    guess: Guess = setting(Guess, doc="what the search begins with")
    guesses: int = setting(
        1, doc="searches from different guesses; the best counts", least=1, most=MAX_SIZE
    )
    spread: float = setting(0.3, doc="of the guesses, in half ranges of the controls", least=0)
    seed: int = setting(0, doc="of the random numbers", least=0, most=2**31 - 1)
    record: tuple[str, ...] = setting(
        ("time", "qpos", "qvel", "ctrl"), doc="fields of the motion file"
    )
