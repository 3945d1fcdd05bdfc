"""From an identification file to what `fit` takes; every fault is told with its line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.identify.forms import Form, linear, log, pseudo_inertia, scale
from jaxsim.identify.parameter import Parameters, parameters
from jaxsim.identify.residual import Problem
from jaxsim.identify.sequences import Sequence
from jaxsim.identify.study.form import DataForm, ParameterForm, Study
from jaxsim.identify.timeseries import TimeSeries, read_series
from jaxsim.io.config import Places, read_config
from jaxsim.io.load import load_model
from jaxsim.model.model import Model
from jaxsim.physics.make_data import make_data, reset_data_keyframe

CONTROL = "ctrl:"
MAKERS = {"linear": linear, "log": log, "scale": scale, "pseudo_inertia": pseudo_inertia}


class Reading(NamedTuple):
    """An identification, ready.

    Attributes:
      study: the settings.
      m: the model.
      parameters: what is searched.
      data: what was measured.
      held: what is predicted.
    """

    study: Study
    m: Model
    parameters: Parameters
    data: tuple[Sequence, ...]
    held: tuple[Sequence, ...]


def read_study(
    file: str | Path, changes: Iterable[str] = (), recordings: Iterable[str] = ()
) -> Reading:
    """An identification from its file.

    Args:
      file: the settings.
      changes: settings that replace those of the file, "fit.starts=16".
      recordings: files that replace those of [[data]], in order; where there are more than it has,
        the last entry stands for the rest.

    Raises:
      ConfigError: a setting is wrong; with its line.
      ModelError: the model is.
    """
    study, places = read_config(file, Study, changes)
    path = places.folder / study.model
    if not path.exists():
        raise places.error("model", f"there is no file '{path}'")
    m = load_model(path, free=study.free)
    if study.timestep is not None:
        step = jnp.asarray(study.timestep, m.qpos0.dtype)
        m = m.replace(opt=m.opt.replace(timestep=step))
    if not study.data:
        raise places.error("data", "expected one recording at least")
    found = _parameters(m, study, places)
    given = list(recordings)
    entries = [(i, f, places.folder / f.measured) for i, f in enumerate(study.data)]
    if given:
        last = len(study.data) - 1
        entries = [(min(i, last), study.data[min(i, last)], Path(p)) for i, p in enumerate(given)]
    data = tuple(_sequence(m, places, ("data", i), form, p) for i, form, p in entries)
    held = tuple(
        _sequence(m, places, ("held", i), form, places.folder / form.measured)
        for i, form in enumerate(study.held)
    )
    for table, sequences in (("data", data), ("held", held)):
        for i, sequence in enumerate(sequences):
            try:
                Problem(m, found, sequence)
            except ValueError as error:
                entry = min(i, len(getattr(study, table)) - 1)
                raise places.error((table, entry), str(error)) from None
    return Reading(study, m, found, data, held)


def _parameters(m: Model, study: Study, places: Places) -> Parameters:
    forms: dict[str, Form] = {}
    for name, form in study.parameters.items():
        try:
            forms[name] = _form(form)
            parameters(m, {name: forms[name]})
        except (ValueError, TypeError) as error:
            raise places.error(("parameters", name), str(error)) from None
    try:
        return parameters(m, forms)
    except ValueError as error:
        raise places.error("parameters", str(error)) from None


def _form(form: ParameterForm) -> Form:
    """A form with what it was given; what it cannot take is refused."""
    # 0 is a number that was given, and equals False
    given: dict[str, Any] = {
        k: v for k, v in vars(form).items() if v is not None and v is not False
    }
    kind = given.pop("form")
    takes = MAKERS[kind].__code__.co_varnames
    for name in given:
        if name not in takes:
            raise ValueError(f"a parameter of form {kind!r} has no '{name}'")
    made: Form = MAKERS[kind](**given)
    return made


def _sequence(
    m: Model, places: Places, at: tuple[str, int], form: DataForm, path: Path
) -> Sequence:
    """A recording."""
    log = _series(places, (*at, "measured"), path)
    commanded = tuple(n for n in log.names if n.startswith(CONTROL))
    names = form.signals or tuple(n for n in log.names if n not in commanded)
    try:
        measured = log.select(names)
    except ValueError as error:
        raise places.error((*at, "signals"), str(error)) from None
    controls = log.select(commanded) if commanded else None
    if form.controls is not None:
        controls = _series(places, (*at, "controls"), places.folder / form.controls)
    if controls is not None:
        actuators = tuple(n.removeprefix(CONTROL) for n in controls.names)
        controls = TimeSeries(controls.times, controls.values, actuators)
    if form.end is not None:
        measured = measured.between(measured.times[0], form.end)
    # a signal that does not count may have its sigma all the same
    sigmas = {n: x for n, x in form.sigmas.items() if n in names or n not in log.names}
    if form.sigma is not None:
        sigmas = dict.fromkeys(names, form.sigma) | sigmas
    try:
        return Sequence(
            measured,
            ctrl=controls,
            initial=_initial(m, form),
            sigma=sigmas or None,
            estimate=form.estimate,
            hold=form.hold,
            start=form.start,
            name=path.stem,
        )
    except ValueError as error:
        raise places.error(at, str(error)) from None


def _initial(m: Model, form: DataForm) -> Any:
    """The state at the start, if it is said."""
    d = make_data(m)
    if form.key is not None:
        d = reset_data_keyframe(m, d, form.key)
    for name in ("qpos", "qvel"):
        given = getattr(form, name)
        if given and len(given) != len(getattr(d, name)):
            raise ValueError(f"{name}: expected {len(getattr(d, name))} numbers, got {len(given)}")
        if given:
            d = d.replace(**{name: jnp.asarray(given, m.qpos0.dtype)})
    return d


def _series(places: Places, at: tuple[str | int, ...], path: Path) -> TimeSeries:
    try:
        return read_series(path)
    except OSError as error:
        raise places.error(at, f"'{path}' cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise places.error(at, str(error)) from None
