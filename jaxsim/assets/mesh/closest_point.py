"""Closest point of a triangle to a query point, and the feature of the triangle it lies on.

With p = a + u (b - a) + v (c - a), the signs of scalar products determine the Voronoi region that
contains the query point, and so the closest feature of the triangle (C. Ericson, *Real-Time
Collision Detection*, 2005, section 5.1.5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Features of a triangle: the corners, the edges that begin at them, and the interior.
CORNERS, EDGES, INSIDE = (0, 1, 2), (3, 4, 5), 6
NFEATURE = 7


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles with precomputed edges; axes first.

    Attributes:
      a: first corners, (3, n).
      ab: edges from the first corner to the second, (3, n).
      ac: edges from the first corner to the third, (3, n).
    """

    a: np.ndarray
    ab: np.ndarray
    ac: np.ndarray

    @classmethod
    def of(cls, corner: np.ndarray) -> Triangles:
        """Return the triangles with corners (n, 3, 3)."""
        a, b, c = np.ascontiguousarray(corner.transpose(1, 2, 0))
        return cls(a, b - a, c - a)

    def offset(self, which: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets from the closest points of the triangles `which`, (k,), to the points
        (3, k).

        Returns:
          The vectors from the triangle to the point, (3, k), and the features, (k,).
        """
        ab, ac = self.ab[:, which], self.ac[:, which]
        ap = point - self.a[:, which]
        feature, u, v = _locate(
            _dot(ab, ab), _dot(ab, ac), _dot(ac, ac), _dot(ab, ap), _dot(ac, ap)
        )
        return ap - u * ab - v * ac, feature


def _locate(
    bb: np.ndarray, bc: np.ndarray, cc: np.ndarray, pb: np.ndarray, pc: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the feature and the coordinates u, v of the closest points.

    Args:
      bb, bc, cc: products of the edges from the first corner with each other.
      pb, pc: products of the vector from the first corner to the point with these edges.
    """
    # the same products for the second and third corner
    qb, qc, rb, rc = pb - bb, pc - bc, pb - bc, pc - cc
    # Barycentric areas opposite to the three corners, with respect to the projection of the point.
    va, vb, vc = qb * rc - rb * qc, rb * pc - pb * rc, pb * qc - qb * pc
    along_bc = (qc - qb) / _nonzero((qc - qb) + (rb - rc))
    whole = _nonzero(va + vb + vc)
    zero = np.zeros_like(pb)
    places = (
        (0, (pb <= 0) & (pc <= 0), zero, zero),
        (1, (qb >= 0) & (qc <= qb), zero + 1, zero),
        (3, (vc <= 0) & (pb >= 0) & (qb <= 0), pb / _nonzero(bb), zero),
        (2, (rc >= 0) & (rb <= rc), zero, zero + 1),
        (5, (vb <= 0) & (pc >= 0) & (rc <= 0), zero, pc / _nonzero(cc)),
        (4, (va <= 0) & (qc >= qb) & (rb >= rc), 1 - along_bc, along_bc),
    )
    conditions = [condition for _, condition, _, _ in places]
    feature = np.select(conditions, [np.full_like(pb, f) for f, _, _, _ in places], INSIDE)
    u = np.select(conditions, [u for _, _, u, _ in places], vb / whole)
    v = np.select(conditions, [v for _, _, _, v in places], vc / whole)
    return feature.astype(np.int64), u, v


def _nonzero(x: np.ndarray) -> np.ndarray:
    """Return a nonzero divisor; only degenerate triangles have zeros, and need no exact answer."""
    return np.where(x == 0, 1.0, x)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
