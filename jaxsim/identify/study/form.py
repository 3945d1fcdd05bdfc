"""Schema of an identification file.

    model = "arm.xml"

    [parameters."joint:hinge/damping"]
    form = "log"
    low = 0.01
    high = 10

    [[data]]
    measured = "log.csv"
    sigma = 0.002

A recording is a .csv or .npz file as `read_series` reads it, or several of different rates. Columns
are sensors, "qpos:JOINT", "qvel:JOINT", and "ctrl:ACTUATOR" for commanded controls; `columns` maps
other names to these.
"""

from dataclasses import dataclass

from jaxsim.io.config import setting

_MAX_STUDY_ARRAY = 10_000_000  # of what there is an array of, before its memory is computed
_FORM_NAMES = ("linear", "log", "scale", "pseudo_inertia")


@dataclass(frozen=True)
class ParameterForm:
    """Form of a parameter; see `jaxsim.identify.linear`, `log`, `scale` and `pseudo_inertia`."""

    form: str = setting("log", doc="form: what is searched", choices=_FORM_NAMES)
    low: float | None = setting(None, doc="lower bound; of the factor for scale")
    high: float | None = setting(None, doc="upper bound")
    nominal: float | None = setting(None, doc="first guess; else the value of the model")
    mean: float | None = setting(None, doc="mean of the prior; else the first guess")
    sd: float | None = setting(
        None, doc="standard deviation of the prior; relative for log and scale", above=0
    )
    share: bool = setting(False, doc="whether all objects of the name have one unknown")
    frozen: bool = setting(False, doc="whether it stays at its first guess")


@dataclass(frozen=True)
class DataForm:
    """A recording; names of signals may have wildcards."""

    measured: str | tuple[str, ...] = setting(
        doc="a .csv or .npz file, or a list of files with different times"
    )
    recordings: str | None = setting(
        None,
        doc="recordings of a file that has several, each a motion of its own: '7', or '0:16' for "
        "the first 16; else all",
    )
    controls: str | None = setting(None, doc="a file of controls with different times")
    columns: dict[str, str] = setting(
        dict, doc="signals by the columns of the files, where these have other names"
    )
    signals: tuple[str, ...] = setting((), doc="the signals to fit; else all")
    sigma: float | None = setting(None, doc="standard deviation of the noise", above=0, most=1e30)
    sigmas: dict[str, float] = setting(dict, doc="noise by signal", above=0, most=1e30)
    hold: str = setting(
        "zero", doc="interpolation of controls between samples", choices=("zero", "linear")
    )
    start: float | None = setting(
        None, doc="initial time of the motion [s]", least=-1e12, most=1e12
    )
    end: float | None = setting(
        None, doc="time after which samples are ignored [s]", least=-1e12, most=1e12
    )
    initial: str = setting(
        "model",
        doc="initial state: that of the model, or of the first samples of joints",
        choices=("model", "samples"),
    )
    key: str | None = setting(None, doc="keyframe of the initial state")
    qpos: tuple[float, ...] = setting((), doc="initial configuration")
    qvel: tuple[float, ...] = setting((), doc="initial velocity")
    estimate: tuple[str, ...] | dict[str, float] = setting(
        tuple,
        doc="unknown parts of the initial state: a list of qpos, qvel, act without a prior, or a "
        "table of their standard deviations",
    )


@dataclass(frozen=True)
class FitForm:
    """Settings of the fit; see `jaxsim.identify.fit`."""

    starts: int = setting(8, doc="number of first guesses", least=1, most=_MAX_STUDY_ARRAY)
    iterations: int = setting(50, doc="maximal iterations of each start", least=1, most=100_000)
    segments: int | None = setting(
        None, doc="steps of a piece, for multiple shooting", least=1, most=_MAX_STUDY_ARRAY
    )
    tolerance: float = setting(
        1e-4, doc="standard deviation of the defects between pieces", above=0
    )
    tied: bool = setting(
        True, doc="whether pieces are tied by unknown states; else each starts as was measured"
    )
    robust: float | None = setting(
        None, doc="residual in sigmas above which the cost of a sample grows linearly", above=0
    )
    batch: int | None = setting(
        None, doc="starts that run together", least=1, most=_MAX_STUDY_ARRAY
    )
    seed: int = setting(0, doc="random seed of the first guesses", least=0, most=2**31 - 1)
    level: float = setting(0.95, doc="level of the confidence intervals", above=0, most=1)


@dataclass(frozen=True, kw_only=True)
class Study:
    """An identification."""

    model: str = setting(doc="a model in MJCF or URDF, relative to this file")
    free: tuple[str, ...] = setting(
        (),
        doc="fields to trace though they are zero in the file; those of parameters always are",
    )
    timestep: float | None = setting(
        None, doc="time step of the simulation [s]; else that of the model", above=0
    )
    parameters: dict[str, ParameterForm] = setting(doc="parameters to fit, by name")
    sigma: float | None = setting(
        None, doc="standard deviation of the noise of all recordings", above=0, most=1e30
    )
    sigmas: dict[str, float] = setting(
        dict, doc="noise by signal, whose name may have wildcards", above=0, most=1e30
    )
    data: tuple[DataForm, ...] = setting(doc="recordings")
    held: tuple[DataForm, ...] = setting((), doc="recordings that are predicted, not fitted")
    fit: FitForm = setting(FitForm, doc="settings of the fit")
