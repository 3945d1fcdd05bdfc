"""Twist of elastic rods: a hinge for each edge of an open rod, on a body of its own in the world.

The hinges are called `<name>_twist_0`, `<name>_twist_1`, ..., and the last `<name>_twist`. An edge
at an end whose points are both pinned is clamped and has none; the last edge of a rod of two edges
is never clamped.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import frame_pose
from jaxsim.spec import SpecElement
from jaxsim.spec.defaults import MAIN_CLASS

_MASS = 1e-9  # mass of a twist body [kg], which only rotates


def add_twist_bodies(
    c: Compilation, e: SpecElement, flex: SpecElement, points: LatticePoints, held: np.ndarray
) -> None:
    """Add the twist bodies of a flexcomp that is an elastic rod with an open end."""
    elasticity = flex.find("elasticity")
    if points.dim != 1 or elasticity is None or elasticity.get("young") <= 0:
        return
    if e.get("dof") != "full" or e.get("rigid") == "true" or held.all():
        return
    chain = open_chain(points.element)
    if chain is None or len(chain) < 3:
        return
    n = len(chain) - 1
    inertia = _polar_inertia(e, elasticity, n)
    clamped = held[chain[:-1]] & held[chain[1:]]
    last_clamped = n > 2 and clamped[-1]
    for k in range(n):
        if (k == 0 and clamped[0]) or (k == n - 1 and last_clamped):
            continue
        name = twist_name(flex.name or "", k, n)
        _add_to_world(c, e, _twist_body(c, e, name, inertia))


def twist_name(rod: str, edge: int, nedge: int) -> str:
    """Return the name of the hinge of an edge."""
    return f"{rod}_twist" if edge == nedge - 1 else f"{rod}_twist_{edge}"


def open_chain(element: np.ndarray) -> np.ndarray | None:
    """Return the points of a single open chain in order, or None if the elements (n, 2) form none.

    The order is that of the elements; if they disagree, it starts at the end of lower id.
    """
    neighbors: dict[int, list[int]] = {}
    for a, b in element:
        neighbors.setdefault(int(a), []).append(int(b))
        neighbors.setdefault(int(b), []).append(int(a))
    ends = sorted(p for p, near in neighbors.items() if len(near) == 1)
    if len(ends) != 2 or any(len(near) > 2 for near in neighbors.values()):
        return None
    chain = [ends[0], neighbors[ends[0]][0]]
    while chain[-1] != ends[1]:
        a, b = neighbors[chain[-1]]
        chain.append(b if a == chain[-2] else a)
    if len(chain) != len(neighbors):
        return None
    forward = {(int(a), int(b)) for a, b in element}
    backward = all((b, a) in forward for a, b in pairwise(chain))
    return np.array(chain[::-1] if backward else chain)


def _polar_inertia(e: SpecElement, elasticity: SpecElement, nedge: int) -> float:
    """Return the moment of inertia of an edge about its axis [kg m^2], of a disc or a rectangle."""
    mass = e.get("mass") / nedge
    if elasticity.get("section") == "box":
        return float(mass * np.sum(np.square(elasticity.get("sectionsize"))) / 3.0)
    return float(0.5 * mass * np.square(e.get("radius")))


def _twist_body(c: Compilation, e: SpecElement, name: str, inertia: float) -> SpecElement:
    row = c.spec.root.row.children["worldbody"].children["body"]
    body = SpecElement("body", {"name": name, "pos": np.zeros(3)}, place=e.place, row=row)
    attrs = {"pos": np.zeros(3), "mass": _MASS, "diaginertia": np.full(3, inertia)}
    body.adopt(SpecElement("inertial", attrs, place=e.place, row=row.children["inertial"]))
    axis = np.array([1.0, 0.0, 0.0])
    # It is a child of the world, where no childclass of the enclosing bodies applies.
    hinge = {"name": name, "type": "hinge", "pos": np.zeros(3), "axis": axis, "class": MAIN_CLASS}
    body.adopt(SpecElement("joint", hinge, place=e.place, row=row.children["joint"]))
    return body


def _add_to_world(c: Compilation, e: SpecElement, body: SpecElement) -> None:
    """Insert a body after the child of the world that contains the rod."""
    top = e
    for ancestor in e.ancestors():
        if ancestor.tag == "body":
            top = ancestor
    before = c.last_twist_body.get(top, top)
    siblings = top.holder
    if siblings.tag == "frame":
        undo = frame_pose(c, top).inverse()
        body.attrs.update(pos=undo.pos, quat=undo.quat)
        body.unframed = True
    # A rod in the world itself is still in the tree here, after the bodies of its points.
    siblings.adopt(body, siblings.children.index(before) + 1)
    c.last_twist_body[top] = body
