"""The form of an identification file.

    model = "arm.xml"

    [parameters."joint:hinge/damping"]
    form = "log"
    low = 0.01
    high = 10

    [[data]]
    measured = "log.csv"
    sigma = 0.002

A recording is a .csv or .npz file as `read_series` reads it, or several of different rates. Columns
are sensors, "qpos:JOINT", "qvel:JOINT", and "ctrl:ACTUATOR" for what was commanded; `columns` maps
other names to these.
"""

from dataclasses import dataclass

from jaxsim.io.config import setting

_MAX_STUDY_ARRAY = 10_000_000  # of what there is an array of, before its memory is computed
_FORM_NAMES = ("linear", "log", "scale", "pseudo_inertia")


@dataclass(frozen=True)
class ParameterForm:
    """How a parameter is searched; `jaxsim.identify.linear` and its neighbours say more."""

    form: str = setting("log", doc="in what it is searched", choices=_FORM_NAMES)
    low: float | None = setting(None, doc="lower bound; of the factor for scale")
    high: float | None = setting(None, doc="upper bound")
    nominal: float | None = setting(None, doc="first guess; else what the model has")
    mean: float | None = setting(None, doc="of the prior; else the first guess")
    sd: float | None = setting(None, doc="of the prior; relative for log and scale", above=0)
    share: bool = setting(False, doc="whether all objects of the name have one unknown")
    frozen: bool = setting(False, doc="whether it stays at its first guess")


@dataclass(frozen=True)
class DataForm:
    """A recording; names of signals may have wildcards."""

    measured: str | tuple[str, ...] = setting(
        doc="a .csv or .npz file, or a list of files with times of their own"
    )
    controls: str | None = setting(None, doc="a file of controls of other times")
    columns: dict[str, str] = setting(
        dict, doc="signals by the columns of the files, where these have other names"
    )
    signals: tuple[str, ...] = setting((), doc="the signals that count; else all")
    sigma: float | None = setting(None, doc="standard deviation of the noise", above=0, most=1e30)
    sigmas: dict[str, float] = setting(dict, doc="the same by signal", above=0, most=1e30)
    hold: str = setting("zero", doc="controls between samples", choices=("zero", "linear"))
    start: float | None = setting(
        None, doc="time at which the motion starts [s]", least=-1e12, most=1e12
    )
    end: float | None = setting(
        None, doc="time after which nothing counts [s]", least=-1e12, most=1e12
    )
    initial: str = setting(
        "model",
        doc="the state at the start: the model's, or that of the first samples of joints",
        choices=("model", "samples"),
    )
    key: str | None = setting(None, doc="key frame of the state at the start")
    qpos: tuple[float, ...] = setting((), doc="configuration at the start")
    qvel: tuple[float, ...] = setting((), doc="velocity at the start")
    estimate: tuple[str, ...] | dict[str, float] = setting(
        tuple,
        doc="parts of the state at the start that are not known: a list of qpos, qvel, act without "
        "a prior, or a table of their deviations",
    )


@dataclass(frozen=True)
class FitForm:
    """How it is fitted; `jaxsim.identify.fit` says more."""

    starts: int = setting(8, doc="first guesses, side by side", least=1, most=_MAX_STUDY_ARRAY)
    iterations: int = setting(50, doc="of each start, at most", least=1, most=100_000)
    segments: int | None = setting(
        None, doc="steps of a piece, for multiple shooting", least=1, most=_MAX_STUDY_ARRAY
    )
    tolerance: float = setting(1e-4, doc="deviation of the state's jump between pieces", above=0)
    batch: int | None = setting(
        None, doc="starts that are done together", least=1, most=_MAX_STUDY_ARRAY
    )
    seed: int = setting(0, doc="of the guesses", least=0, most=2**31 - 1)
    level: float = setting(0.95, doc="of the intervals", above=0, most=1)


@dataclass(frozen=True, kw_only=True)
class Study:
    """An identification."""

    model: str = setting(doc="a model in MJCF or URDF, beside this file")
    free: tuple[str, ...] = setting(
        (),
        doc="fields that are live though they are zero in the file; those of parameters always are",
    )
    timestep: float | None = setting(None, doc="of the simulation [s]; else the model's", above=0)
    parameters: dict[str, ParameterForm] = setting(doc="what is searched, by name")
    sigma: float | None = setting(
        None, doc="standard deviation of the noise of all recordings", above=0, most=1e30
    )
    sigmas: dict[str, float] = setting(
        dict, doc="the same by signal, which may have wildcards", above=0, most=1e30
    )
    data: tuple[DataForm, ...] = setting(doc="recordings")
    held: tuple[DataForm, ...] = setting((), doc="recordings that are predicted, not fitted")
    fit: FitForm = setting(FitForm, doc="how it is fitted")
