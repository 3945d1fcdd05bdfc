"""Limits on the sizes of input files, against mistakes and hostile files.

A file of a few bytes can request gigabytes. Requested sizes are compared with a limit before any
memory is allocated; to allow more, raise a limit by name in a context:

    with jaxsim.extend.limits(image_bytes=2**31):
        m = jaxsim.load_model("planet.xml")

On the command line the option is `--limit image_bytes=2147483648`.
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
    """A limit: its default, and the quantity it counts."""

    most: int
    counts: str


LIMITS = {
    "archive_bytes": Limit(2**30, "bytes that an archive unpacks to"),
    "image_bytes": Limit(2**28, "bytes of pixels in one image"),
    "hfield_points": Limit(2**26, "heights in one height field"),
    "mesh_vertices": Limit(5_000_000, "points of a built-in mesh or a scene"),
}

_MAX_LIMIT = 2.0**63

_raised_limits: ContextVar[Mapping[str, int]] = ContextVar("_raised", default=MappingProxyType({}))


@contextmanager
def limits(**most: int) -> Iterator[None]:
    """Set limits, by name, inside the context; others are unchanged.

    Args:
      most: the new limits. archive_bytes: decompressed bytes of an archive; image_bytes: bytes of
        pixels in one image; hfield_points: heights in one height field; mesh_vertices: points of a
        built-in mesh.

    Raises:
      ValueError: there is no such limit, or a value is not a count.
    """
    for name, bound in most.items():
        if name not in LIMITS:
            raise ValueError(f"limits: there is no '{name}'; choose one of {', '.join(LIMITS)}")
        if not isinstance(bound, int) or bound < 0:
            raise ValueError(f"{name}: expected a count, got {bound!r}")
    token = _raised_limits.set({**_raised_limits.get(), **most})
    try:
        yield
    finally:
        _raised_limits.reset(token)


def limit(name: str) -> int:
    """Return the present value of a limit."""
    return _raised_limits.get().get(name, LIMITS[name].most)


def check_limit(name: str, count: float) -> None:
    """Raise if a count exceeds a limit.

    Raises:
      AssetError: it does; the message explains how to raise the limit.
    """
    if count > limit(name):
        count = int(count) if count < _MAX_LIMIT else math.inf
        raise AssetError(
            f"{count} {LIMITS[name].counts}, the limit is {limit(name)}: use fewer, or raise the "
            f"limit by jaxsim.extend.limits({name}={count}), on the command line by "
            f"--limit {name}={count}"
        )
