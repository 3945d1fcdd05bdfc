"""Limits on what a file may ask for: bounds of our own against slips of the pen and hostile files.

A file of a few bytes can ask for gigabytes. What it asks for is compared with a limit before any
memory is spent; who means it raises the limit, by name, for a while:

    with jaxsim.limits(image_bytes=2**31):
        m = jaxsim.load_model("planet.xml")

On the command line it is `--limit image_bytes=2147483648`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

from jaxsim.errors import AssetError


class Limit(NamedTuple):
    """A bound: the most that is taken without being asked, and what it counts."""

    most: int
    counts: str


LIMITS = {
    "archive_bytes": Limit(2**30, "bytes that an archive unpacks to"),
    "image_bytes": Limit(2**28, "bytes of pixels in one image"),
    "hfield_points": Limit(2**26, "heights in one height field"),
    "mesh_vertices": Limit(5_000_000, "points of a built-in mesh"),
}

_COUNTABLE = 2.0**63

_raised: ContextVar[Mapping[str, int]] = ContextVar("_raised", default=MappingProxyType({}))


@contextmanager
def limits(**most: int) -> Iterator[None]:
    """Set limits, by name, for the calls inside; those that are not named stay.

    Args:
      most: the new bounds. archive_bytes: bytes that an archive unpacks to; image_bytes: bytes of
        pixels in one image; hfield_points: heights in one height field; mesh_vertices: points of a
        built-in mesh.

    Raises:
      ValueError: there is no such limit, or a bound is not a count.
    """
    for name, bound in most.items():
        if name not in LIMITS:
            raise ValueError(f"limits: there is no '{name}'; known are {', '.join(LIMITS)}")
        if not isinstance(bound, int) or bound < 0:
            raise ValueError(f"{name}: expected a count, got {bound!r}")
    token = _raised.set({**_raised.get(), **most})
    try:
        yield
    finally:
        _raised.reset(token)


def limit(name: str) -> int:
    """Return the bound that holds now."""
    return _raised.get().get(name, LIMITS[name].most)


def check_limit(name: str, count: float) -> None:
    """Refuse what is beyond a limit.

    Raises:
      AssetError: it is; the message says how the limit is raised.
    """
    if count > limit(name):
        count = int(count) if count < _COUNTABLE else math.inf
        raise AssetError(
            f"{count} {LIMITS[name].counts}, the most is {limit(name)}: take fewer, or raise the "
            f"limit by jaxsim.limits({name}={count}), on the command line --limit {name}={count}"
        )
