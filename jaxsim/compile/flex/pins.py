"""`<pin>`: the points of a `<flexcomp>`, or nodes of an interpolated one, that are fixed."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.spec import SpecElement


def pinned_points(
    c: Compilation, e: SpecElement, dim: int, npoint: int, lattice: np.ndarray | None
) -> np.ndarray:
    """Return a mask of the pinned points or nodes.

    Args:
      dim: dimension of the flex.
      npoint: number of its points.
      lattice: nodes along each axis if pins are for nodes, (3,); None if they are for points.

    Returns:
      A mask of the points or the nodes.
    """
    mask = np.zeros(npoint if lattice is None else int(np.prod(lattice)), bool)
    for pin in (child for child in e.children if child.tag == "pin"):
        _pin_by_number(c, pin, mask)
        if pin.own("grid") is not None or pin.own("gridrange") is not None:
            _pins_by_grid_index(c, e, pin, mask, dim, lattice)
    return mask


def _pin_by_number(c: Compilation, pin: SpecElement, mask: np.ndarray) -> None:
    ids = np.array(pin.own("id") if pin.own("id") is not None else [], int)
    ranges = np.array(pin.own("range") if pin.own("range") is not None else [], int)
    if len(ranges) % 2:
        c.fault(pin, f"range needs 2 numbers for each range, got {len(ranges)}")
        return
    for attr, numbers in (("id", ids), ("range", ranges)):
        outside = numbers[(numbers < 0) | (numbers >= len(mask))]
        if len(outside):
            c.fault(pin, f"{attr} has {outside[0]}, but there are {len(mask)} to pin, from 0")
            return
    mask[ids] = True
    for first, last in ranges.reshape(-1, 2):
        mask[first : last + 1] = True


def _pins_by_grid_index(
    c: Compilation,
    e: SpecElement,
    pin: SpecElement,
    mask: np.ndarray,
    dim: int,
    lattice: np.ndarray | None,
) -> None:
    """Pin by indices in the grid; those of a shell have no index along z, which is 0."""
    if dim == 1:
        c.fault(pin, "grid and gridrange are for dim 2 and 3; use id or range")
        return
    if lattice is None and e.get("type") != "grid":
        c.fault(pin, "grid and gridrange are for type='grid' or an interpolated dof; use id")
        return
    count = np.array(e.get("count") if lattice is None else lattice, int)[:dim]
    # The indices of shells have no axis z.
    stride = np.array([*np.cumprod(count[:0:-1])[::-1], 1])
    for attr, width in (("grid", dim), ("gridrange", 2 * dim)):
        numbers = np.array(pin.own(attr) if pin.own(attr) is not None else [], int)
        if len(numbers) % width:
            c.fault(pin, f"{attr} needs {width} numbers for each pin, got {len(numbers)}")
            return
        rows = numbers.reshape(-1, width)
        if np.any(rows.reshape(-1, dim) < 0) or np.any(rows.reshape(-1, dim) >= count):
            size = " ".join(str(n) for n in count)
            c.fault(pin, f"{attr} leaves the grid, which has {size} places, from 0")
            return
        for row in rows:
            low, high = row[:dim], row[-dim:]
            block = np.indices(tuple(np.maximum(high - low + 1, 0))).reshape(dim, -1).T + low
            mask[block @ stride] = True
