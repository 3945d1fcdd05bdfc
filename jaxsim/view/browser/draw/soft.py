"""Flexes and skins on a server of viser: triangles whose corners move, and rods as lines."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsim.enums import ObjType
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.draw.surface import mean_color, surface_of
from jaxsim.view.soft.topology import Topology, topology

KINDS = {int(ObjType.FLEX): "flex", int(ObjType.SKIN): "skin"}
PATHS = {"flex": "/flexes", "skin": "/skins"}
STILL = 1e-6  # points that moved less are not sent again [m]


@dataclass(frozen=True, eq=False)
class Soft:
    """A flex or skin.

    Attributes:
      kind: "flex" or "skin".
      id: its number.
      name: its name, or its kind and number.
      group: its group, 0 to 5.
      rgba: color and opacity, (4,).
      vertex: number of each vertex that is drawn, among the points of the model (`Topology`), or
        of a rod among the vertices of flexes; (n,).
      face: three vertices each, counterclockwise from outside, (k, 3); of a rod two, (k, 2).
      radius: of a rod [m].
    """

    kind: str
    id: int
    name: str
    group: int
    rgba: np.ndarray
    vertex: np.ndarray
    face: np.ndarray
    radius: float = 0.0

    @property
    def rod(self) -> bool:
        """Whether it is drawn as lines."""
        return self.face.shape[1] == 2


def softs_of(m: Model) -> list[Soft]:
    """The flexes and skins of a model that have a color."""
    plan = topology(m.structure)
    found = [_surface(m, plan, k) for k in range(len(plan.type))]
    found += [_rod(m, f) for f in range(m.nflex) if m.flex_dim[f] == 1]
    return [soft for soft in found if soft.rgba[3] > 0]


def _surface(m: Model, plan: Topology, k: int) -> Soft:
    kind, number = KINDS[int(plan.type[k])], int(plan.id[k])
    own = np.flatnonzero(plan.owner == k)
    corner, flat = plan.corner[:, own].T, plan.flat[own]
    # corners of flat triangles are theirs alone, so that light does not bend around edges
    shared, face = np.unique(corner[~flat], return_inverse=True)
    alone = len(shared) + np.arange(3 * flat.sum()).reshape(-1, 3)
    return _soft(
        m,
        kind,
        number,
        int(plan.material[k]),
        vertex=np.concatenate([shared, corner[flat].ravel()]).astype(int),
        face=np.concatenate([face.reshape(-1, 3), alone]),
    )


def _rod(m: Model, f: int) -> Soft:
    edges = slice(m.flex_edgeadr[f], m.flex_edgeadr[f] + m.flex_edgenum[f])
    face = np.asarray(m.flex_edge)[edges]
    vertex = m.flex_vertadr[f] + np.arange(m.flex_vertnum[f])
    material = int(m.flex_matid[m.flex_elemadr[f]])
    radius = float(np.asarray(m.flex_radius)[f])
    return _soft(m, "flex", f, material, vertex=vertex, face=face, radius=radius)


def _soft(m: Model, kind: str, number: int, material: int, **form: Any) -> Soft:
    look = surface_of(m, np.asarray(getattr(m, f"{kind}_rgba"), float)[number], material)
    name = dict(m.structure.names)[kind][number] or f"{kind} {number}"
    group = int(np.clip(getattr(m, f"{kind}_group")[number], 0, 5))
    return Soft(kind, number, name, group, mean_color(m, look), **form)


class Softs:
    """The flexes and skins of some worlds. Those of all worlds but the first are one thing each.

    Attributes:
      drawn: what is drawn of a world.
    """

    def __init__(self, server: Any, m: Model):
        self._server = server
        self.drawn = softs_of(m)
        self._handles: list[tuple[Soft, bool, Any]] = []
        self._last: dict[tuple[str, int], np.ndarray] = {}

    def remove(self) -> None:
        """Takes everything away; the next poses bring it back."""
        for _, _, handle in self._handles:
            handle.remove()
        self._handles, self._last = [], {}

    def show(self, poses: Poses, offset: np.ndarray, look: "Seen") -> list[tuple[Soft, Any]]:
        """Moves everything to the poses of worlds, which stand at `offset`, (worlds, 3).

        Returns:
          What was drawn for the first time, in the first world, and can be clicked on.
        """
        new: list[tuple[Soft, Any]] = []
        for soft in self.drawn:
            point = _points(soft, poses) + offset[:, None]
            if not np.isfinite(point).all():
                continue
            key = soft.kind, soft.id
            before = self._last.get(key)
            if before is None or before.shape != point.shape:
                new += self._make(soft, point, look)
            elif np.abs(point - before).max(initial=0) > STILL:
                self._move(soft, point)
            else:
                continue
            self._last[key] = point
        return new

    def show_groups(self, groups: dict[str, list[bool]]) -> None:
        """Shows or hides them by their groups."""
        for soft, _, handle in self._handles:
            handle.visible = groups[soft.kind][soft.group]

    def _make(self, soft: Soft, point: np.ndarray, look: "Seen") -> list[tuple[Soft, Any]]:
        found = []
        name = soft.name.replace("/", "|")
        for others, some in enumerate((point[:1], point[1:])):
            if not len(some):
                continue
            path = f"/worlds/{soft.kind} {name}" if others else f"{PATHS[soft.kind]}/{name}"
            handle = self._drawn(path, soft, some, look.faint if others else look.opacity)
            handle.visible = look.groups[soft.kind][soft.group]
            self._handles.append((soft, bool(others), handle))
            if not others and not soft.rod:  # lines of viser cannot be clicked on
                found.append((soft, handle))
        return found

    def _drawn(self, path: str, soft: Soft, point: np.ndarray, opacity: float) -> Any:
        color = tuple(int(c) for c in np.clip(255 * soft.rgba[:3], 0, 255))
        if soft.rod:
            return self._server.scene.add_line_segments(
                path, _lines(soft, point), color, thickness=2 * soft.radius
            )
        number = point.shape[1]
        face = np.concatenate([soft.face + number * k for k in range(len(point))])
        alpha = float(soft.rgba[3]) * opacity
        return self._server.scene.add_mesh_simple(
            path,
            _vertices(point),
            face.astype(np.uint32),
            color=color,
            opacity=alpha if alpha < 1 else None,
            side="double",
        )

    def _move(self, soft: Soft, point: np.ndarray) -> None:
        for other, others, handle in self._handles:
            if other is soft:
                some = point[1:] if others else point[:1]
                if soft.rod:
                    handle.points = _lines(soft, some)
                else:
                    handle.vertices = _vertices(some)


@dataclass(frozen=True)
class Seen:
    """How they are seen.

    Attributes:
      opacity: factor on that of the first world.
      faint: the same of the others.
      groups: whether each group is seen, by kind.
    """

    opacity: float
    faint: float
    groups: dict[str, list[bool]]


def body_at(m: Model, soft: Soft, poses: Poses, point: np.ndarray) -> int:
    """The body that moves the vertex of the first world that is nearest to a point (3,) [m].

    Of a flex its vertex's or nearest node's, of a skin the bone with the largest weight. 0: none.
    """
    if soft.kind == "flex":
        if m.flex_interp[soft.id]:
            start, number = m.flex_nodeadr[soft.id], m.flex_nodenum[soft.id]
            bodies = np.asarray(m.flex_nodebodyid)[start : start + number]
            place = poses.xpos[0, bodies]
        else:
            start, number = m.flex_vertadr[soft.id], m.flex_vertnum[soft.id]
            bodies = np.asarray(m.flex_vertbodyid)[start : start + number]
            place = poses.flexvert_xpos[0, start : start + number]
        return int(bodies[np.argmin(np.linalg.norm(place - point, axis=1))])
    first = topology(m.structure).first + m.skin_vertadr[soft.id]
    place = poses.soft[0, first : first + m.skin_vertnum[soft.id]]
    vertex = int(np.argmin(np.linalg.norm(place - point, axis=1)))
    best, body = 0.0, 0
    for b in range(m.skin_boneadr[soft.id], m.skin_boneadr[soft.id] + m.skin_bonenum[soft.id]):
        some = slice(m.skin_bonevertadr[b], m.skin_bonevertadr[b] + m.skin_bonevertnum[b])
        weight = np.asarray(m.skin_bonevertweight)[some][m.skin_bonevertid[some] == vertex]
        if weight.sum() > best:
            best, body = float(weight.sum()), int(m.skin_bonebodyid[b])
    return body


def _points(soft: Soft, poses: Poses) -> np.ndarray:
    """Its vertices in some worlds, (worlds, n, 3)."""
    return (poses.flexvert_xpos if soft.rod else poses.soft)[:, soft.vertex]


def _lines(soft: Soft, point: np.ndarray) -> np.ndarray:
    """Begin and end of the edges of a rod in some worlds, (n, 2, 3)."""
    return point[:, soft.face].reshape(-1, 2, 3).astype(np.float32)


def _vertices(point: np.ndarray) -> np.ndarray:
    return point.reshape(-1, 3).astype(np.float32)
