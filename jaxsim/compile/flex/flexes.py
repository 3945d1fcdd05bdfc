"""Fields `flex_*` and `flexedge_*` that do not depend on the inertia of the bodies.

The flexes are those of `<deformable>` and those that `flexcomp.py` added. Lengths and positions are
those of the reference pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxsim.compile.columns import Column, copy_columns
from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.cells import ORDERS, lattice_axes
from jaxsim.compile.flex.elastic.elastic import elastic_fields
from jaxsim.compile.flex.flex import Flex
from jaxsim.compile.flex.rules import check_elements, check_flex_options, check_numbers
from jaxsim.compile.flex.topology import flex_topology
from jaxsim.compile.reference.pose import Reference, reference_pose
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL
from jaxsim.spec import SpecElement

_SELF = {"none": 0, "narrow": 1, "bvh": 2, "sap": 3, "auto": 4}
_BOOLEAN = {"false": 0, "true": 1}

_COLUMNS = (
    Column("flex_dim", "dim", dtype=np.int32),
    Column("flex_group", "group", dtype=np.int32),
    Column("flex_flatskin", "flatskin", dtype=bool),
)
_CONTACT_COLUMNS = (
    Column("flex_contype", "contype", dtype=np.int32),
    Column("flex_conaffinity", "conaffinity", dtype=np.int32),
    Column("flex_condim", "condim", dtype=np.int32),
    Column("flex_priority", "priority", dtype=np.int32),
    Column("flex_solmix", "solmix"),
    Column("flex_solref", "solref", 2),
    Column("flex_solimp", "solimp", 5),
    Column("flex_friction", "friction", 3),
    Column("flex_margin", "margin"),
    Column("flex_gap", "gap"),
    Column("flex_selfcollide", "selfcollide", dtype=np.int32, keywords=_SELF),
    Column("flex_activelayers", "activelayers", dtype=np.int32),
    Column("flex_passive", "passive", dtype=np.int32, keywords=_BOOLEAN),
)
_EDGE_COLUMNS = (
    Column("flex_edgestiffness", "stiffness"),
    Column("flex_edgedamping", "damping"),
)
_ELASTICITY_COLUMNS = (Column("flex_damping", "damping"),)

_CENTER_TOLERANCE = MINVAL  # coordinates below this are at the center of a body [m]


@declare_pass(
    needs="option assets bodies geoms joints masses tendons", gives="flex flexedge flexes"
)
def flexes(c: Compilation) -> None:
    """Set all fields of flexes that follow from the reference pose and the elements."""
    elements = [e for e in c.spec.section("deformable") if e.tag == "flex"]
    c.register("flex", elements, [None] * len(elements))
    c.names["flex"] = [e.name or "" for e in elements]
    # Names of flexes may repeat; the first flex has the name.
    for i, e in enumerate(elements):
        if e.name:
            c.ids["flex"].setdefault(e.name, i)
    pose = reference_pose(c.fields) if elements else None
    found = [_flex(c, i, e, pose) for i, e in enumerate(elements)]
    if any(flex is None for flex in found):
        return
    flexes = [flex for flex in found if flex is not None]
    c.flexes = flexes
    for flex in flexes:
        check_flex_options(c, flex)
    if len(c.problems):
        return
    _columns(c, flexes)
    _set_counts(c, flexes)
    _points(c, flexes)
    _shapes(c, flexes)
    c.fields.update(elastic_fields(c, flexes))


def _child(e: SpecElement, tag: str) -> SpecElement:
    """Return a child of the flex, or an element with the defaults."""
    found = e.find(tag)
    return SpecElement(tag, row=e.row.children[tag], place=e.place) if found is None else found


def _flex(c: Compilation, i: int, e: SpecElement, pose: Reference | None) -> Flex | None:
    """Read one flex; None if an error makes it unusable."""
    before = len(c.problems)
    check_numbers(c, e)
    if len(c.problems) > before or pose is None:
        return None
    names = (e.get("body") or "").split()
    vertbody = np.array([c.resolve_name("body", name, e, "body") for name in names], int)
    vert = _coordinates(e, "vertex", len(vertbody))
    if len(vertbody) == 1:
        vertbody = np.repeat(vertbody, len(vert))
    nodes = (e.get("node") or "").split()
    nodebody = np.array([c.resolve_name("body", name, e, "node") for name in nodes], int)
    node = _coordinates(e, "nodecoord", len(nodebody))
    elem = np.array(e.get("element"), int).reshape(-1, e.get("dim") + 1)
    if len(c.problems) > before:
        return None
    rest_position = pose.world_position(vertbody, vert)
    if not check_elements(c, e, elem, len(vert)):
        return None
    if elem.shape[1] == 4:
        elem = _orient_tetrahedra(elem, rest_position)
    order = ORDERS.get(e.get("dof"), 0) if len(nodebody) else 0
    cellcount = np.ones(3, int)
    if e.get("cellcount") is not None:
        cellcount = np.array(e.get("cellcount"), int)
    node_place = pose.world_position(nodebody, node) if order else np.zeros((0, 3))
    if order:
        axes = lattice_axes(node_place, order * cellcount + 1)
        if axes is None:
            c.fault(e, "its nodes are no upright lattice: an interpolated flex needs some depth")
            return None
        rest_position, node_place = rest_position @ axes, node_place @ axes
    return Flex(
        id=i,
        element=e,
        contact=_child(e, "contact"),
        edge=_child(e, "edge"),
        elasticity=_child(e, "elasticity"),
        order=order,
        cellcount=cellcount,
        vertbody=np.full(len(vert), -1) if order else vertbody,
        vert=vert,
        nodebody=nodebody if order else nodebody[:0],
        node=node if order else node[:0],
        elem=elem,
        topology=flex_topology(elem.shape[1] - 1, elem),
        rest_position=rest_position,
        node_place=node_place,
    )


def _coordinates(e: SpecElement, attr: str, count: int) -> np.ndarray:
    """Return positions in bodies, (n, 3); the centers of `count` bodies by default."""
    given = e.get(attr)
    return np.zeros((count, 3)) if given is None else np.array(given, float).reshape(-1, 3)


def _orient_tetrahedra(elem: np.ndarray, rest_position: np.ndarray) -> np.ndarray:
    """Return tetrahedra with vertices in the order that MuJoCo's sides need."""
    corner = rest_position[elem]
    wrong = np.linalg.det(corner[:, 1:] - corner[:, :1]) > 0
    return np.where(wrong[:, None], elem[:, [0, 2, 1, 3]], elem)


def _columns(c: Compilation, flexes: Sequence[Flex]) -> None:
    copy_columns(c, [f.element for f in flexes], _COLUMNS)
    copy_columns(c, [f.contact for f in flexes], _CONTACT_COLUMNS)
    copy_columns(c, [f.edge for f in flexes], _EDGE_COLUMNS)
    copy_columns(c, [f.elasticity for f in flexes], _ELASTICITY_COLUMNS)
    rgba = np.array([f.element.get("rgba") for f in flexes], np.float32).reshape(-1, 4)
    c.fields.update(
        flex_rgba=rgba,
        flex_matid=_concatenate([_materials(c, f) for f in flexes]),
        flex_radius=np.array([_radius(f) for f in flexes], float),
        flex_interp=_ints([-f.order if _is_shell(f) else f.order for f in flexes]),
        flex_cellnum=_ints([f.cellcount for f in flexes]).reshape(-1, 3),
        flex_rigid=np.array([f.rigid for f in flexes], bool),
        flex_centered=np.array([_is_centered(f) for f in flexes], bool),
    )


def _materials(c: Compilation, f: Flex) -> np.ndarray:
    """Return the material of each element: -1 for none, one for all, or one each."""
    names = str(f.element.get("material") or "").split()
    found = np.array(
        [c.resolve_name("material", name, f.element, "material") for name in names], int
    )
    if len(names) not in (0, 1, len(f.elem)):
        c.fault(
            f.element,
            f"material needs 1 name or one for each of {len(f.elem)} elements, got {len(names)}",
        )
        return np.full(len(f.elem), -1)
    return np.broadcast_to(found if names else -1, len(f.elem))


def _radius(f: Flex) -> float:
    """Return the radius; for a rod with a box section half its short side."""
    if f.dim == 1 and f.elasticity.get("section") == "box" and f.elasticity.get("young") > 0:
        return float(np.min(f.elasticity.get("sectionsize")))
    return float(f.element.get("radius"))


def _is_shell(f: Flex) -> bool:
    """Return whether it resists as a shell; an interpolated one then has a negative order."""
    return f.elasticity.get("elastic2d") != "none"


def _is_centered(f: Flex) -> bool:
    return not np.any(np.abs(f.node if f.order else f.vert) > _CENTER_TOLERANCE)


# Addresses that are -1 where a flex has no part.
_ABSENT = ("flex_shelldataadr", "flex_texcoordadr")


class _Table(NamedTuple):
    """Sizes of one kind of part: names of its fields, and the size for each flex."""

    number: str
    address: str
    total: str
    size: list[int]


def _set_counts(c: Compilation, flexes: Sequence[Flex]) -> None:
    """Set counts and start addresses of all parts."""
    texcoord = [len(_texcoord(f)) for f in flexes]
    tables = (
        _Table("flex_nodenum", "flex_nodeadr", "nflexnode", [len(f.node) for f in flexes]),
        _Table("flex_vertnum", "flex_vertadr", "nflexvert", [len(f.vert) for f in flexes]),
        _Table("flex_edgenum", "flex_edgeadr", "nflexedge", [len(f.topology.edge) for f in flexes]),
        _Table("flex_elemnum", "flex_elemadr", "nflexelem", [len(f.elem) for f in flexes]),
        _Table("", "flex_elemdataadr", "nflexelemdata", [f.elem.size for f in flexes]),
        _Table("", "flex_elemedgeadr", "nflexelemedge", [f.topology.elemedge.size for f in flexes]),
        _Table("flex_shellnum", "", "", [len(f.topology.shell) for f in flexes]),
        _Table("", "flex_shelldataadr", "nflexshelldata", [f.topology.shell.size for f in flexes]),
        _Table("", "flex_texcoordadr", "nflextexcoord", texcoord),
    )
    c.fields["nflex"] = len(flexes)
    for table in tables:
        size = _ints(table.size)
        address = np.cumsum(size) - size
        if table.address in _ABSENT:
            address = np.where(size > 0, address, -1)
        for name, values in ((table.number, size), (table.address, address)):
            if name:
                c.fields[name] = values.astype(np.int32)
        if table.total:
            c.fields[table.total] = int(size.sum())


def _points(c: Compilation, flexes: Sequence[Flex]) -> None:
    """Set vertices, nodes and their bodies."""
    boxes = [_box(f) for f in flexes]
    c.fields.update(
        flex_vertbodyid=_concatenate([f.vertbody for f in flexes]),
        flex_vert=_concatenate_rows([f.vert for f in flexes], 3),
        flex_nodebodyid=_concatenate([f.nodebody for f in flexes]),
        flex_node=_concatenate_rows([f.node for f in flexes], 3),
        flex_node0=_concatenate_rows([f.node_place for f in flexes], 3),
        flex_size=_concatenate_rows([0.5 * (high - low)[None] for low, high in boxes], 3),
        flex_vert0=_concatenate_rows(
            [_normalize_to_box(f, *box) for f, box in zip(flexes, boxes, strict=True)], 3
        ),
        flex_vertcell=_concatenate([_cells(f, *box) for f, box in zip(flexes, boxes, strict=True)]),
    )


def _box(f: Flex) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper corner of the box around the vertices, or the nodes, in the world."""
    points = f.node_place if f.order else f.rest_position
    return points.min(axis=0), points.max(axis=0)


def _normalize_to_box(f: Flex, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return vertices scaled to [0, 1] in their box; 0.5 along an axis without extent."""
    size = high - low
    flat = size < _CENTER_TOLERANCE
    return np.where(flat, 0.5, (f.rest_position - low) / np.where(flat, 1.0, size))


def _cells(f: Flex, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the cell of each vertex of an interpolated flex; -1 without interpolation."""
    if not f.order:
        return np.full(len(f.vert), -1)
    cell = np.floor(_normalize_to_box(f, low, high) * f.cellcount).astype(int)
    return np.ravel_multi_index(tuple(np.clip(cell, 0, f.cellcount - 1).T), tuple(f.cellcount))


def _texcoord(f: Flex) -> np.ndarray:
    given = f.element.get("texcoord")
    return np.zeros((0, 2)) if given is None else np.array(given, float).reshape(-1, 2)


def _shapes(c: Compilation, flexes: Sequence[Flex]) -> None:
    """Set elements, edges, surface, and texture coordinates."""
    corners = [f.element.get("elemtexcoord") for f in flexes]
    corner = [
        f.elem.ravel() if given is None else given for f, given in zip(flexes, corners, strict=True)
    ]
    edges = [(f, f.topology.edge) for f in flexes]
    bending = [f.dim == 2 and f.elasticity.get("elastic2d") in ("bend", "both") for f in flexes]
    flaps = [
        f.topology.flap if bends else np.full_like(f.topology.flap, -1)
        for f, bends in zip(flexes, bending, strict=True)
    ]
    # Nothing reads the lengths of an interpolated flex.
    lengths = [
        np.linalg.norm(f.rest_position[e[:, 0]] - f.rest_position[e[:, 1]], axis=1) * (f.order == 0)
        for f, e in edges
    ]
    rigid = [(f.order == 0) & (f.vertbody[e[:, 0]] == f.vertbody[e[:, 1]]) for f, e in edges]
    c.fields.update(
        flex_elem=_concatenate([f.elem for f in flexes]),
        flex_elemtexcoord=_concatenate(corner),
        flex_elemedge=_concatenate([f.topology.elemedge for f in flexes]),
        flex_elemlayer=_concatenate([f.topology.layer for f in flexes]),
        flex_shell=_concatenate([f.topology.shell for f in flexes]),
        flex_edge=_concatenate([e for _, e in edges]).reshape(-1, 2),
        flex_edgeflap=_concatenate(flaps).reshape(-1, 2),
        flex_texcoord=_concatenate_rows([_texcoord(f) for f in flexes], 2).astype(np.float32),
        flexedge_length0=np.concatenate([*lengths, np.zeros(0)]),
        flexedge_rigid=np.concatenate([*rigid, np.zeros(0, bool)]),
    )


def _ints(values) -> np.ndarray:
    return np.array(values, np.int32)


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the numbers of all flexes, int32."""
    return np.concatenate([*(np.ravel(part) for part in parts), np.zeros(0)]).astype(np.int32)


def _concatenate_rows(parts: Sequence[np.ndarray], width: int) -> np.ndarray:
    """Concatenate the rows of all flexes."""
    return np.concatenate([*parts, np.zeros((0, width))])
