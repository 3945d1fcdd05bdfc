"""Volume or area, center of mass and inertia of a triangle mesh.

A face and a point span a tetrahedron; the body is the sum of those of all faces, counted positive
or negative by the side of the face the point is on, or all positive (`legacy`, which counts
what overlaps twice). A shell is the sum of the faces themselves. The second moments of a simplex of
dimension k and content w with corners x_i about the origin are those of a point set,

    w / ((k + 1)(k + 2)) * (s s^T + sum_i x_i x_i^T),   s = sum_i x_i

(S. Lien and J. Kajiya, "A symbolic method for calculating the integral properties of arbitrary
nonconvex polyhedra", IEEE CG&A 4(10), 1984).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.triangles import area_vectors, centers, corners, lengths
from jaxsim.enums import MINVAL
from jaxsim.errors import AssetError

_ROUNDING = 1e-6  # share by which a flat mesh may exceed A + B >= C


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
    """The body inside the faces; with `signed` these must all be seen from outside.

    Raises:
      AssetError: the area or the volume is too small or negative.
    """
    vectors = area_vectors(vertex, face)
    middle = centers(vertex, face)
    apex = _centroid(middle, lengths(vectors))
    volume = _volumes(middle - apex, vectors, signed)
    _check_volume(volume.sum())
    center = volume @ (0.75 * middle + 0.25 * apex) / volume.sum()

    # Once more, with the center as the apex: without sign the volume may be another one.
    volume = _volumes(middle - center, vectors, signed)
    _check_volume(volume.sum())
    return Mass(float(volume.sum()), center, _tensor(vertex - center, face, volume / 20))


def shell(vertex: np.ndarray, face: np.ndarray) -> Mass:
    """The faces themselves, of even thickness.

    Raises:
      AssetError: the area is too small.
    """
    area = lengths(area_vectors(vertex, face))
    center = _centroid(centers(vertex, face), area)
    return Mass(float(area.sum()), center, _tensor(vertex - center, face, area / 12))


def check_orientation(face: np.ndarray) -> None:
    """Neighboring faces must run through their common edge in opposite directions.

    Raises:
      AssetError: two faces run through an edge in the same direction.
    """
    start, end = face.ravel(), np.roll(face, -1, axis=1).ravel()
    edge = start.astype(np.int64) * (int(face.max(initial=0)) + 1) + end
    order = np.argsort(edge, kind="stable")
    twice = np.flatnonzero(np.diff(edge[order]) == 0)
    if len(twice):
        at = order[twice[0]]
        raise AssetError(
            "its faces are not all seen from the same side: two of them run from vertex"
            f" {start[at]} to {end[at]} in the same direction; repair the mesh, or set"
            " inertia='convex'"
        )


def _centroid(middle: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Center of the surface, (3,)."""
    total = area.sum()
    if not total >= MINVAL:
        raise AssetError(f"its area {total:g} is too small; check its vertices, faces and scale")
    return area @ middle / total


def _volumes(middle: np.ndarray, vectors: np.ndarray, signed: bool) -> np.ndarray:
    """Volumes of the tetrahedra of all faces with the origin."""
    volume = np.einsum("ni,ni->n", middle, vectors) / 3
    return volume if signed else np.abs(volume)


def _check_volume(volume: float) -> None:
    if volume < 0:
        raise AssetError(
            f"its volume {volume:g} is negative: its faces are seen from inside; exchange two"
            " vertices of each face, or set inertia='convex'"
        )
    if not volume >= MINVAL:
        raise AssetError(f"its volume {volume:g} is too small; set inertia='shell'")


def _tensor(vertex: np.ndarray, face: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Inertia tensor about the origin of weighted simplices, (3, 3)."""
    moments = np.zeros((3, 3))
    for x in (3 * centers(vertex, face), *corners(vertex, face)):
        moments += (x * weight[:, None]).T @ x
    return np.trace(moments) * np.eye(3) - moments


def check_moments(moments: np.ndarray) -> None:
    """Principal moments (3,), falling, must be those of a real body.

    Raises:
      AssetError: one is not positive, or exceeds the sum of the others.
    """
    if not moments[2] > 0:
        raise AssetError(
            f"its least moment of inertia, {moments[2]:g}, is not positive; repair the mesh, or set"
            " inertia='convex' or 'shell'"
        )
    if moments[0] > (moments[1] + moments[2]) * (1 + _ROUNDING):
        raise AssetError(
            f"its moments of inertia {moments} are of no real body: one exceeds the sum of the"
            " others; repair the mesh, or set inertia='convex' or 'shell'"
        )
