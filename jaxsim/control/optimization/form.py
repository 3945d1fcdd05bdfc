"""Schema of an optimization file; docs/control.md, Optimize from a file, has an example."""

from dataclasses import dataclass

from jaxsim.control.norms import NORMS
from jaxsim.control.sampling import SPLINE_BASES
from jaxsim.io.config import setting

MAX_ARRAY = 10_000_000  # largest array dimension, checked before memory is computed
_MAX_ROLLOUT_STEPS = 1_000_000_000
MAX_SECONDS = 1e9

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")

OPTIMIZATION_METHODS = ("ilqr", "multiple_shooting", "shoot", "predictive_sampling", "mppi", "cem")


@dataclass(frozen=True)
class MotionStart:
    """Initial state of the motion: a keyframe, with changes by joint."""

    key: str | None = setting(None, doc="a keyframe; default: the reference pose, at rest")
    qpos: dict[str, tuple[float, ...]] = setting(dict, doc="positions by joint [m or rad]")
    qvel: dict[str, tuple[float, ...]] = setting(dict, doc="velocities by joint [m/s or rad/s]")


@dataclass(frozen=True)
class Guess:
    """Initial guess of the search."""

    ctrl: dict[str, float] = setting(dict, doc="constant controls by actuator; others are zero")
    motion: str | None = setting(None, doc="a motion file whose controls of world 0 are the guess")
    knots: int = setting(
        6,
        doc="knots of the splines that perturb additional guesses",
        least=1,
        most=MAX_ARRAY,
    )


@dataclass(frozen=True)
class Ilqr:
    """Settings of iLQR."""

    tolerance: float = setting(1e-6, doc="convergence tolerance, relative to the cost", above=0)


@dataclass(frozen=True)
class MultipleShooting:
    """Settings of multiple shooting."""

    nodes: int | None = setting(
        None,
        doc="number of pieces; divides the steps; default: one per step",
        least=1,
        most=MAX_ARRAY,
    )
    line_to: str | None = setting(None, doc="a keyframe: states on a line to it are the guess")
    tolerance: float = setting(1e-6, doc="convergence tolerance, relative to the cost", above=0)


@dataclass(frozen=True)
class Shoot:
    """Settings of shooting."""

    rate: float = setting(0.05, doc="step length of Adam", above=0)


@dataclass(frozen=True)
class Sampling:
    """Settings of predictive sampling, MPPI and CEM."""

    samples: int = setting(64, doc="motions per iteration", least=1, most=MAX_ARRAY)
    knots: int = setting(6, doc="knots of the spline of a plan", least=1, most=MAX_ARRAY)
    sigma: float = setting(0.3, doc="standard deviation of the knots, in half ranges", above=0)
    interpolation: str = setting(
        "cubic", doc="interpolation between knots", choices=tuple(SPLINE_BASES)
    )


@dataclass(frozen=True)
class Mppi:
    """Settings of MPPI alone."""

    temperature: float = setting(
        0.1, doc="increase of cost that lowers a weight by a factor e", above=0
    )


@dataclass(frozen=True)
class Cem:
    """Settings of CEM alone."""

    elites: int = setting(8, doc="number of best plans that are used", least=1, most=MAX_ARRAY)
    least_sigma: float = setting(0.02, doc="lower bound of the deviation, in half ranges", above=0)


@dataclass(frozen=True)
class CostForm:
    """One term: weight norm(of - minus - target)."""

    name: str = setting(doc="name of the term")
    of: str = setting(doc="quantity: sensor:NAME, qpos:JOINT, body:NAME.xpos, ctrl, ...")
    minus: str | None = setting(None, doc="quantity that is subtracted")
    target: tuple[float, ...] = setting((), doc="target value; default: zero")
    weight: float = setting(1.0, doc="weight at each step", least=0)
    terminal: float | None = setting(None, doc="weight at the end; default: `weight`", least=0)
    norm: str = setting("quadratic", doc="norm of the residual", choices=tuple(NORMS))
    parameters: tuple[float, ...] = setting((), doc="parameters of the norm; default: its own")


@dataclass(frozen=True, kw_only=True)
class ProblemForm:
    """A model, a start, costs, and the settings of methods."""

    model: str = setting(doc="a model file, relative to this one, or task:NAME")
    cost: tuple[CostForm, ...] = setting(doc="terms of the cost: [[cost]] tables")
    timestep: float | None = setting(
        None, doc="overrides the model's [s]", above=0, most=MAX_SECONDS
    )
    integrator: str | None = setting(None, doc="overrides the model's", choices=INTEGRATORS)
    contacts: int | None = setting(None, doc="contact capacity", least=1, most=2**20)
    start: MotionStart = setting(MotionStart, doc="initial state")
    limits: dict[str, tuple[float, ...]] = setting(
        dict, doc="[lowest, highest] control by actuator"
    )
    ilqr: Ilqr = setting(Ilqr, doc="settings")
    shoot: Shoot = setting(Shoot, doc="settings")
    sampling: Sampling = setting(Sampling, doc="settings of the three sampling methods")
    mppi: Mppi = setting(Mppi, doc="settings")
    cem: Cem = setting(Cem, doc="settings")
    seed: int = setting(0, doc="random seed", least=0, most=2**31 - 1)
    record: tuple[str, ...] = setting(
        ("time", "qpos", "qvel", "ctrl"), doc="fields of the motion file"
    )


@dataclass(frozen=True, kw_only=True)
class OptimizationForm(ProblemForm):
    """An optimization file."""

    steps: int | None = setting(
        None, doc="length of the motion, or `seconds`", least=1, most=_MAX_ROLLOUT_STEPS
    )
    seconds: float | None = setting(None, doc="length of the motion [s]", above=0, most=MAX_SECONDS)
    smooth: tuple[float, ...] = setting(
        (),
        doc="distances at which contacts start to act [m], one stage of the search each",
        least=0,
        most=1e6,
    )
    method: str = setting("ilqr", doc="optimization method", choices=OPTIMIZATION_METHODS)
    iterations: int = setting(50, doc="iterations of each stage", least=1, most=MAX_ARRAY)
    report: int = setting(10, doc="iterations between progress lines", least=1, most=MAX_ARRAY)
    multiple_shooting: MultipleShooting = setting(MultipleShooting, doc="settings")
    guess: Guess = setting(Guess, doc="initial guess")
    guesses: int = setting(
        1,
        doc="number of guesses to search from; the best result is kept",
        least=1,
        most=MAX_ARRAY,
    )
    spread: float = setting(
        0.3, doc="spread of the guesses, in half ranges of the controls", least=0
    )
