"""Flexes and skins on a viser server: triangles with moving vertices, and rods as lines."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsim.enums import ObjType
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.deforming_surface import (
    DrawnObject,
    PlainTriangles,
    RodLines,
    TexturedTriangles,
    shrink_image,
)
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.draw.surface import Appearance, appearance_of, image_of, material_of
from jaxsim.view.flex.topology import SurfaceTopology, surface_topology
from jaxsim.view.picture.pyramid import TEXTURE_2D

_DEFORMABLE_KINDS = {int(ObjType.FLEX): "flex", int(ObjType.SKIN): "skin"}
_SCENE_PATHS = {"flex": "/flexes", "skin": "/skins"}
_MIN_POINT_MOTION = 1e-6  # smaller motions of points are not sent [m]


@dataclass(frozen=True, eq=False)
class Deformable:
    """A flex or skin.

    Attributes:
      kind: "flex" or "skin".
      id: its id.
      name: its name, or its kind and id.
      group: its group, 0 to 5.
      look: color, material and texture.
      vertex: index of each drawn vertex among the points of the model (`SurfaceTopology`), for a
        rod among the vertices of flexes; (n,).
      face: three vertices each, counterclockwise from outside, (k, 3); for a rod two, (k, 2).
      texcoord: texture coordinates, from the left and from the top, (n, 2); None: no image.
      radius: radius of a rod [m].
    """

    kind: str
    id: int
    name: str
    group: int
    look: Appearance
    vertex: np.ndarray
    face: np.ndarray
    texcoord: np.ndarray | None = None
    radius: float = 0.0

    @property
    def rod(self) -> bool:
        """Return whether it is drawn as lines."""
        return self.face.shape[1] == 2


def deformables_of(m: Model) -> list[Deformable]:
    """Return the visible flexes and skins of a model."""
    plan = surface_topology(m.structure)
    found = [_surface(m, plan, k) for k in range(len(plan.type))]
    found += [_rod(m, f) for f in range(m.nflex) if m.flex_dim[f] == 1]
    return [soft for soft in found if soft.look.rgba[3] > 0]


def _surface(m: Model, plan: SurfaceTopology, k: int) -> Deformable:
    kind, number = _DEFORMABLE_KINDS[int(plan.type[k])], int(plan.id[k])
    material = int(plan.material[k])
    own = np.flatnonzero(plan.owner == k)
    corner, flat = plan.corner[:, own].T, plan.flat[own]
    texcoord = plan.texcoord_index[:, own].T
    imaged = texcoord.min(initial=0) >= 0 and _has_image(
        m, _deformable_look(m, kind, number, material)
    )
    # a corner with several texture coordinates becomes several vertices
    corner = np.stack([corner, texcoord if imaged else np.zeros_like(texcoord)], axis=-1)
    # flat triangles do not share vertices, so that shading does not blend across edges
    shared, face = np.unique(corner[~flat].reshape(-1, 2), axis=0, return_inverse=True)
    alone = len(shared) + np.arange(3 * flat.sum()).reshape(-1, 3)
    vertex, at = np.concatenate([shared, corner[flat].reshape(-1, 2)]).astype(int).T
    return _make_deformable(
        m,
        kind,
        number,
        material,
        vertex=vertex,
        face=np.concatenate([face.reshape(-1, 3), alone]),
        texcoord=_texcoord(m)[at] if imaged else None,
    )


def _has_image(m: Model, look: Appearance) -> bool:
    texture = look.texture
    return bool(texture >= 0 and m.tex_type[texture] == TEXTURE_2D and m.tex_adr[texture] >= 0)


def _texcoord(m: Model) -> np.ndarray:
    """Return the texture coordinates of flexes, then of skins, (n, 2)."""
    both = [np.asarray(x).reshape(-1, 2) for x in (m.flex_texcoord, m.skin_texcoord)]
    return np.concatenate(both)


def _rod(m: Model, f: int) -> Deformable:
    edges = slice(m.flex_edgeadr[f], m.flex_edgeadr[f] + m.flex_edgenum[f])
    face = np.asarray(m.flex_edge)[edges]
    vertex = m.flex_vertadr[f] + np.arange(m.flex_vertnum[f])
    material = int(m.flex_matid[m.flex_elemadr[f]])
    radius = float(np.asarray(m.flex_radius)[f])
    return _make_deformable(m, "flex", f, material, vertex=vertex, face=face, radius=radius)


def _deformable_look(m: Model, kind: str, number: int, material: int) -> Appearance:
    return appearance_of(m, np.asarray(getattr(m, f"{kind}_rgba"), float)[number], material)


def _make_deformable(m: Model, kind: str, number: int, material: int, **form: Any) -> Deformable:
    look = _deformable_look(m, kind, number, material)
    name = name_of(m, kind, number)
    group = int(np.clip(getattr(m, f"{kind}_group")[number], 0, 5))
    return Deformable(kind, number, name, group, look, **form)


class Deformables:
    """The flexes and skins of some worlds. Those of all worlds but the first are one object each.

    Attributes:
      drawn: the flexes and skins of a world.
    """

    def __init__(self, server: Any, m: Model):
        self._server, self._m = server, m
        self.drawn = deformables_of(m)
        self._things: list[tuple[Deformable, bool, DrawnObject]] = []
        self._last: dict[tuple[str, int], np.ndarray] = {}

    def remove(self) -> None:
        """Remove everything; the next poses draw it again."""
        for _, _, thing in self._things:
            thing.remove()
        self._things, self._last = [], {}

    def show(
        self, poses: Poses, offset: np.ndarray, look: "DeformableStyle"
    ) -> list[tuple[Deformable, Any]]:
        """Move everything to the poses of worlds, displaced by `offset`, (worlds, 3).

        Returns:
          The objects that were newly drawn, in the first world, and can be clicked.
        """
        new: list[tuple[Deformable, Any]] = []
        for soft in self.drawn:
            point = points_of(soft, poses) + offset[:, None]
            if not np.isfinite(point).all():
                continue
            key = soft.kind, soft.id
            before = self._last.get(key)
            if before is None or before.shape != point.shape:
                new += self._make(soft, point, look)
            elif np.abs(point - before).max(initial=0) > _MIN_POINT_MOTION:
                self._move(soft, point)
            else:
                continue
            self._last[key] = point
        return new

    def show_groups(self, groups: dict[str, list[bool]]) -> None:
        """Update the visibility of all objects by their groups."""
        for soft, _, thing in self._things:
            thing.show(groups[soft.kind][soft.group])

    def settle(self) -> bool:
        """Show the last poses where earlier ones are still visible; return whether there were."""
        waited = [thing.settle() for _, _, thing in self._things]
        return any(waited)

    def _make(
        self, soft: Deformable, point: np.ndarray, look: "DeformableStyle"
    ) -> list[tuple[Deformable, Any]]:
        found = []
        name = soft.name.replace("/", "|")
        for others, some in enumerate((point[:1], point[1:])):
            if not len(some):
                continue
            path = f"/worlds/{soft.kind} {name}" if others else f"{_SCENE_PATHS[soft.kind]}/{name}"
            thing = self._draw(path, soft, some, look.faint if others else look.opacity)
            thing.show(look.groups[soft.kind][soft.group])
            self._things.append((soft, bool(others), thing))
            if not others:
                found += [(soft, handle) for handle in thing.handles]
        return found

    def _draw(self, path: str, soft: Deformable, point: np.ndarray, opacity: float) -> DrawnObject:
        color = tuple(int(c) for c in np.clip(255 * soft.look.rgba[:3], 0, 255))
        if soft.rod:
            thick = 2 * soft.radius
            return RodLines(self._server, path, point, soft.face, colors=color, thickness=thick)
        if soft.texcoord is not None:
            image = shrink_image(image_of(self._m, soft.look.texture))
            material = material_of(self._m, soft.look, image, opacity, sides=2)
            return TexturedTriangles(self._server, path, point, soft.face, soft.texcoord, material)
        alpha = float(soft.look.rgba[3]) * opacity
        look = {"color": color, "opacity": alpha if alpha < 1 else None}
        return PlainTriangles(self._server, path, point, soft.face, **look)

    def _move(self, soft: Deformable, point: np.ndarray) -> None:
        for other, others, thing in self._things:
            if other is soft:
                thing.move(point[1:] if others else point[:1])


@dataclass(frozen=True)
class DeformableStyle:
    """Visibility of flexes and skins.

    Attributes:
      opacity: factor on the opacity of the first world.
      faint: factor on the opacity of the others.
      groups: visibility of each group, by kind.
    """

    opacity: float
    faint: float
    groups: dict[str, list[bool]]


def body_at(m: Model, soft: Deformable, poses: Poses, point: np.ndarray) -> int:
    """Return the body that moves the vertex of the first world nearest to a point (3,) [m].

    For a flex that of its vertex or nearest node, for a skin the bone with the largest weight. 0:
    none.
    """
    if soft.kind == "flex":
        if m.flex_interp[soft.id]:
            start, number = m.flex_nodeadr[soft.id], m.flex_nodenum[soft.id]
            bodies = np.asarray(m.flex_nodebodyid)[start : start + number]
            vertex_pos = poses.xpos[0, bodies]
        else:
            start, number = m.flex_vertadr[soft.id], m.flex_vertnum[soft.id]
            bodies = np.asarray(m.flex_vertbodyid)[start : start + number]
            vertex_pos = poses.flexvert_xpos[0, start : start + number]
        return int(bodies[np.argmin(np.linalg.norm(vertex_pos - point, axis=1))])
    first = surface_topology(m.structure).first + m.skin_vertadr[soft.id]
    vertex_pos = poses.soft[0, first : first + m.skin_vertnum[soft.id]]
    vertex = int(np.argmin(np.linalg.norm(vertex_pos - point, axis=1)))
    best, body = 0.0, 0
    for b in range(m.skin_boneadr[soft.id], m.skin_boneadr[soft.id] + m.skin_bonenum[soft.id]):
        some = slice(m.skin_bonevertadr[b], m.skin_bonevertadr[b] + m.skin_bonevertnum[b])
        weight = np.asarray(m.skin_bonevertweight)[some][m.skin_bonevertid[some] == vertex]
        if weight.sum() > best:
            best, body = float(weight.sum()), int(m.skin_bonebodyid[b])
    return body


def points_of(soft: Deformable, poses: Poses) -> np.ndarray:
    """Return the vertices of a flex or skin in some worlds, (worlds, n, 3)."""
    return (poses.flexvert_xpos if soft.rod else poses.soft)[:, soft.vertex]
