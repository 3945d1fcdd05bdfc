"""Bending and torsion of elastic rods, in the layout of `flex_bending`.

Bergou et al., "Discrete elastic rods", 2008: a vertex between edges of lengths l0 and l1 resists
the change of its curvature binormal, of size 2 tan(a/2) for edges at an angle a, with stiffness
E I / (l0 + l1), and twist with G J / (l0 + l1). The number of records comes first; a record is

    vertices before, at and after; -1; E I1 / l; E (I2 - I1) / l; curvature at rest;
    dof of the twist of the second edge, or -1; G J / l; signed half side of a box section

or, for two neighbors that are curved at rest in a rod without twist joints,

    four vertices; the two bending stiffnesses and curvatures; G J / (2 l1) times cosine and sine of
    the angle between their planes
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.flex import Flex
from jaxsim.compile.flex.rod_twist import open_chain, twist_name

_FOLDED_TOLERANCE = 1e-9  # one minus the cosine between edges that coincide
_STRAIGHT_ANGLE = 1e-4  # angle below which a vertex is straight at rest [rad]
_THICK, _THIN = 3.36, 12.0  # coefficients of the torsion constant of a rectangle (Roark's Formulas)


def rod_bending(c: Compilation, f: Flex) -> np.ndarray:
    """Return the bending records of a rod, after their number; empty if nothing bends."""
    if f.rigid or f.elasticity.get("young") <= 0:
        return np.zeros(0)
    _check_hinges(c, f)
    chain, hinges = twisted_chain(c, f)
    if f.elasticity.get("section") == "box" and chain is None:
        c.fault(
            f.element, "a box section needs an open rod with hinges for its twist, as of flexcomp"
        )
        return np.zeros(0)
    records = _twisted_vertices(f, chain, hinges) if chain is not None else _untwisted_vertices(f)
    return np.concatenate([[len(records)], *records]) if records else np.zeros(0)


def _check_hinges(c: Compilation, f: Flex) -> None:
    """Report a rod that folds back on itself, where the curvature is undefined."""
    for v, near in _neighbors(f).items():
        if len(near) == 2:
            first, second = f.rest_position[near] - f.rest_position[v]
            along = np.linalg.norm(first) * np.linalg.norm(second)
            if first @ second > (1 - _FOLDED_TOLERANCE) * along:
                c.fault(f.element, f"the rod folds back on itself at vertex {v}; move it apart")


def twisted_chain(c: Compilation, f: Flex) -> tuple[np.ndarray | None, list[int]]:
    """Return the vertices of an open rod whose edges have twist hinges, and these joints.

    The joint of an edge that is clamped is -1; None for a rod without hinges.
    """
    chain = open_chain(f.elem) if f.dim == 1 and not f.order else None
    if chain is None or len(chain) < 3:
        return None, []
    n = len(chain) - 1
    names = [twist_name(f.element.name or "", edge, n) for edge in range(n)]
    joints = [c.ids["joint"].get(name, -1) for name in names]
    if max(joints) < 0:
        return None, []
    return chain, joints


def _twisted_vertices(f: Flex, chain: np.ndarray, hinges: list[int]) -> list[np.ndarray]:
    weak, strong, torsion, side = _section(f)
    records = []
    for i in range(1, len(chain) - 1):
        before, at, after = chain[i - 1 : i + 2]
        length, curvature = _vertex(f, before, at, after)
        bend = weak / length, (strong - weak) / length
        tail = (curvature, hinges[i], torsion / length, side)
        records.append(np.array([before, at, after, -1, *bend, *tail], float))
    return records


def _untwisted_vertices(f: Flex) -> list[np.ndarray]:
    """Return the records of a rod without twist: pairs of curved neighbors, then other vertices."""
    weak, _, torsion, _ = _section(f)
    near = _neighbors(f)
    inner = {v: tuple(n) for v, n in near.items() if len(n) == 2}
    vertex = {v: _vertex(f, before, v, after) for v, (before, after) in inner.items()}
    curved = {v for v, (_, curvature) in vertex.items() if curvature > 0}
    pairs = [(a, b) for a, b in f.topology.edge if a in curved and b in curved]
    shares = {v: sum(v in pair for pair in pairs) for v in inner}
    records = []
    for a, b in pairs:
        before = next(v for v in inner[a] if v != b)
        after = next(v for v in inner[b] if v != a)
        bend = [weak / vertex[v][0] / shares[v] for v in (a, b)]
        cosine, sine = _dihedral(*f.rest_position[[before, a, b, after]])
        k = torsion / (2 * np.linalg.norm(f.rest_position[b] - f.rest_position[a]))
        curvatures = (vertex[a][1], vertex[b][1])
        records.append(
            np.array([before, a, b, after, *bend, *curvatures, k * cosine, k * sine], float)
        )
    for v in sorted(inner):
        if not shares[v]:
            length, curvature = vertex[v]
            tail = (weak / length, 0.0, curvature, -1, torsion / length, 0.0)
            records.append(np.array([inner[v][0], v, inner[v][1], -1, *tail], float))
    return records


def _neighbors(f: Flex) -> dict[int, list[int]]:
    """Return the vertices joined to each vertex, first those that elements lead from."""
    near: dict[int, list[int]] = {}
    for a, b in f.elem:
        near.setdefault(int(b), []).append(int(a))
    for a, b in f.elem:
        near.setdefault(int(a), []).append(int(b))
    return near


def _vertex(f: Flex, before: int, at: int, after: int) -> tuple[float, float]:
    """Return the sum of the lengths of the two edges of a vertex [m], and its curvature at rest."""
    first, second = (
        f.rest_position[at] - f.rest_position[before],
        f.rest_position[after] - f.rest_position[at],
    )
    angle = np.arctan2(np.linalg.norm(np.cross(first, second)), first @ second)
    length = float(np.linalg.norm(first) + np.linalg.norm(second))
    return length, float(2 * np.tan(0.5 * angle)) if angle > _STRAIGHT_ANGLE else 0.0


def _dihedral(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> tuple[float, float]:
    """Return cosine and sine of the angle about (b, c) between the planes of its neighbors."""
    first, second = np.cross(b - a, c - b), np.cross(c - b, d - c)
    size = np.linalg.norm(first) * np.linalg.norm(second)
    along = (c - b) / np.linalg.norm(c - b)
    return float(first @ second / size), float(np.cross(first, second) @ along / size)


def _section(f: Flex) -> tuple[float, float, float, float]:
    """Return E I of the weak and the strong axis, G J, and the signed half short side of a box.

    The sign is that of the first half side less the second.
    """
    young, shear = f.elasticity.get("young"), f.elasticity.get("shear")
    shear = shear if shear > 0 else young / (2 * (1 + f.elasticity.get("poisson")))
    if f.elasticity.get("section") != "box":
        area_moment = float(np.pi * np.square(np.square(f.element.get("radius"))) / 4)
        return young * area_moment, young * area_moment, shear * 2 * area_moment, 0.0
    first, second = f.elasticity.get("sectionsize")
    a, b = max(first, second), min(first, second)
    weak, strong = 4 * a * b**3 / 3, 4 * b * a**3 / 3
    torsion = a * b**3 * (16 / 3 - _THICK * b / a * (1 - b**4 / (_THIN * a**4)))
    return young * weak, young * strong, shear * torsion, b if first >= second else -b
