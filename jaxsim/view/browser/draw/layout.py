"""Arrangement of worlds side by side: a grid of cells, whose size follows from bounding spheres."""

from collections.abc import Sequence

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.part import Part
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.server import Balls

WORLD_SPACING = 2.2  # spacing of worlds side by side, in radii of a bounding sphere
_MAX_AIMED_WORLDS = 100  # number of worlds that the initial camera shows


def grid_cells(worlds: int) -> np.ndarray:
    """Return the cells of a square grid, the center first, (worlds, 3)."""
    side = int(np.ceil(np.sqrt(worlds)))
    cell = np.stack(np.divmod(np.arange(side**2), side), axis=1) - (side - 1) // 2
    first = np.lexsort((cell[:, 1], cell[:, 0], np.any(cell != 0, axis=1)))
    return np.concatenate([cell[first[:worlds]], np.zeros((worlds, 1))], axis=1)


def is_shared(m: Model, part: Part, offset: np.ndarray, ghosts: bool = False) -> bool:
    """Return whether a part is drawn once for all worlds: a common floor, or static parts of
    ghosts.

    Args:
      m: the model.
      part: the part.
      offset: displacement of each world, (worlds, 3) [m].
      ghosts: whether the worlds overlap.
    """
    if m.body_weldid[part.body] != 0:
        return False
    apart = np.abs(offset[1:]).max(axis=1).min(initial=np.inf)
    meets = part.type == GeomType.PLANE and bool(np.any(2 * part.size[:2] > apart))
    return ghosts or part.endless or meets


def bounding_balls(
    m: Model, parts: Sequence[Part], group: Sequence[bool], poses: Poses, offset: np.ndarray
) -> Balls:
    """Return bounding spheres of worlds; static geometry counts only if nothing moves.

    Args:
      m: the model.
      parts: the parts of a world.
      group: visibility of each group of geoms.
      poses: poses of the worlds.
      offset: displacement of each world, (worlds, 3) [m].

    Returns:
      One sphere for each world, of the first one and its nearest neighbors, at most
      _MAX_AIMED_WORLDS.
    """
    seen = {p.id for p in parts if p.kind == "geom" and group[p.group]}
    bound = np.asarray(m.geom_rbound)
    of_moving = m.body_weldid[m.geom_bodyid] > 0
    geoms = np.flatnonzero((bound > 0) & np.isin(np.arange(m.ngeom), list(seen)))
    geoms = geoms[of_moving[geoms]] if of_moving[geoms].any() else geoms
    point = np.concatenate([poses.geom_xpos[:, geoms], poses.flexvert_xpos, poses.soft], axis=1)
    near = np.argsort(np.linalg.norm(offset, axis=1), kind="stable")[:_MAX_AIMED_WORLDS]
    point = (point + offset[:, None])[near]
    point = point[np.isfinite(point).all(axis=(1, 2))]
    if not point.size:
        return Balls(np.asarray(m.stat.center, float)[None], np.array([float(m.stat.extent)]))
    reach = np.concatenate([bound[geoms], np.zeros(point.shape[1] - len(geoms))])[:, None]
    low, high = (point - reach).min(axis=1), (point + reach).max(axis=1)
    center = (low + high) / 2
    far = np.linalg.norm(point - center[:, None], axis=-1) + reach[:, 0]
    return Balls(center, far.max(axis=1))
