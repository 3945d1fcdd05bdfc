"""Volume or area, center of mass and inertia of a triangle mesh.

A face and a point span a tetrahedron; a solid is the sum over all faces, with the sign of the side
of the face that contains the point, or all positive (`legacy`, which counts overlaps twice). A
shell is the sum of the faces themselves. The second moments about the origin of a simplex of
dimension k and content w with corners x_i are those of a point set,

    w / ((k + 1)(k + 2)) * (s s^T + sum_i x_i x_i^T),   s = sum_i x_i

(S. Lien and J. Kajiya, "A symbolic method for calculating the integral properties of arbitrary
nonconvex polyhedra", IEEE CG&A 4(10), 1984).

A regular body has equal moments, whose axes depend on the last digits. Faces are therefore added
one after the other, and terms in MuJoCo's order: a tetrahedron gets the same frame as in MuJoCo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.triangles import (
    area_vectors,
    centers,
    corners,
    normalize_rows,
    row_norms,
    sum_in_order,
)
from jaxsim.enums import MINVAL
from jaxsim.errors import AssetError

_TRIANGLE_SLACK = 1e-6  # relative tolerance of A + B >= C for a flat mesh
_I, _J = np.array([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]).T


@dataclass(frozen=True, eq=False)
class Mass:
    """The mass distribution of a mesh of density 1.

    Attributes:
      content: volume [m^3], or area [m^2] of a shell.
      center: center of mass [m], (3,).
      tensor: inertia tensor about the center [m^5, or m^4], (3, 3).
    """

    content: float
    center: np.ndarray
    tensor: np.ndarray


def solid(vertex: np.ndarray, face: np.ndarray, *, signed: bool) -> Mass:
    """Return the mass of the solid inside the faces; with `signed` all must be oriented outward.

    Raises:
      AssetError: the area or the volume is too small or negative.
    """
    middle, normals = centers(vertex, face), area_vectors(vertex, face)
    area = row_norms(normals)
    apex = _centroid(middle, area)
    volume = _volumes(middle - apex, normals, area, signed)
    _check_volume(float(sum_in_order(volume)))
    center = _center(middle, apex, volume)

    # Repeat with the center as the apex: without signs the volume may differ.
    vertex = vertex - center
    normals = area_vectors(vertex, face)
    volume = _volumes(centers(vertex, face), normals, row_norms(normals), signed)
    total = float(sum_in_order(volume))
    _check_volume(total)
    return Mass(total, center, _tensor(vertex, face, volume / 20))


def shell(vertex: np.ndarray, face: np.ndarray) -> Mass:
    """Return the mass of the faces themselves, of uniform thickness.

    Raises:
      AssetError: the area is too small.
    """
    area, middle = row_norms(area_vectors(vertex, face)), centers(vertex, face)
    center = _center(middle, _centroid(middle, area), area)
    return Mass(float(sum_in_order(area)), center, _tensor(vertex - center, face, area / 12))


def check_orientation(face: np.ndarray) -> None:
    """Check that adjacent faces traverse their common edge in opposite directions.

    Raises:
      AssetError: two faces traverse an edge in the same direction.
    """
    start, end = face.ravel(), np.roll(face, -1, axis=1).ravel()
    edge = start.astype(np.int64) * (int(face.max(initial=0)) + 1) + end
    order = np.argsort(edge, kind="stable")
    twice = np.flatnonzero(np.diff(edge[order]) == 0)
    if len(twice):
        at = order[twice[0]]
        raise AssetError(
            "its faces are not consistently oriented: two of them run from vertex"
            f" {start[at]} to {end[at]} in the same direction; repair the mesh, or set"
            " inertia='convex'"
        )


def _centroid(middle: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Return the center of the surface, (3,)."""
    total = sum_in_order(area)
    if not total >= MINVAL:
        raise AssetError(f"its area {total:g} is too small; check its vertices, faces and scale")
    return sum_in_order(area[:, None] * middle) / total


def _center(middle: np.ndarray, apex: np.ndarray, content: np.ndarray) -> np.ndarray:
    """Return the center of the simplices of faces and an apex."""
    return sum_in_order(content[:, None] * (0.75 * middle + 0.25 * apex)) / sum_in_order(content)


def _volumes(middle: np.ndarray, normals: np.ndarray, area: np.ndarray, signed: bool) -> np.ndarray:
    """Return the volumes of the tetrahedra of all faces with the origin."""
    height = middle * normalize_rows(normals, area)
    volume = (height[:, 0] + height[:, 1] + height[:, 2]) * area / 3
    return volume if signed else np.abs(volume)


def _check_volume(volume: float) -> None:
    if volume < 0:
        raise AssetError(
            f"its volume {volume:g} is negative: its faces are oriented inward; exchange two"
            " vertices of each face, or set inertia='convex'"
        )
    if not volume >= MINVAL:
        raise AssetError(f"its volume {volume:g} is too small; set inertia='shell'")


def _tensor(vertex: np.ndarray, face: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the inertia tensor about the origin of weighted simplices, (3, 3)."""
    x = corners(vertex, face)
    products = 2 * sum(a[:, _I] * a[:, _J] for a in x)
    for a, b in ((x[0], x[1]), (x[0], x[2]), (x[1], x[2])):
        products = products + a[:, _I] * b[:, _J] + a[:, _J] * b[:, _I]
    xx, yy, zz, xy, xz, yz = sum_in_order(weight[:, None] * products)
    return np.array([[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]])


def check_moments(moments: np.ndarray) -> None:
    """Check that descending principal moments (3,) are physically possible.

    Raises:
      AssetError: one is not positive, or exceeds the sum of the others.
    """
    if not moments[2] > 0:
        raise AssetError(
            f"its least moment of inertia, {moments[2]:g}, is not positive; repair the mesh, or set"
            " inertia='convex' or 'shell'"
        )
    if moments[0] > (moments[1] + moments[2]) * (1 + _TRIANGLE_SLACK):
        raise AssetError(
            f"its moments of inertia {moments} are impossible: one exceeds the sum of the"
            " others; repair the mesh, or set inertia='convex' or 'shell'"
        )
