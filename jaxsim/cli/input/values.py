"""Values of command-line arguments: counts, numbers, ports, sizes and limits.

Each function takes the text of an argument and raises `argparse.ArgumentTypeError` if it is wrong.
"""

import argparse

from jaxsim.assets.source.limits import LIMITS

_MAX_PORT = 65535
_MAX_PICTURE_PIXELS = 8192  # largest width or height of an image


def parse_limit(text: str) -> tuple[str, int]:
    """Return a limit and its new value."""
    name, _, number = text.partition("=")
    if name not in LIMITS:
        known = ", ".join(LIMITS)
        raise argparse.ArgumentTypeError(f"there is no limit '{name}'; choose one of {known}")
    return name, parse_count(number)


def parse_port(text: str) -> int:
    """Return a port number."""
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_MAX_PORT}, got '{text}'")
    return int(text)


def parse_size(text: str) -> tuple[int, int]:
    """Return the width and height of text such as `320x240`."""
    parts = text.split("x")
    if len(parts) != 2 or not all(p.isdigit() and 0 < int(p) <= _MAX_PICTURE_PIXELS for p in parts):
        raise argparse.ArgumentTypeError(f"expected pixels such as 320x240, got '{text}'")
    return int(parts[0]), int(parts[1])


def parse_positive(text: str) -> float:
    """Return a number above zero."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got '{text}'")
    return value


def parse_index(text: str) -> int:
    """Return a whole number of at least zero."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got '{text}'")
    return int(text)


def parse_count(text: str) -> int:
    """Return a whole number of at least one."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return value
