"""Expansion of `<flexcomp>` into bodies, joints, constraints and a `<flex>`.

Each point becomes a body with slide joints, or, if it is pinned, a vertex of the parent body. An
interpolated flex (dof trilinear or quadratic) has bodies at the nodes of a lattice around it
instead, and all its points are vertices of the parent. Elastic rods get hinges for their twist,
`rod_twist.py`.

The expansion follows the order of the document, together with attachments (expand/attach.py); a
`<replicate>` copies its result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim.assets.builtin.lattice import LATTICE_SHAPES, LatticePoints
from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.cells import ORDERS, node_masses
from jaxsim.compile.flex.files import file_points
from jaxsim.compile.flex.pins import pinned_points
from jaxsim.compile.flex.rod_twist import add_twist_bodies
from jaxsim.compile.geometry.element_pose import frame_pose, pose_of
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.compile.options.bounds import count_elements
from jaxsim.enums import MINVAL
from jaxsim.spec import SpecElement

# Attributes and children that are copied to the flex.
_PASSED_ATTRS = ("group", "radius", "material", "rgba")
_PASSED_CHILDREN = ("contact", "edge", "elasticity")

# Directions of the slide joints of a point; a radial one slides along its own ray.
_AXES = {"2d": np.eye(3)[:2], "radial": None}

# Types whose points are the corners of flat faces, which have flat shading by default.
_FLAT_SHAPES = ("box", "cylinder")

_PER_POINT = 5  # elements for a point: a body, its inertia and three joints
_MAX_LATTICE = 4_000_000  # limit of the points of a grid or box, checked before they are created
_MAX_NODES = 50_000

_CONSTRAINTS = {"true": "flex", "strain": "flexstrain"}


def expand_flexcomp(c: Compilation, element: SpecElement) -> None:
    """Replace a `<flexcomp>` by its expansion."""
    before = len(c.problems)
    points = _points(c, element)
    if points is not None:
        count_elements(c, element, _PER_POINT * len(points.point))
    if len(c.problems) == before and points is not None:
        _expand(c, element, points)
    else:
        element.remove()
    # Enclosing frames may still be added to the elements whose poses were stored.
    c.frames.clear()


def _points(c: Compilation, e: SpecElement) -> LatticePoints | None:
    """Return the points and elements in the frame of the flexcomp."""
    if e.get("dim") not in (1, 2, 3):
        c.fault(e, f"dim='{e.get('dim')}' must be 1 (rod), 2 (shell) or 3 (solid)")
        return None
    if not _check_row_lengths(c, e):
        return None
    if min(e.get("mass"), e.get("inertiabox")) < MINVAL:
        c.fault(e, "mass and inertiabox must be positive")
    if np.any(e.get("scale") < MINVAL):
        c.fault(e, "scale must be positive along all axes")
    if np.any(e.get("count") < 1):
        c.fault(e, "count must be at least 1 along each axis")
        return None
    kind = "mesh" if e.own("mesh") is not None and e.own("type") is None else e.get("type")
    if kind in ("mesh", "gmsh"):
        return file_points(c, e)
    if e.own("mesh") is not None:
        c.fault(e, f"type='{kind}' takes no mesh; remove one of the two, or set type='mesh'")
        return None
    if kind == "direct":
        return _direct(c, e)
    if np.prod(np.array(e.get("count"), float)) > _MAX_LATTICE:
        c.fault(e, f"count asks for more than {_MAX_LATTICE} points; lower it")
        return None
    if np.any(e.get("spacing") < 2 * e.get("radius")):
        c.fault(e, "spacing must be at least twice the radius, along all three axes")
        return None
    points = LATTICE_SHAPES[kind](
        e.get("dim"), np.array(e.get("count"), int), np.array(e.get("spacing"))
    )
    if not len(points.element):
        c.fault(e, f"count gives no elements of a {kind}; give more points along its axes")
        return None
    return points if e.own("material") is not None else points._replace(texcoord=None)


def _check_row_lengths(c: Compilation, e: SpecElement) -> bool:
    """Return whether the lists of points and elements have valid lengths, used or not."""
    point, element, width = e.own("point"), e.own("element"), e.get("dim") + 1
    ragged = point is not None and len(point) % 3
    if ragged:
        c.fault(e, f"point needs 3 numbers for each point, got {len(point)}")
    broken = element is not None and len(element) % width
    if broken:
        c.fault(e, f"element needs {width} points for each element, got {len(element)} numbers")
    return not (ragged or broken)


def _direct(c: Compilation, e: SpecElement) -> LatticePoints | None:
    """Return points and elements that are given as attributes."""
    point, element, dim = e.own("point"), e.own("element"), e.get("dim")
    if point is None or element is None:
        c.fault(e, "type='direct' needs point and element")
        return None
    scaled = np.array(point, float).reshape(-1, 3) * e.get("scale")
    return LatticePoints(dim, scaled, np.array(element, int).reshape(-1, dim + 1))


def _expand(c: Compilation, e: SpecElement, points: LatticePoints) -> None:
    """Replace the element by its bodies, and add the flex and its constraint."""
    parent, checked = _parent_name(c, e), _check_points(c, e, points)
    if parent is None or checked is None:
        e.remove()
        return
    order = ORDERS.get(e.get("dof"), 0)
    lattice = _lattice(c, e, order) if order else None
    if order and lattice is None:
        e.remove()
        return
    points = checked
    held = pinned_points(c, e, points.dim, len(points.point), lattice)
    used = np.zeros(len(points.point), bool)
    used[points.element] = True
    placed = _pose(c, e).point(points.point)
    points = _drop_unused_points(points._replace(point=placed), used)
    if not order:
        held = held[used]
        held[0] |= e.get("dof") == "radial"

    flex = _flex(c, e, points)
    vertices = (parent, points.point)
    if held.all() or e.get("rigid") == "true":
        flex.attrs.update(body=parent, vertex=points.point.ravel())
        bodies = []
    elif order:
        bodies = _lattice_bodies(
            c, e, flex, parent, held, points, (placed.min(axis=0), placed.max(axis=0))
        )
    else:
        bodies = _make_point_bodies(c, e, flex, vertices, held)
    _insert_bodies(c, e, bodies)
    add_twist_bodies(c, e, flex, points, held)
    e.remove()
    _own_section(c, "deformable").adopt(flex)
    _constrain(c, e, order)


def _lattice(c: Compilation, e: SpecElement, order: int) -> np.ndarray | None:
    """Return the number of nodes of the interpolation along each axis, (3,)."""
    nodes = order * np.array(e.get("cellcount"), int) + 1
    if np.any(nodes < 2):
        c.fault(e, "cellcount must be at least 1 along each axis")
    elif np.prod(nodes.astype(float)) > _MAX_NODES:
        c.fault(e, f"cellcount asks for more than {_MAX_NODES} nodes; lower it")
    elif count_elements(c, e, _PER_POINT * int(np.prod(nodes))):
        return nodes
    return None


def _parent_name(c: Compilation, e: SpecElement) -> str | None:
    """Return the name of the enclosing body, which the flex refers to."""
    owner = next(a for a in e.ancestors() if a.tag != "frame")
    if owner.tag == "worldbody":
        return "world"
    if owner.tag == "body" and owner.name:
        return owner.name
    c.fault(e, "the body that it is in needs a name; add name='...' to the body")
    return None


def _check_points(c: Compilation, e: SpecElement, points: LatticePoints) -> LatticePoints | None:
    """Return the points with texture coordinates, or None if a number is out of range."""
    n = len(points.point)
    outside = np.argwhere((points.element < 0) | (points.element >= n))
    if len(outside):
        row, column = outside[0]
        c.fault(
            e, f"element {row} has point {points.element[row, column]}, but there are {n} points"
        )
        return None
    given = e.own("texcoord")
    if given is None or points.corner is not None:
        return points
    if len(given) != 2 * n:
        c.fault(e, f"texcoord needs 2 numbers for each of {n} points, got {len(given)}")
        return None
    return points._replace(texcoord=np.array(given, float).reshape(-1, 2))


def _drop_unused_points(points: LatticePoints, used: np.ndarray) -> LatticePoints:
    """Remove the points that no element has."""
    if used.all():
        return points
    number = np.cumsum(used) - 1
    texcoord = points.texcoord
    if texcoord is not None and points.corner is None:
        texcoord = texcoord[used]
    return points._replace(
        point=points.point[used], element=number[points.element], texcoord=texcoord
    )


def _pose(c: Compilation, e: SpecElement) -> FramePose:
    """Return the pose of the points; without a frame by `quat` as written.

    MuJoCo does not normalize this quaternion, so another length than 1 deforms the grid.
    """
    pose, quat = pose_of(c, e), e.attrs.get("quat")
    if quat is None or e.holder.tag == "frame":
        return pose
    return FramePose(pose.pos, np.array(quat, float))


def _flex(c: Compilation, e: SpecElement, points: LatticePoints) -> SpecElement:
    """Return the flex with the attributes copied from the flexcomp, without its bodies."""
    row = c.spec.root.row.children["deformable"].children["flex"]
    attrs = {attr: e.attrs[attr] for attr in _PASSED_ATTRS if attr in e.attrs}
    attrs |= {"name": e.attrs.get("name", ""), "dim": points.dim}
    attrs["element"] = points.element.ravel()
    flat = e.get("type") in _FLAT_SHAPES or (e.get("type") == "grid" and points.dim == 3)
    attrs["flatskin"] = e.own("flatskin") or ("true" if flat else "false")
    if points.texcoord is not None:
        attrs["texcoord"] = points.texcoord.ravel()
    if points.corner is not None:
        attrs["elemtexcoord"] = points.corner.ravel()
    flex = SpecElement("flex", attrs, place=e.place, row=row)
    for child in e.children:
        if child.tag in _PASSED_CHILDREN:
            copy = child.copy()
            copy.row = row.children[child.tag]
            copy.attrs = {k: v for k, v in copy.attrs.items() if copy.row.attribute(k)}
            flex.adopt(copy)
    return flex


def _make_point_bodies(
    c: Compilation,
    e: SpecElement,
    flex: SpecElement,
    vertices: tuple[str, np.ndarray],
    held: np.ndarray,
) -> list[SpecElement]:
    """Return a body at each point that is not pinned."""
    parent, point = vertices
    name, mass = flex.name or "", e.get("mass") / len(point)
    names = [parent if pin else f"{name}_{i}" for i, pin in enumerate(held)]
    flex.attrs["body"] = " ".join(names)
    if held.any():
        flex.attrs["vertex"] = np.where(held[:, None], point, 0.0).ravel()
    axes = _AXES.get(e.get("dof"), np.eye(3))
    return [
        _body(c, e, names[i], point[i], mass, point[i : i + 1] if axes is None else axes)
        for i in np.flatnonzero(~held)
    ]


def _lattice_bodies(
    c: Compilation,
    e: SpecElement,
    flex: SpecElement,
    parent: str,
    held: np.ndarray,
    points: LatticePoints,
    box: tuple[np.ndarray, np.ndarray],
) -> list[SpecElement]:
    """Return a body at each node of the lattice that has mass and is not pinned."""
    point = points.point
    cellcount, order = np.array(e.get("cellcount"), int), ORDERS[e.get("dof")]
    places = np.indices(tuple(order * cellcount + 1)).reshape(3, -1).T
    low, high = box
    node = low + (high - low) * places / (order * cellcount)
    share = node_masses(points, box, cellcount, order, _is_shell(e))
    if not np.any(share > 0):
        c.fault(e, "its elements have no volume; move their points apart")
    held = held | (share <= 0)
    share = np.where(held, 0.0, share)
    mass = e.get("mass") * share / max(share.sum(), MINVAL)
    name = flex.name or ""
    names = [
        parent if pin else f"{name}_{i}_{j}_{k}"
        for pin, (i, j, k) in zip(held, places, strict=True)
    ]
    flex.attrs.update(
        body=" ".join([parent] * len(point)),
        vertex=point.ravel(),
        node=" ".join(names),
        dof=e.get("dof"),
        cellcount=cellcount,
    )
    if held.any():
        flex.attrs["nodecoord"] = np.where(held[:, None], node, 0.0).ravel()
    return [_body(c, e, names[i], node[i], mass[i], np.eye(3)) for i in np.flatnonzero(~held)]


def _is_shell(e: SpecElement) -> bool:
    """Return whether an interpolated flex is an elastic shell, whose inside has no mass."""
    elasticity = e.find("elasticity")
    return elasticity is not None and elasticity.get("elastic2d") != "none"


def _body(
    c: Compilation, e: SpecElement, name: str, pos: np.ndarray, mass: float, axes: np.ndarray
) -> SpecElement:
    """Return a point mass that slides along some axes."""
    row = c.spec.root.row.children["worldbody"].children["body"]
    body = SpecElement("body", {"name": name, "pos": pos}, place=e.place, row=row)
    inertia = np.full(3, 2.0 * mass * np.square(e.get("inertiabox")) / 3.0)
    attrs = {"pos": np.zeros(3), "mass": float(mass), "diaginertia": inertia}
    body.adopt(SpecElement("inertial", attrs, place=e.place, row=row.children["inertial"]))
    for axis in axes:
        attrs = {"type": "slide", "pos": np.zeros(3), "axis": np.array(axis, float)}
        body.adopt(SpecElement("joint", attrs, place=e.place, row=row.children["joint"]))
    for child in e.children:
        if child.tag == "plugin":
            body.adopt(child.copy())
    return body


def _insert_bodies(c: Compilation, e: SpecElement, bodies: Sequence[SpecElement]) -> None:
    """Insert bodies with poses in the enclosing body before the element, through frames."""
    parent = e.holder
    undo = frame_pose(c, e).inverse() if parent.tag == "frame" else None
    place = parent.children.index(e)
    for i, body in enumerate(bodies):
        if undo is not None:
            inner = undo.apply(FramePose(body.attrs["pos"], identity_pose().quat))
            body.attrs.update(pos=inner.pos, quat=inner.quat)
            body.unframed = True
        parent.adopt(body, place + i)


def _constrain(c: Compilation, e: SpecElement, order: int) -> None:
    """Add the equality constraint of `<edge equality>`, one for each cell of a strain."""
    edge = e.find("edge")
    kind = "false" if edge is None else edge.get("equality")
    if edge is None or kind == "false":
        return
    section = _own_section(c, "equality")
    # Defaults of equalities do not apply to it, so all attributes are set.
    attrs = {"flex": e.attrs.get("name", ""), "active": "true"}
    attrs |= {attr: np.array(edge.get(attr)) for attr in ("solref", "solimp")}
    cells = _strained_cells(e) if kind == "strain" and order else [None]
    for cell in cells:
        own = attrs if cell is None else attrs | {"cell": np.array(cell, float)}
        row = section.row.children[_CONSTRAINTS[kind]]
        section.adopt(SpecElement(_CONSTRAINTS[kind], dict(own), place=e.place, row=row))


def _strained_cells(e: SpecElement) -> list[tuple[int, ...]]:
    """Return the cells whose strain is limited; for a shell the outer faces, as (face, -1, -1)."""
    nx, ny, nz = (int(n) for n in e.get("cellcount"))
    if _is_shell(e):
        return [(face, -1, -1) for face in range(2 * (ny * nz + nx * nz + nx * ny))]
    return list(np.ndindex(nx, ny, nz))


def _own_section(c: Compilation, tag: str) -> SpecElement:
    """Return the section for elements that flexcomps add, which follows the written sections."""
    made = c.flexcomp_sections
    if tag not in made:
        made[tag] = c.spec.root.adopt(SpecElement(tag, row=c.spec.root.row.children[tag]))
    return made[tag]
