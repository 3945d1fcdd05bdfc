"""Optimality conditions of nearest points, from the equations of shapes, in NumPy.

Two convex shapes A and B have the signed distance -min h(n) over unit n, where h is the support
function of A - B. A point a of A and b of B with b - a = dist n are a solution if n is in the cone
of the outward normals of A at a, and -n in that of B at b.
"""

import mujoco
import numpy as np
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

EYE = np.eye(3)


class Shape:
    """A placed geom of a model of the oracle."""

    def __init__(self, mj: mujoco.MjModel, geom: int, pos: np.ndarray, mat: np.ndarray):
        self.kind = mujoco.mjtGeom(mj.geom_type[geom]).name[7:].lower()
        self.size, self.pos, self.mat = mj.geom_size[geom], pos, mat
        if self.kind == "mesh":
            adr, num = (x[mj.geom_dataid[geom]] for x in (mj.mesh_vertadr, mj.mesh_vertnum))
            self.hull = ConvexHull(mj.mesh_vert[adr : adr + num].astype(float))

    def support(self, d: np.ndarray) -> np.ndarray:
        """The largest d . x of directions `[k, 3]`, `[k]`."""
        local, s = d @ self.mat, self.size
        across = np.hypot(local[:, 0], local[:, 1])
        up = np.abs(local[:, 2])
        reach = {
            "capsule": lambda: up * s[1] + s[0],
            "ellipsoid": lambda: np.linalg.norm(local * s, axis=1),
            "cylinder": lambda: across * s[0] + up * s[1],
            "box": lambda: np.abs(local) @ s,
            "mesh": lambda: (local @ self.hull.points.T).max(axis=1),
        }
        return reach[self.kind]() + d @ self.pos

    def _bounds(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return distances of a point beyond each smooth part of the surface, and unit normals."""
        p, s = (x - self.pos) @ self.mat, self.size
        if self.kind == "capsule":
            out = p - [0, 0, np.clip(p[2], -s[1], s[1])]
            r = np.linalg.norm(out)
            beyond, normals = [r - s[0]], [out / r]
        elif self.kind == "ellipsoid":
            r = np.linalg.norm(p / s)
            slope = p / s**2 / r
            steep = np.linalg.norm(slope)
            beyond, normals = [(r - 1) / steep], [slope / steep]
        elif self.kind == "cylinder":
            r = np.hypot(p[0], p[1])
            side = np.r_[p[:2] / max(r, 1e-300), 0]
            beyond, normals = [r - s[0], p[2] - s[1], -p[2] - s[1]], [side, EYE[2], -EYE[2]]
        elif self.kind == "box":
            beyond, normals = np.r_[p - s, -p - s], np.r_[EYE, -EYE]
        else:
            normals = self.hull.equations[:, :3]
            beyond = normals @ p + self.hull.equations[:, 3]
        return np.asarray(beyond), np.asarray(normals) @ self.mat.T

    def violation(self, x: np.ndarray, n: np.ndarray, close: float = 1e-8) -> float:
        """Return the distance of `x` outside, or of `n` from the normal cone of parts near `x`."""
        beyond, normals = self._bounds(x)
        here = beyond > -close
        angle = nnls(normals[here].T, n)[1] if here.any() else 1.0
        return max(beyond.max(), angle)


def sphere(number: int) -> np.ndarray:
    """Unit vectors that cover the sphere evenly, `[number, 3]`."""
    k = np.arange(number) + 0.5
    polar, turn = np.arccos(1 - 2 * k / number), np.pi * (1 + 5**0.5) * k
    return np.c_[np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)]
