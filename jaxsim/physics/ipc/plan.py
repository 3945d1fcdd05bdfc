"""Static plan of the mode ipc: candidate pairs of shells, as grids.

MuJoCo's documentation, XML reference: option/flag/ipc. The mode resolves the contacts of shells
with each other, with themselves and with fixed geoms; no other part of the engine sees these
contacts.

Points are the vertices of all flexes, followed by the corners of fixed geoms. A grid is the
Cartesian product of two lists of items, with a mask (`meets`) of those that can touch: points with
triangles, edges with edges, points with geoms. A pair is its flat, row-major index. For a shell of
one quad, vertices 0 to 3, over a box with the corners 4 to 11:

    vertex_triangle     [0 1 2]  [1 3 2]           pair 4 = row 2, column 0: vertex 2 with [0 1 2],
    0                      -        x              of which it is a corner: masked
    1                      -        -
    2                      -        -
    3                      x        -
    4 (a corner)           x        x              pair 9 = row 4, column 1: corner 4 with [1 3 2]
    ...
"""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import DisableBit, GeomType, JointType
from jaxsim.model.flex.kinds import SURFACE_SHAPES, bits_in_common, mode_contacts, shells
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.flex.item import element_vertices
from jaxsim.physics.collision.flex.pairs import touches_itself
from jaxsim.physics.topology import ancestors

# Capacity of a grid, per point of the shells.
_CAPACITY_PER_POINT = {"vertex_geom": 2, "vertex_triangle": 8, "edge_edge": 16}
ROWS_PER_POINT = 4  # constraint rows per point
SPARE_CAPACITY = 64  # added to the capacity of each grid and of the rows


class FixedFeatures(NamedTuple):
    """Corners and edges of fixed geoms.

    Attributes:
      geom: geom of each corner, `[n]`.
      sign: its position in units of the half sizes, `[n, 3]`; zeros for meshes.
      vertex: its address in `mesh_vert`; -1: not a mesh, `[n]`.
      edges: pairs of corners, `[k, 2]`.
    """

    geom: np.ndarray
    sign: np.ndarray
    vertex: np.ndarray
    edges: np.ndarray


class PairGrid(NamedTuple):
    """Cartesian product of two lists of items.

    Attributes:
      kind: "vertex_triangle": points with triangles; "edge_edge": edges with edges; "vertex_geom":
        vertices with geoms of one type.
      first, second: points of the items, `[n, k]` and `[m, l]`; for geoms their ids.
      meets: mask of candidate pairs, `[n, m]` bool.
      capacity: largest number of near pairs.
      type: type of the geoms; None: no geoms.
    """

    kind: str
    first: np.ndarray
    second: np.ndarray
    meets: np.ndarray
    capacity: int
    type: GeomType | None = None


class IpcPlan(NamedTuple):
    """Static plan of a model.

    Attributes:
      grids: candidate pairs.
      fixed: corners and edges of fixed geoms; points that follow the vertices.
      flex: flex of each point; -1: fixed, `[npoint]`.
      moves: 1 where a dof moves a point, `[npoint, nv]`.
      free: first of the three slides that belong to a vertex alone; -1: none, `[nflexvert]`.
      carrier: body that carries a vertex which is not free; 0: none, `[nflexvert]`.
      ccd_dofs: dofs whose step is limited by continuous collision detection, `[nv]` bool: those of
        shells, and of the trees that carry their vertices.
      rows: capacity: largest number of active pairs.
    """

    grids: tuple[PairGrid, ...]
    fixed: FixedFeatures
    flex: np.ndarray
    moves: np.ndarray
    free: np.ndarray
    carrier: np.ndarray
    ccd_dofs: np.ndarray
    rows: int


def ipc_plan(m: Model) -> IpcPlan:
    """Return the plan of a model, with its flags."""
    off = DisableBit.CONTACT | DisableBit.CONSTRAINT
    return _plan_of_structure(m.structure, bool(m.opt.disableflags & off))


@cache_by_structure
def _plan_of_structure(s: Structure, off: bool) -> IpcPlan:
    """Return the plan of a structure; `off`: a flag disables contacts or constraints."""
    # Flags and contact filters determine which flexes meet which geoms and flexes.
    with_geom, with_flex = mode_contacts(s)
    with_geom = with_geom & bits_in_common(s, "flex", "geom")
    with_flex = with_flex & bits_in_common(s, "flex", "flex")
    np.fill_diagonal(with_flex, shells(s) & touches_itself(s))
    if off:
        with_geom, with_flex = np.zeros_like(with_geom), np.zeros_like(with_flex)
    # Points: vertices of flexes, then corners of fixed geoms; dofs that move them.
    fixed = _fixed_features(s, np.asarray(with_geom.any(axis=0)))
    own = np.repeat(np.arange(s.nflex), s.flex_vertnum)
    flex = np.append(own, np.full(len(fixed.geom), -1))
    body = np.maximum(np.asarray(s.flex_vertbodyid), 0)
    # Dofs that move each point, if it belongs to a shell.
    of_shell = shells(s)[own]
    moves = np.zeros((len(flex), s.nv))
    moves[: s.nflexvert] = ancestors(s)[body] * of_shell[:, None]
    free = _free_vertex_dofs(s, of_shell)
    # Vertices carried by a body that is not their own.
    carried = (free < 0) & moves[: s.nflexvert].any(axis=1)
    owner = np.append(-np.ones(s.nflexvert, int), fixed.geom)
    # One grid per type of geom, one of points with triangles, one of edges.
    grids = (
        *_vertex_geom_grids(s, with_geom, own, np.asarray(moves[: s.nflexvert].any(axis=1))),
        _vertex_triangle_grid(s, with_geom, with_flex, flex, owner),
        _edge_edge_grid(s, with_geom, with_flex, fixed),
    )
    rows = min(
        ROWS_PER_POINT * int(of_shell.sum()) + SPARE_CAPACITY, sum(g.capacity for g in grids)
    )
    return IpcPlan(
        tuple(g for g in grids if g.capacity),
        fixed,
        flex,
        moves,
        free,
        np.where(carried, body, 0),
        _ccd_dofs(s, free, np.where(carried, body, 0)),
        rows,
    )


def _free_vertex_dofs(s: Structure, of_shell: np.ndarray) -> np.ndarray:
    """Return the first dof of vertices whose body has three slides and no other vertex; else -1.

    All other vertices are carried by their bodies.
    """
    # A body with three slides and a single vertex.
    body = np.asarray(s.flex_vertbodyid)
    count = np.bincount(body[body >= 0], minlength=s.nbody)
    slides = np.bincount(
        np.asarray(s.jnt_bodyid)[np.asarray(s.jnt_type) == JointType.SLIDE], minlength=s.nbody
    )
    own = (slides == 3) & (np.asarray(s.body_jntnum) == 3) & (count == 1)
    own = of_shell & (body >= 0) & own[body]
    return np.where(own, np.asarray(s.body_dofadr)[body], -1)


def _ccd_dofs(s: Structure, free: np.ndarray, carrier: np.ndarray) -> np.ndarray:
    """Return the dofs of free vertices, and of the trees that carry other vertices."""
    held = np.zeros(s.nv, bool)
    for k in range(3):
        held[free[free >= 0] + k] = True
    trees = np.unique(np.asarray(s.body_treeid)[carrier[carrier > 0]])
    return held | np.isin(s.dof_treeid, trees)


def _fixed_features(s: Structure, geoms: np.ndarray) -> FixedFeatures:
    """Return corners and edges of the selected geoms; of spheres and capsules those of the axis."""
    # Number the corners of all geoms consecutively.
    geom, sign, vertex, edges, count = [], [], [], [], 0
    for g in np.flatnonzero(geoms):
        corners, ends, of_mesh = _geom_features(s, int(g))
        geom.append(np.full(len(corners), g))
        sign.append(corners)
        vertex.append(of_mesh)
        edges.append(count + ends)
        count += len(corners)
    none = np.zeros(0, int)
    return FixedFeatures(
        np.concatenate([none, *geom]),
        np.concatenate([np.zeros((0, 3)), *sign]),
        np.concatenate([none, *vertex]),
        np.concatenate([np.zeros((0, 2), int), *edges]),
    )


def _geom_features(s: Structure, g: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a geom's corners in units of its size, its edges as corner pairs, mesh vertices."""
    kind = GeomType(int(s.geom_type[g]))
    if kind == GeomType.MESH:
        vertex, edges = _hull_edges(s, int(s.geom_dataid[g]))
        return np.zeros((len(vertex), 3)), edges, vertex
    # Corners by geom type, with coordinates in units of the half size.
    sign = np.zeros((0, 3))
    if kind == GeomType.SPHERE:
        sign = np.zeros((1, 3))
    elif kind == GeomType.CAPSULE:
        sign = np.array([[0.0, 0, -1], [0, 0, 1]])
    elif kind == GeomType.BOX:
        sign = np.stack(np.meshgrid(*3 * ([-1.0, 1.0],), indexing="ij"), axis=-1).reshape(8, 3)
    # Edges connect corners that differ in one coordinate.
    one, other = np.triu_indices(len(sign), 1)
    edge = np.sum(sign[one] != sign[other], axis=1) == 1
    return sign, np.stack([one[edge], other[edge]], axis=1), np.full(len(sign), -1)


def _hull_edges(s: Structure, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Return hull vertices of a mesh, as `mesh_vert` addresses, and its edges as vertex pairs."""
    first = s.mesh_polyadr[mesh]
    pairs = []
    # Edges of the polygons, without duplicates.
    for p in range(first, first + s.mesh_polynum[mesh]):
        outline = s.mesh_polyvert[s.mesh_polyvertadr[p] :][: s.mesh_polyvertnum[p]]
        pairs.append(np.stack([outline, np.roll(outline, -1)], axis=1))
    ends = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
    vertex, slot = np.unique(ends, return_inverse=True)
    return s.mesh_vertadr[mesh] + vertex, slot.reshape(ends.shape)


def _vertex_geom_grids(
    s: Structure, with_geom: np.ndarray, own: np.ndarray, moves: np.ndarray
) -> list[PairGrid]:
    """Pair vertices that move with the surfaces of geoms, one grid per geom type."""
    grids = []
    # Grids by geom type, because each has its own distance function.
    for kind in SURFACE_SHAPES:
        geom = np.flatnonzero(with_geom.any(axis=0) & (np.asarray(s.geom_type) == kind))
        meets = with_geom[own][:, geom] & moves[:, None]
        vertex = np.flatnonzero(meets.any(axis=1))
        capacity = _capacity("vertex_geom", meets, len(vertex))
        grids.append(
            PairGrid("vertex_geom", vertex[:, None], geom[:, None], meets[vertex], capacity, kind)
        )
    return grids


def _vertex_triangle_grid(
    s: Structure,
    with_geom: np.ndarray,
    with_flex: np.ndarray,
    flex: np.ndarray,
    owner: np.ndarray,
) -> PairGrid:
    """Pair vertices of shells and corners of geoms with triangles of shells.

    Args:
      flex: of each point; -1: it is a corner.
      owner: the geom of each point; -1: it is a vertex.
    """
    # Triangles of shells.
    table, of_flex = element_vertices(s)
    of_shell = shells(s)[of_flex]
    triangle, of_flex = table[of_shell, :3], of_flex[of_shell]
    meets = _candidate_mask(with_geom, with_flex, flex, owner, of_flex)
    point = np.flatnonzero(meets.any(axis=1))
    # Exclude a vertex's own triangles.
    meets = meets[point] & ~(point[:, None, None] == triangle[None]).any(axis=-1)
    capacity = _capacity("vertex_triangle", meets, int(shells(s)[np.maximum(flex, 0)].sum()))
    return PairGrid("vertex_triangle", point[:, None], triangle, meets, capacity)


def _edge_edge_grid(
    s: Structure, with_geom: np.ndarray, with_flex: np.ndarray, fixed: FixedFeatures
) -> PairGrid:
    """Pair edges of geoms and of shells with edges of shells, each pair once."""
    # Edges of shells, then edges of fixed geoms.
    own = np.repeat(np.arange(s.nflex), s.flex_edgenum)
    of_shell = shells(s)[own]
    ends = (np.asarray(s.flex_vertadr)[own][:, None] + np.asarray(s.flex_edge))[of_shell]
    own = own[of_shell]
    first = np.concatenate([ends, s.nflexvert + fixed.edges])
    flex = np.append(own, np.full(len(fixed.edges), -1))
    owner = np.append(np.full(len(own), -1), fixed.geom[fixed.edges[:, 0]])
    meets = _candidate_mask(with_geom, with_flex, flex, owner, own)
    # Exclude duplicates and edges that share a vertex.
    once = np.arange(len(first))[:, None] < np.arange(len(ends))
    shared = (first[:, None, :, None] == ends[None, :, None]).any(axis=(2, 3))
    meets &= (once | (flex < 0)[:, None]) & ~shared
    point = np.flatnonzero(meets.any(axis=1))
    number = int(np.asarray(s.flex_vertnum)[shells(s)].sum())
    return PairGrid(
        "edge_edge", first[point], ends, meets[point], _capacity("edge_edge", meets[point], number)
    )


def _candidate_mask(
    with_geom: np.ndarray,
    with_flex: np.ndarray,
    flex: np.ndarray,
    owner: np.ndarray,
    of_flex: np.ndarray,
) -> np.ndarray:
    """Return which items of flexes or geoms meet items of the flexes `of_flex`, `[n, m]`."""
    # Shell against shell, or geom against shell, by the owner of each item.
    from_flex = with_flex[np.maximum(flex, 0)][:, of_flex]
    from_geom = with_geom[of_flex][:, np.maximum(owner, 0)].T if with_geom.size else from_flex
    return np.where((owner >= 0)[:, None], from_geom, from_flex & (flex >= 0)[:, None])


def _capacity(kind: str, meets: np.ndarray, points: int) -> int:
    """Return the capacity for near pairs of a grid with this mask and number of shell points."""
    return min(int(meets.sum()), _CAPACITY_PER_POINT[kind] * points + SPARE_CAPACITY)
