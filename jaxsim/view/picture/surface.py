"""Appearance of surfaces at hit points: smooth normals, colors, textures.

Textures are mapped to geoms as in MuJoCo's renderer (XML reference, asset/texture and
asset/material): 2D ones by the texture coordinates of a mesh, around primitives (wrap.py), else
along the z axis of the geom; cubes as seen from its center.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.local_rays import gather_by_world as look_up
from jaxsim.view.picture.deformable import FlexScene, flex_constants, object_of_piece
from jaxsim.view.picture.deformable import object_colors as thing_colors
from jaxsim.view.picture.pixels import Beam, PixelHits
from jaxsim.view.picture.pyramid import TEXTURE_2D, textures_of
from jaxsim.view.picture.sample import TexCoord, sample_cube, sample_flat
from jaxsim.view.picture.scene import PictureScene
from jaxsim.view.picture.wrap import WRAP_FUNCTIONS

UNSET_RGBA = (0.5, 0.5, 0.5, 1.0)  # the rgba value that leaves the color to the material
RGB, RGBA = 1, 8  # mjTEXROLE_RGB, mjTEXROLE_RGBA
_SKYBOX_TYPE = 2  # mjTEXTURE_SKYBOX
NO_ID = -1
_DEFAULT_MATERIAL = (
    0.5,
    0.5,
    0.0,
    0.0,
)  # specular, shininess, emission, reflectance without a material
_MIN_CORNER_COSINE = (
    0.8  # smallest cosine between the normals of a corner and its face, in MuJoCo's renderer
)
_HALF_LENGTH_AXES = {  # which of the three sizes is a geom's half length along x, y and z
    GeomType.SPHERE: (0, 0, 0),
    GeomType.CAPSULE: (0, 0, 1),
    GeomType.CYLINDER: (0, 0, 1),
}


class HitSurface(NamedTuple):
    """Appearance at hit points, `[n, *W]`.

    Attributes:
      normal: shading normal, in the world.
      color: red, green and blue.
      specular, shininess, emission, reflectance: of the material.
      opacity: opacity, including that of the texture.
    """

    normal: Vec
    color: Vec
    specular: jax.Array
    shininess: jax.Array
    emission: jax.Array
    reflectance: jax.Array
    opacity: jax.Array


@dataclass(frozen=True, eq=False)
class RasterPlan:
    """Constants of the surfaces of a model.

    Attributes:
      texture: of each geom, or NONE, `[ngeom]`.
      flat: whether its texture is 2D.
      uniform: whether the texture is scaled in meters.
      formed: whether the geom is a mesh or height field.
      axes: which of its sizes are its half lengths, `[ngeom, 3]`.
      texcoord: whether its mesh has texture coordinates.
      sky: texture of the skybox, or NONE.
      pictured, smooth: whether any geom has a texture, or is a mesh.
      of_thing: texture of each flex, skin and tendon (deformable.py), or NONE; only 2D ones are
        drawn.
    """

    texture: np.ndarray
    flat: np.ndarray
    uniform: np.ndarray
    formed: np.ndarray
    axes: np.ndarray
    texcoord: np.ndarray
    sky: int
    pictured: bool
    smooth: bool
    of_thing: np.ndarray


@cache_by_structure
def plan_of(s: Structure) -> RasterPlan:
    """Return the constants."""
    material, mesh = s.geom_matid, np.where(s.geom_type == GeomType.MESH, s.geom_dataid, NO_ID)
    images = np.append(np.maximum(s.mat_texid[:, RGB], s.mat_texid[:, RGBA]), NO_ID)
    there = np.append(s.tex_adr >= 0, False)
    images = np.where(there[images], images, NO_ID)
    texture = images[np.where(material >= 0, material, len(images) - 1)]
    other = flex_constants(s)
    of_thing = images[np.where(other.material >= 0, other.material, len(images) - 1)]
    drawn = np.append(s.tex_type, _SKYBOX_TYPE)[of_thing] == TEXTURE_2D
    skies = np.flatnonzero((s.tex_type == _SKYBOX_TYPE) & (s.tex_adr >= 0))
    return RasterPlan(
        texture=texture,
        flat=np.append(s.tex_type, TEXTURE_2D)[texture] == TEXTURE_2D,
        uniform=np.append(s.mat_texuniform, False)[np.where(material >= 0, material, NO_ID)] != 0,
        formed=np.isin(s.geom_type, (GeomType.MESH, GeomType.HFIELD, GeomType.SDF)),
        axes=np.array([_HALF_LENGTH_AXES.get(t, (0, 1, 2)) for t in s.geom_type], np.int32).reshape(
            -1, 3
        ),
        texcoord=np.append(s.mesh_texcoordadr, NO_ID)[mesh] >= 0,
        sky=int(skies[0]) if len(skies) else NO_ID,
        pictured=bool((texture != NO_ID).any()),
        smooth=bool((mesh != NO_ID).any()),
        of_thing=np.where(drawn, of_thing, NO_ID),
    )


def surface(
    m: Model, d: Data, scene: PictureScene, seen: PixelHits, beam: Beam, pixels: Array, world: Array
) -> HitSurface:
    """Return the appearance of surfaces at hit points.

    Args:
      m, d: model and data with the poses of geoms.
      scene: the visible objects.
      seen: the hits.
      beam: ray differentials.
      pixels: pixels of all textures (pyramid.py), `[n]`, `[n, 1]` or `[n, worlds]`.
      world: index of the world, `[1, *W]`.
    """
    plan, which, soft = plan_of(m), jnp.maximum(seen.geom, 0), scene.soft
    if soft is not None:
        which = jnp.where(seen.piece >= 0, m.ngeom + object_of_piece(m, soft, seen.piece), which)
    color, opacity, specular, shininess, emission, reflectance = gather(
        _surface_materials(m, soft), which
    )
    normal, image = seen.normal, None
    near = lax.stop_gradient(beam.plane_hits(seen.way, seen.point, seen.normal))
    if m.ngeom:
        normal, image = _geom_surfaces(m, d, plan, scene, seen, near, pixels, world)
    if soft is not None and seen.soft is not None:
        here = seen.piece >= 0
        normal = select_where(here, seen.soft.shade, normal)
        other = _object_images(m, plan, soft, seen, near, pixels, world)
        if other is not None:
            one = jnp.ones_like(opacity)
            image = select_where(here, other, (Vec(one, one, one), one) if image is None else image)
    if image is not None:
        color = Vec(*(a * b for a, b in zip(color.parts, image[0].parts, strict=True)))
        opacity = opacity * image[1]
    return HitSurface(normal, color, specular, shininess, emission, reflectance, opacity)


def _geom_surfaces(
    m: Model,
    d: Data,
    plan: RasterPlan,
    scene: PictureScene,
    seen: PixelHits,
    near: tuple[Vec, Vec],
    pixels: Array,
    world: Array,
) -> tuple[Vec, tuple[Vec, Array] | None]:
    """Return the shading normals of geoms, and their texture colors and opacities; None without
    textures."""
    geom = jnp.maximum(seen.geom, 0)
    rot, pos = gather((d.geom_xmat, d.geom_xpos), geom)
    local = rot.T @ (seen.point - pos)
    normal, weights, image = seen.normal, None, None
    if plan.smooth and scene.solid.trees is not None:
        weights = _weights(m, scene, seen, local, world)
        bent = _smooth(m, plan, scene, seen, weights, rot.T @ seen.normal, world)
        is_mesh = jnp.asarray(m.geom_type == GeomType.MESH)[geom]
        normal = select_where(is_mesh & (seen.geom >= 0), rot @ bent, normal)
    if plan.pictured:
        neighbors = [rot.T @ (point - pos) for point in near]
        image = _image(m, plan, scene, seen, local, neighbors, weights, pixels, world)
    return normal, image


def _object_images(
    m: Model,
    plan: RasterPlan,
    soft: FlexScene,
    seen: PixelHits,
    near: tuple[Vec, Vec],
    pixels: Array,
    world: Array,
) -> tuple[Vec, Array] | None:
    """Return the texture colors of flexes and skins, with opacity: white without a texture."""
    met, number = seen.soft, flex_constants(m.structure).faces
    if met is None or not ((plan.of_thing != NO_ID).any() and soft.texcoord_index):
        return None
    face = jnp.clip(seen.piece, 0, number - 1)
    both = m.flex_texcoord, m.skin_texcoord
    table = [jnp.concatenate(_like_each_other(*(x[:, k] for x in both))) for k in range(2)]
    corners = [look_up(table, jnp.maximum(p[face], 0), world) for p in soft.texcoord_index]
    assert soft.points is not None  # objects with texture coordinates have triangles
    corner = [look_up(soft.points.pos, c[face], world) for c in soft.corner]

    def interpolate(weights: tuple[Array, ...]) -> TexCoord:
        u, v = (
            weights[0] * x + weights[1] * y + weights[2] * z
            for x, y, z in zip(*corners, strict=True)
        )
        return u, v

    neighbors = [
        interpolate(triangle.barycentric_weights(*(c - point for c in corner))) for point in near
    ]
    part_id = jnp.maximum(object_of_piece(m, soft, seen.piece), 0)
    texture = jnp.asarray(plan.of_thing)[part_id]
    has = (texture != NO_ID) & (soft.texcoord_index[0][face] >= 0) & (seen.piece < number)
    which = jnp.maximum(texture, 0)
    at, textures = interpolate(met.weights), textures_of(m.structure)
    color, opacity = sample_flat(textures, which, at, (neighbors[0], neighbors[1]), pixels, world)
    one = jnp.ones_like(opacity)
    return select_where(has, color, Vec(one, one, one)), jnp.where(has, opacity, one)


def sky(m: Model, way: Vec, beam: Beam, pixels: Array, world: Array) -> Vec | None:
    """Return the color of the skybox in some directions; None if there is none. Its cube has y
    up."""
    texture = plan_of(m).sky
    if texture == NO_ID:
        return None
    which = jnp.full(way.x.shape, texture, jnp.int32)
    ahead = [way, *(way + side.scale(1 - beam.shift) for side in (beam.right, beam.up))]
    turned, *near = (Vec(v.x, v.z, -v.y) for v in ahead)
    return sample_cube(textures_of(m.structure), which, turned, (near[0], near[1]), pixels, world)[
        0
    ]


def _surface_materials(
    m: Model, soft: FlexScene | None
) -> tuple[Vec, Array, Array, Array, Array, Array]:
    """Return the color, opacity, specular, shininess, emission and reflectance of geoms, then other
    objects."""
    own, material = [m.geom_rgba[:, k] for k in range(4)], m.geom_matid
    if soft is not None:
        pairs = zip(own, thing_colors(m), strict=True)
        own = [jnp.concatenate(_like_each_other(a, b)) for a, b in pairs]
        material = np.concatenate([material, flex_constants(m.structure).material])
    plain = [jnp.full_like(own[0], x) for x in _DEFAULT_MATERIAL]
    if not (material >= 0).any():
        return Vec(*own[:3]), own[3], plain[0], plain[1], plain[2], plain[3]
    which = np.maximum(material, 0)
    has = column(material >= 0, own[0])
    left = has
    for mine, value in zip(own, UNSET_RGBA, strict=True):
        left = left & (mine == value)
    color = [jnp.where(left, gather_static(m.mat_rgba[:, k], which), own[k]) for k in range(4)]
    rest = (m.mat_specular, m.mat_shininess, m.mat_emission, m.mat_reflectance)
    specular, shininess, emission, reflectance = (
        jnp.where(has, gather_static(x, which), y) for x, y in zip(rest, plain, strict=True)
    )
    return Vec(*color[:3]), color[3], specular, shininess, emission, reflectance


def _like_each_other(a: Array, b: Array) -> tuple[Array, Array]:
    """Return two tables broadcast to the same number of worlds."""
    worlds = jnp.broadcast_shapes(a.shape[1:], b.shape[1:])
    one, other = (jnp.broadcast_to(x, (len(x), *worlds)) for x in (a, b))
    return one, other


def _weights(
    m: Model, scene: PictureScene, seen: PixelHits, p: Vec, world: Array
) -> tuple[Array, ...]:
    """Return the barycentric coordinates of points in mesh faces."""
    corner = (c[seen.part] for c in scene.solid.corner)
    return triangle.barycentric_weights(
        *(look_up(m.mesh_vert, index, world) - p for index in corner)
    )


def _mean(
    table: tuple[Array, ...],
    corner: tuple[jax.Array, ...],
    seen: PixelHits,
    weights: tuple[Array, ...],
    world: Array,
) -> list[Array]:
    """Return the values of a table of corners, interpolated by barycentric coordinates."""
    x, y, z = (look_up(table, c[seen.part], world) for c in corner)
    p, q, r = weights
    return [p * a + q * b + r * c for a, b, c in zip(x, y, z, strict=True)]


def _smooth(
    m: Model,
    plan: RasterPlan,
    scene: PictureScene,
    seen: PixelHits,
    weights: tuple[Array, ...],
    facet: Vec,
    world: Array,
) -> Vec:
    """Return the interpolated corner normal of a face, in the frame of the mesh.

    Corner normals far from the face normal are replaced by it, so that edges are sharp where
    MuJoCo's are; those of a mesh with texture coordinates are never replaced.
    """
    total = facet.scale(jnp.zeros_like(facet.x))
    bent = jnp.asarray(plan.texcoord)[jnp.maximum(seen.geom, 0)]
    for weight, index in zip(weights, scene.normal, strict=True):
        own = look_up(m.mesh_normal, index[seen.part], world)
        near = bent | (own.dot(facet) >= _MIN_CORNER_COSINE)
        total = total + select_where(near, own, facet).scale(weight)
    return total.normalize()


def _image(
    m: Model,
    plan: RasterPlan,
    scene: PictureScene,
    seen: PixelHits,
    local: Vec,
    near: list[Vec],
    weights: tuple[Array, ...] | None,
    pixels: Array,
    world: Array,
) -> tuple[Vec, Array]:
    """Return the color and opacity of the textures at points of geoms; white without a texture."""
    geom = jnp.maximum(seen.geom, 0)

    def of(table: np.ndarray) -> Array:
        return jnp.asarray(table)[geom]

    texture, flat, uniform, formed = map(of, (plan.texture, plan.flat, plan.uniform, plan.formed))
    which, white = jnp.maximum(texture, 0), jnp.ones_like(local.x)
    sizes = gather([m.geom_size[:, k] for k in range(3)], geom)
    half = [jnp.select([of(plan.axes[:, k]) == a for a in range(3)], sizes) for k in range(3)]
    half = [jnp.where(h > 0, h, 1) for h in half]
    plain = Vec(white, white, white), white
    color, textures = plain, textures_of(m.structure)
    if plan.flat[plan.texture != NO_ID].any():
        repeat = [
            gather_static(m.mat_texrepeat[:, k], np.maximum(m.geom_matid, 0)) for k in range(2)
        ]
        repeat = [gather(r, geom) for r in repeat]
        table, has = tuple(m.mesh_texcoord[:, k] for k in range(2)), of(plan.texcoord)

        def texcoord_at(p: Vec, weights: tuple[Array, ...] | None) -> TexCoord:
            at = _texture_coords(m, plan, geom, p, local, half, repeat, uniform)
            if weights is None or not plan.texcoord.any():
                return at
            own = _mean(table, scene.texcoord_index, seen, weights, world)
            u, v = (jnp.where(has, a, b) for a, b in zip(own, at, strict=True))
            return u, v

        given = plan.texcoord.any() and weights is not None
        neighbors = [
            texcoord_at(p, _weights(m, scene, seen, p, world) if given else None) for p in near
        ]
        at = texcoord_at(local, weights)
        color = sample_flat(textures, which, at, (neighbors[0], neighbors[1]), pixels, world)
    if not plan.flat[plan.texture != NO_ID].all():
        span = [
            jnp.where(formed, jnp.where(uniform, 1 / h, 1), jnp.where(uniform, 1, h)) for h in half
        ]
        way, right, up = (
            Vec(*(x / s for x, s in zip(p.parts, span, strict=True))) for p in (local, *near)
        )
        cube = sample_cube(textures, which, way, (right, up), pixels, world)
        color = select_where(flat, color, cube)
    return select_where(texture != NO_ID, color, plain)


def _texture_coords(
    m: Model,
    plan: RasterPlan,
    geom: Array,
    p: Vec,
    at: Vec,
    half: list,
    repeat: list,
    uniform: Array,
) -> TexCoord:
    """Return the coordinates of points near `at` in 2D textures: around primitives, along z on
    other geoms."""
    span = [jnp.where(uniform, 1, h) for h in half[:2]]
    u, v = (
        s * 0.5 * r * x / h - 0.5
        for s, r, x, h in zip((1, -1), repeat, p.parts[:2], span, strict=True)
    )
    kind = jnp.asarray(m.geom_type, jnp.int32)[geom]
    ends = gather((m.geom_size[:, 0] > 0) & (m.geom_size[:, 1] > 0), geom)
    across, down = (r * jnp.where(uniform, h, 1) for r, h in zip(repeat, half[:2], strict=True))
    for type_ in np.unique(m.geom_type[(plan.texture != NO_ID) & plan.flat]):
        if type_ in WRAP_FUNCTIONS:
            here = (kind == type_) & (ends if type_ == GeomType.PLANE else True)
            a, b = WRAP_FUNCTIONS[type_](p, Vec(*half), at)
            u, v = jnp.where(here, a * across, u), jnp.where(here, b * down, v)
    return u, v
