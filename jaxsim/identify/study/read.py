"""Reader of identification files: arguments of `fit` from TOML, with errors that cite the line."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.errors import InputError
from jaxsim.identify.forms import Form, linear, log, pseudo_inertia, scale
from jaxsim.identify.parameter import Parameters, parameters
from jaxsim.identify.residual import Problem
from jaxsim.identify.sequences import Sequence
from jaxsim.identify.study.form import DataForm, ParameterForm, Study
from jaxsim.identify.study.initial_state import first_state
from jaxsim.identify.timeseries import TimeSeries, read_recordings
from jaxsim.io.config import SettingLocations, check_memory, read_config
from jaxsim.io.load import load_model
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data, reset_data_keyframe
from jaxsim.spelling import remedy

_CONTROL_PREFIX = "ctrl:"
_FORM_MAKERS = {"linear": linear, "log": log, "scale": scale, "pseudo_inertia": pseudo_inertia}


class Reading(NamedTuple):
    """An identification that was read.

    Attributes:
      study: the settings.
      m: the model.
      parameters: the parameters to fit.
      data: recordings to fit.
      held: recordings to predict.
    """

    study: Study
    m: Model
    parameters: Parameters
    data: tuple[Sequence, ...]
    held: tuple[Sequence, ...]


def read_study(
    file: str | Path, changes: Iterable[str] = (), recordings: Iterable[str] = ()
) -> Reading:
    """Read an identification from its file.

    Args:
      file: the settings.
      changes: settings that replace those of the file, "fit.starts=16".
      recordings: files that replace those of [[data]], in order; if there are more files than
        entries, the last entry applies to the rest.

    Raises:
      ConfigError: a setting is wrong; cites its line.
      ModelError: the model is wrong.
    """
    study, locations = read_config(file, Study, changes)
    m = _model(study, locations)
    if not study.data:
        raise locations.error("data", "expected at least one recording")
    found = _parameters(m, study, locations)
    given = [(Path(p),) for p in recordings]
    entries = [(i, f, _files(locations, f)) for i, f in enumerate(study.data)]
    if given:
        last = len(study.data) - 1
        entries = [(min(i, last), study.data[min(i, last)], paths) for i, paths in enumerate(given)]
    common = _Common(m, study, locations, set())
    data = [(("data", i), _sequences(common, ("data", i), form, p)) for i, form, p in entries]
    held = [
        (("held", i), _sequences(common, ("held", i), form, _files(locations, form)))
        for i, form in enumerate(study.held)
    ]
    for pattern in study.sigmas:
        if pattern not in common.used:
            raise locations.error(("sigmas", pattern), f"nothing is measured of {pattern!r}")
    for entry, sequences in (*data, *held):
        with locations.blame(entry):
            problem = Problem(m, found, sequences)
        check_memory(locations, _memory_needs(problem, study))
    return Reading(study, m, found, _flatten(data), _flatten(held))


def _flatten(entries: list[tuple[tuple[str, int], list[Sequence]]]) -> tuple[Sequence, ...]:
    """Return the recordings of all entries."""
    return tuple(sequence for _, sequences in entries for sequence in sequences)


def _memory_needs(problem: Problem, study: Study) -> dict[str, float]:
    """Return a lower bound of the bytes that a fit needs, by the setting that determines it."""
    how, item = study.fit, float(np.dtype(problem.m.qpos0.dtype).itemsize)
    together = how.starts if how.batch is None else min(how.starts, how.batch)
    jacobian = item * problem.rows * (problem.size + 1)
    start = item * (problem.size + how.iterations)
    return {
        "fit.iterations": item * how.iterations,
        "fit.starts": jacobian * together + start * how.starts,
    }


def _model(study: Study, locations: SettingLocations) -> Model:
    path = locations.existing_file("model", study.model)
    try:
        m = load_model(path, free=study.free)
    except InputError:
        raise
    except ValueError as error:
        raise locations.error("free", str(error)) from None
    if study.timestep is not None:
        step = jnp.asarray(study.timestep, m.qpos0.dtype)
        if not step > 0:
            raise locations.error(
                "timestep", f"{study.timestep} is 0 in the precision of the model"
            )
        m = m.replace(opt=m.opt.replace(timestep=step))
    return m


def _files(locations: SettingLocations, form: DataForm) -> tuple[Path, ...]:
    """Return the files of a recording."""
    names = (form.measured,) if isinstance(form.measured, str) else form.measured
    return tuple(locations.folder / name for name in names)


def _parameters(m: Model, study: Study, locations: SettingLocations) -> Parameters:
    forms: dict[str, Form] = {}
    for name, form in study.parameters.items():
        with locations.blame(("parameters", name), (ValueError, TypeError)):
            forms[name] = _form(form)
            parameters(m, {name: forms[name]})
    with locations.blame("parameters"):
        return parameters(m, forms)


def _form(form: ParameterForm) -> Form:
    """Return a form from its settings; raise ValueError for settings that it does not take."""
    # 0 is a given number, and equals False
    given: dict[str, Any] = {
        k: v for k, v in vars(form).items() if v is not None and v is not False
    }
    kind = given.pop("form")
    takes = _FORM_MAKERS[kind].__code__.co_varnames
    for name in given:
        if name not in takes:
            raise ValueError(f"a parameter of form {kind!r} has no '{name}'")
    made: Form = _FORM_MAKERS[kind](**given)
    return made


class _Common(NamedTuple):
    """Arguments of all recordings; `used` collects the names of [sigmas] that match a signal."""

    m: Model
    study: Study
    locations: SettingLocations
    used: set[str]


def _sequences(
    common: _Common, at: tuple[str, int], form: DataForm, paths: tuple[Path, ...]
) -> list[Sequence]:
    """Return the recordings of an entry: all or some of those of a file, or one of several
    files."""
    locations = common.locations
    if not paths:
        raise locations.error((*at, "measured"), "expected at least one file, got an empty list")
    files = [_series(locations, (*at, "measured"), path, form.columns) for path in paths]
    several = [path for path, found in zip(paths, files, strict=True) if len(found) > 1]
    if several and len(files) > 1:
        message = f"{str(several[0])[:200]!r} has several recordings; give it an entry of its own"
        raise locations.error((*at, "measured"), message)
    if form.recordings is None and not several:
        return [_sequence(common, at, form, [found[0] for found in files], paths[0].stem)]
    chosen = _chosen_recordings(
        locations, at, ":" if form.recordings is None else form.recordings, len(files[0])
    )
    stem = paths[0].stem
    return [_sequence(common, at, form, [files[0][k]], f"{stem}[{k}]") for k in chosen]


def _chosen_recordings(
    locations: SettingLocations, at: tuple[str, int], given: str, count: int
) -> range:
    """Return the indices of the recordings that "7" or "0:16" selects of `count`."""
    first, colon, end = given.partition(":")
    try:
        low = int(first) if first.strip() or not colon else 0
        high = (int(end) if end.strip() else count) if colon else low + 1
    except ValueError:
        low, high = -1, -1
    if not 0 <= low < high <= count:
        message = f"expected an index below {count}, or a range such as '0:{count}', got {given!r}"
        raise locations.error((*at, "recordings"), message)
    return range(low, high)


def _sequence(
    common: _Common, at: tuple[str, int], form: DataForm, logs: list[TimeSeries], name: str
) -> Sequence:
    """Return a recording from its logs of different rates."""
    m, locations = common.m, common.locations
    names = [n for series in logs for n in series.names]
    for column, signal in form.columns.items():
        if signal not in (*names, "time"):
            raise locations.error((*at, "columns", column), f"no file has a column {column!r}")
    commanded = [tuple(n for n in x.names if n.startswith(_CONTROL_PREFIX)) for x in logs]
    measured = _measured_signals(locations, at, form, logs)
    if form.end is not None:
        measured = [x.slice_time(x.times[0], form.end) for x in measured]
    controls = [x.select(c) for x, c in zip(logs, commanded, strict=True) if c]
    if form.controls is not None:
        path = locations.folder / form.controls
        controls = list(_series(locations, (*at, "controls"), path, form.columns))
        if len(controls) > 1:
            message = f"expected one recording, the file has {len(controls)}"
            raise locations.error((*at, "controls"), message)
    if len(controls) > 1:
        files = "the columns 'ctrl:...' are in several files; write them to one, and name it in"
        raise locations.error((*at, "measured"), f"{files} 'controls'")
    ctrl = None
    if controls:
        actuators = tuple(n.removeprefix(_CONTROL_PREFIX) for n in controls[0].names)
        ctrl = TimeSeries(controls[0].times, controls[0].values, actuators)
    counted = [n for series in measured for n in series.names]
    sigma = _sigmas(
        common, at, form, counted, [n for n in names if not n.startswith(_CONTROL_PREFIX)]
    )
    with locations.blame(at):
        return Sequence(
            measured[0] if len(measured) == 1 else measured,
            ctrl=ctrl,
            initial=_read_initial_state(m, form, measured, _initial_time(form, ctrl, measured)),
            sigma=sigma or None,
            estimate=form.estimate,
            hold=form.hold,
            start=form.start,
            name=name,
        )


def _measured_signals(
    locations: SettingLocations, at: tuple[str, int], form: DataForm, logs: list[TimeSeries]
) -> list[TimeSeries]:
    """Return the selected signals of each file that has some."""
    there = [tuple(n for n in x.names if not n.startswith(_CONTROL_PREFIX)) for x in logs]
    for i, pattern in enumerate(form.signals):
        if not any(_is_named(n, pattern) for names in there for n in names):
            known = [n for names in there for n in names]
            otherwise = "; there are: " + ", ".join(known)
            message = f"no signal {pattern!r}{remedy(pattern, known, otherwise)}"
            raise locations.error((*at, "signals", i), message)
    found = []
    for series, names in zip(logs, there, strict=True):
        if form.signals:
            chosen = [[n for n in names if _is_named(n, p)] for p in form.signals]
            names = tuple(dict.fromkeys(n for some in chosen for n in some))
        if names:
            found.append(series.select(names))
    if not found:
        raise locations.error((*at, "measured"), "no file has a signal to fit")
    return found


def _sigmas(
    common: _Common, at: tuple[str, int], form: DataForm, counted: list[str], names: list[str]
) -> dict[str, float]:
    """Return the standard deviation of each selected signal, of its recording or of all recordings.

    Names of a table take precedence over its wildcards, and these over its `sigma`.
    """
    for pattern in form.sigmas:
        # a sigma for a signal that is not selected is no error
        if not any(_is_named(n, pattern) for n in names):
            message = f"nothing is measured of {pattern!r}"
            raise common.locations.error((*at, "sigmas", pattern), message)
    for pattern in common.study.sigmas:
        if any(_is_named(n, pattern) for n in names):
            common.used.add(pattern)
    found = {}
    for name in counted:
        for table in (form, common.study):
            exact = [p for p in table.sigmas if p in (name, name.split("[")[0])]
            own = [*exact, *(p for p in table.sigmas if _is_named(name, p))]
            sigma = table.sigmas[own[0]] if own else table.sigma
            if sigma is not None:
                found[name] = sigma
                break
    return found


def _is_named(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a signal; `gyro` matches gyro[0] too."""
    return pattern in (name, name.split("[")[0]) or fnmatchcase(name, pattern)


def _initial_time(form: DataForm, ctrl: TimeSeries | None, measured: list[TimeSeries]) -> float:
    """Return the initial time of the motion, as for `Sequence.start`."""
    if form.start is not None:
        return form.start
    series = measured if ctrl is None else [ctrl]
    return min((float(x.times[0]) for x in series if len(x.times)), default=0.0)


def _read_initial_state(m: Model, form: DataForm, measured: list[TimeSeries], begin: float) -> Any:
    """Return the initial state: of the model, a keyframe, the first samples, or given numbers."""
    d = make_data(m)
    if form.key is not None:
        d = reset_data_keyframe(m, d, form.key)
    if form.initial == "samples":
        d = first_state(m, d, measured, begin)
    for name in ("qpos", "qvel"):
        given = getattr(form, name)
        if given and len(given) != len(getattr(d, name)):
            raise ValueError(f"{name}: expected {len(getattr(d, name))} numbers, got {len(given)}")
        if given:
            d = d.replace(**{name: jnp.asarray(given, m.qpos0.dtype)})
    return d


def _series(
    locations: SettingLocations, at: tuple[str | int, ...], path: Path, columns: dict[str, str]
) -> tuple[TimeSeries, ...]:
    with locations.blame(at):
        try:
            return read_recordings(path, columns)
        except OSError as error:
            raise ValueError(f"{str(path)[:200]!r} cannot be read: {error.strerror}") from None
