"""What a person can put right, said in one line; and pictures that cannot be drawn."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from jaxsim.errors import InputError
from jaxsim.escape import MAX_MESSAGE, line
from jaxsim.extra import MissingExtra


class InputProblem(Exception):
    """Wrong input to a command; the message says what, where and what to do. Exit code 2."""


@contextmanager
def drawing(path: str | os.PathLike[str], kept: str = "") -> Iterator[None]:
    """Turn what libraries raise while they draw into one line.

    Args:
      path: the picture, for the message.
      kept: where the result is that was to be drawn, for the end of the message.

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
