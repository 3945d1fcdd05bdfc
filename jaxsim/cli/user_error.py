"""Errors that the user of a command can correct, and failures to draw, reported in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from jaxsim.errors import InputError
from jaxsim.escape import MAX_MESSAGE, line
from jaxsim.optional import MissingExtra


class InputProblem(Exception):
    """Wrong input to a command; the message names the fault, its location and the remedy. Exit code
    2."""


class ProcessProblem(Exception):
    """A failure in a run of several processes; without a message if another process reports it.

    Attributes:
      code: exit code.
    """

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


@contextmanager
def convert_drawing_errors(path: str | os.PathLike[str], kept: str = "") -> Iterator[None]:
    """Convert exceptions that libraries raise while drawing into one line.

    Args:
      path: the picture, for the message.
      kept: location of the saved result, for the end of the message.

    Raises:
      InputProblem: the picture could not be drawn or written.
    """
    end = f"; {kept}" if kept else ""
    try:
        yield
    except (InputProblem, InputError, MissingExtra):
        raise
    except OSError as error:
        raise InputProblem(f"'{path}' cannot be written: {error.strerror or error}{end}") from error
    except Exception as error:
        fault = line(f"{type(error).__name__}: {error}", MAX_MESSAGE)
        raise InputProblem(f"'{path}' cannot be drawn: {fault}{end}") from error
