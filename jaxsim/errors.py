"""Errors with a source location and a remedy, collected over a whole model.

A check does not stop at the first fault: each fault is added to a `Problems` collection, and
`raise_if_any` raises one `ModelError` that lists them all at the end:

    arm.xml:12: <geom> has no attribute 'siz'; did you mean 'size'?
    arm.xml:31: <joint name='elbow'>: range needs 2 numbers, got 3 ('0 1 2')
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jaxsim.escape import MAX_MESSAGE, line


@dataclass(frozen=True)
class SourceLocation:
    """Source location of an element; prints as `arm.xml:12`."""

    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "<model>" if self.line is None else f"<model>:{self.line}"
        return self.file if self.line is None else f"{self.file}:{self.line}"


UNKNOWN_LOCATION = SourceLocation()

# Number of faults that an error prints; `problems` holds all of them.
MAX_SHOWN_PROBLEMS = 50


@dataclass(frozen=True)
class LocatedProblem:
    """One fault: its source location, and a message that names the element and the remedy."""

    place: SourceLocation
    message: str

    def __str__(self) -> str:
        # Escape names from files, so that a fault stays on one line.
        return line(f"{self.place}: {self.message}", MAX_MESSAGE)


class InputError(ValueError):
    """Unusable input files; `problems` holds every fault."""

    problems: tuple[LocatedProblem, ...]

    def __init__(self, problems: LocatedProblem | Iterable[LocatedProblem]):
        self.problems = (problems,) if isinstance(problems, LocatedProblem) else tuple(problems)
        lines = [str(problem) for problem in self.problems[:MAX_SHOWN_PROBLEMS]]
        if len(self.problems) > MAX_SHOWN_PROBLEMS:
            lines.append(f"... and {len(self.problems) - MAX_SHOWN_PROBLEMS} more")
        super().__init__("\n".join(lines))

    def __reduce__(self):
        return type(self), (self.problems,)


class ModelError(InputError):
    """A model that cannot be read or compiled."""


class ConfigError(InputError):
    """A configuration with settings that cannot be used."""


class UnsupportedError(ModelError):
    """A model that compiles but has features that the physics cannot simulate yet."""


class UnsupportedWarning(UserWarning):
    """Warning that a loaded model can be inspected, saved and changed, but not simulated yet."""


class AssetError(ValueError):
    """An asset file whose contents cannot be read; the message gives the reason."""


class Problems:
    """Collection of faults in the order in which they are detected, raised together."""

    def __init__(self) -> None:
        self._found: list[LocatedProblem] = []

    def add(self, place: SourceLocation | None, message: str) -> None:
        """Add a fault; the message names the element and the remedy."""
        self._found.append(LocatedProblem(place or UNKNOWN_LOCATION, message))

    def raise_if_any(self) -> None:
        """Raise all faults together, if there are any."""
        if self._found:
            raise ModelError(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self):
        return iter(self._found)
