"""Points of a sweep: the product of the values of some settings, each with a folder for its run.

    jaxsim sweep hopper.toml --over seed=0:8 --over ppo.learning_rate=[3e-4,1e-3]

The settings of all points are read before any of them is trained, and compared with those of the
runs that earlier sweeps have left in their folders. A folder is named by the swept settings and
their values, so that a run is found again when a sweep is extended by further values.
"""

import dataclasses
import hashlib
import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxsim.errors import ConfigError, LocatedProblem, SourceLocation
from jaxsim.escape import line
from jaxsim.io.config import parse_value, read_config, split_change, toml_value
from jaxsim.learn.config import Training
from jaxsim.learn.finished import CONFIG_FILE

MAX_POINTS = 10_000  # points of a sweep
_MAX_FOLDER_NAME = 150  # characters of the name of a folder; file systems allow 255 bytes
_OVER_FORM = "NAME=VALUES, such as seed=0:8 or ppo.learning_rate=[3e-4,1e-3]"
_RANGE = re.compile(r"\s*(-?\d{1,18}):(-?\d{1,18})(?::(-?\d{1,18}))?\s*")
# Settings that a run may change when it resumes; the others decide what it has learned so far.
_RESUMABLE = ("steps", "every", "keep", "tensorboard")


class Axis(NamedTuple):
    """A swept setting.

    Attributes:
      name: its name as written, "ppo.learning_rate".
      keys: the parts of the name.
      values: its values as TOML texts.
    """

    name: str
    keys: tuple[str, ...]
    values: Sequence[str]


class Point(NamedTuple):
    """A training of a sweep.

    Attributes:
      number: number of the point, from 0; the last swept setting varies fastest.
      folder: folder of the run.
      changes: the swept settings, as `--set` takes them.
      values: their values by name.
      training: all settings.
    """

    number: int
    folder: Path
    changes: tuple[str, ...]
    values: dict[str, Any]
    training: Training

    @property
    def name(self) -> str:
        """Return the name of the folder, "ppo.learning_rate=0.001,seed=3"."""
        return self.folder.name


class Sweep(NamedTuple):
    """All trainings of a sweep.

    Attributes:
      file: the settings that the points have in common.
      folder: folder of the sweep, with a folder for each point.
      changes: settings that override those of the file in all points.
      points: the trainings.
    """

    file: Path
    folder: Path
    changes: tuple[str, ...]
    points: tuple[Point, ...]


def read_sweep(
    file: str | Path,
    over: Sequence[str],
    changes: Sequence[str] = (),
    folder: str | Path | None = None,
) -> Sweep:
    """Return the points of a sweep, after checking all settings.

    Args:
      file: the settings of a training.
      over: a setting and its values each (`read_axis`).
      changes: settings that override those of the file in all points, "steps=100_000".
      folder: folder of the sweep; default: runs/FILE-sweep.

    Raises:
      ConfigError: lists all errors, with the line of the file, `--set` or `--over`.
    """
    file = Path(file)
    folder = Path("runs") / f"{file.stem}-sweep" if folder is None else Path(folder)
    axes = [read_axis(text) for text in over]
    _check_axes(axes, changes)
    read_config(file, Training, changes)  # faults that have nothing to do with the sweep come alone
    points: list[Point] = []
    faults: list[LocatedProblem] = []
    for number, values in enumerate(itertools.product(*(axis.values for axis in axes))):
        swept = tuple(f"{axis.name}={text}" for axis, text in zip(axes, values, strict=True))
        try:
            training, _ = read_config(file, Training, changes, swept)
        except ConfigError as error:
            faults += error.problems
            continue
        chosen = {axis.name: _setting_at(training, axis.keys) for axis in axes}
        name = ",".join(sorted(map(_folder_name, chosen, chosen.values())))
        points.append(Point(number, folder / _bounded(name), swept, chosen, training))
    if not faults:
        faults = [*_repeated(points), *_foreign_runs(points)]
    if faults:
        raise ConfigError(dict.fromkeys(faults))  # a fault of one value occurs at many points
    return Sweep(file, folder, tuple(changes), tuple(points))


def read_axis(text: str) -> Axis:
    """Return a swept setting.

    Args:
      text: name and values, "seed=0:8". The values are a TOML array, a range of integers as in
        Python, `0:8` or `0:8:2`, or one value.

    Raises:
      ConfigError: there are no values, or they cannot be read.
    """
    keys, given = split_change(text, "--over", _OVER_FORM)
    name = text[: len(text) - len(given) - 1].strip()
    place = SourceLocation(f"--over {line(text)}")
    if span := _RANGE.fullmatch(given):
        first, end, step = int(span[1]), int(span[2]), int(span[3] or 1)
        if step == 0:
            raise ConfigError(LocatedProblem(place, "expected a step other than 0"))
        numbers = range(first, end, step)
        if not numbers:
            raise ConfigError(LocatedProblem(place, "the range is empty; its end is excluded"))
        if len(numbers) > MAX_POINTS:
            raise ConfigError(LocatedProblem(place, _too_many(len(numbers))))
        return Axis(name, tuple(keys), [str(number) for number in numbers])
    found = parse_value(given, place)
    if isinstance(found, str) and given.lstrip().startswith("["):
        message = 'not an array of TOML; write strings in quotes, such as ["ppo", "sac"]'
        raise ConfigError(LocatedProblem(place, message))
    values = found if isinstance(found, list) else [found]
    if not values:
        raise ConfigError(LocatedProblem(place, "there are no values"))
    return Axis(name, tuple(keys), [_text_of(value, place) for value in values])


def resumed_changes(point: Point) -> tuple[str, ...]:
    """Return the settings of a point that its run has otherwise, and may change when it resumes."""
    return tuple(f"{name}={toml_value(new)}" for name, _, new in _changed_settings(point))


def _check_axes(axes: Sequence[Axis], changes: Sequence[str]) -> None:
    """Reject settings that are specified twice, and too many points."""
    keys = [axis.keys for axis in axes]
    fixed = [tuple(split_change(change, "--set")[0]) for change in changes]
    for axis in axes:
        place = SourceLocation(f"--over {line(axis.name)}")
        if keys.count(axis.keys) > 1:
            raise ConfigError(LocatedProblem(place, "is given twice; join the values in an array"))
        if axis.keys in fixed:
            raise ConfigError(LocatedProblem(place, "is also given by --set; omit one of them"))
    number = math.prod(len(axis.values) for axis in axes)
    if number > MAX_POINTS:
        raise ConfigError(LocatedProblem(SourceLocation("--over"), _too_many(number)))


def _too_many(number: int) -> str:
    return f"{number:,} points, at most {MAX_POINTS:,} are possible; split the sweep"


def _text_of(value: Any, place: SourceLocation) -> str:
    """Return a value of an array as TOML text."""
    try:
        return toml_value(_as_tuples(value))
    except TypeError:
        message = f"expected numbers, texts or lists, got {line(repr(value))}; name one setting"
        raise ConfigError(LocatedProblem(place, message)) from None


def _as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        raise TypeError  # a table: its settings can be swept
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _setting_at(settings: Any, keys: Sequence[str]) -> Any:
    """Return a setting by its keys."""
    for key in keys:
        if isinstance(settings, tuple):
            settings = settings[int(key)]
        else:
            settings = settings[key] if isinstance(settings, dict) else getattr(settings, key)
    return settings


def show_value(value: Any) -> str:
    """Return the value of a setting for tables: strings without quotes."""
    return value if isinstance(value, str) else toml_value(value)


def _folder_name(name: str, value: Any) -> str:
    """Return the part of a folder's name for a setting, in characters that need no quotes.

    Other characters are replaced, and a checksum then distinguishes the value.
    """
    whole = f"{name}={show_value(value)}"
    numbers = isinstance(value, tuple) and all(isinstance(x, int | float) for x in value)
    plain = f"{name}={'x'.join(map(show_value, value))}" if numbers else whole
    safe = re.sub(r"[^A-Za-z0-9_.=+-]+", "-", plain)
    return safe if safe == plain else f"{safe.rstrip('-')}-{_checksum(whole)}"


def _bounded(name: str) -> str:
    """Return the name of a folder, with its end replaced by a checksum if it is too long."""
    if len(name) <= _MAX_FOLDER_NAME:
        return name
    return f"{name[: _MAX_FOLDER_NAME - 9]}-{_checksum(name)}"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _repeated(points: Sequence[Point]) -> Iterator[LocatedProblem]:
    """Yield a fault for each point that has the folder of an earlier one."""
    seen: dict[str, Point] = {}
    for point in points:
        # some file systems do not distinguish upper and lower case
        first = seen.setdefault(point.name.casefold(), point)
        if first is not point:
            place = SourceLocation(f"--over {line(', '.join(point.changes))}")
            message = f"the same as point {first.number}, {first.name}; omit one of them"
            yield LocatedProblem(place, message)


def _foreign_runs(points: Sequence[Point]) -> Iterator[LocatedProblem]:
    """Yield the faults of runs that exist already with settings that cannot be resumed."""
    for point in points:
        place = SourceLocation(str(point.folder))
        try:
            changed = _changed_settings(point)
        except ConfigError as error:
            yield from error.problems
            continue
        for name, there, here in changed:
            if name not in _RESUMABLE:
                message = (
                    f"there is a run with other settings: {name} is {there!r} there, {here!r} here;"
                    " delete it, or name another folder by --out"
                )
                yield LocatedProblem(place, message)


def _changed_settings(point: Point) -> list[tuple[str, Any, Any]]:
    """Return the settings that differ from those of the run in the folder: name, old, new."""
    path = point.folder / CONFIG_FILE
    if not os.path.lexists(path):
        return []
    old, _ = read_config(path, Training)
    return list(_differences(old, point.training))


def _differences(old: Any, new: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    for field in dataclasses.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if dataclasses.is_dataclass(before):
            yield from _differences(before, after, f"{prefix}{field.name}.")
        elif before != after:
            yield prefix + field.name, before, after
