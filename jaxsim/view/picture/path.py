"""Colors along rays, with transparency, mirror reflections, haze and fog.

Transparent surfaces are blended with what is behind them, with the opacity a applied twice, for
front and back: 1 - (1 - a)^2. A plane, or the upper side of a box, with `reflectance` adds that
fraction of its mirror image, without the skybox and without multiple reflections. Haze and fog
blend distant surfaces with a color; the fog in front of a mirrored surface depends on the total
path length, and is not attenuated by the mirror. All of this reproduces MuJoCo's renderer (XML
reference, asset/material and visual).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.ray.local_rays import world_indices
from jaxsim.view.picture.appearance import Look
from jaxsim.view.picture.light import SHADOW_RAY_OFFSET, shade
from jaxsim.view.picture.pixels import CONTINUE_STEP, Beam, PixelHits, Reach, trace_rays
from jaxsim.view.picture.scene import PictureScene
from jaxsim.view.picture.surface import NO_ID, HitSurface, plan_of, sky, surface

_MIN_CONTRIBUTION = 1 / 512  # smallest contribution to the color of a pixel that is traced
_HAZE_DISTANCE = 0.5**0.5  # distance of the densest haze, relative to the far clipping distance


class _Path(NamedTuple):
    """State of rays, `[n, *W]`.

    Attributes:
      total: accumulated color.
      weight: weight of further contributions to the color of the pixel.
      dim: the mirror's factor in this weight; 1 before the mirror.
      gone: distance of the mirror along the view [m]; 0 before it.
      mirrored: whether there was a mirror.
      pos, way: the ray; it starts again at the mirror.
      begin: distance traveled from its origin [m].
      beam: the rays of the adjacent pixels.
      going: whether it continues.
    """

    total: Vec
    weight: jax.Array
    dim: jax.Array
    gone: jax.Array
    mirrored: jax.Array
    pos: Vec
    way: Vec
    begin: jax.Array
    beam: Beam
    going: jax.Array


def pixel_colors(
    m: Model,
    d: Data,
    scene: PictureScene,
    look: Look,
    rays: tuple[Vec, Vec],
    beam: Beam,
    reach: Reach,
    found: PixelHits,
    geoms: np.ndarray,
    shadows: bool,
) -> Vec:
    """Return the colors of pixels, from 0 to 1, `[n, *W]`.

    Args:
      m, d: model and data with the poses of geoms and lights.
      scene: the visible objects.
      look: appearance settings.
      rays, beam, reach: rays of the pixels.
      found: their first hits.
      geoms: visible geoms.
      shadows: whether lights cast shadows.
    """
    behind = _background(m, look, found.way, beam)
    if not (m.ngeom or scene.soft is not None):
        return behind.map(lambda x: x.clip(0, 1))
    color, painted = _shade_hits(m, d, scene, look, found, beam, geoms, shadows)
    color = _apply_haze(m, d, look, rays[0], found, color, behind)
    if not look.layers:
        return select_where(found.met, color, behind).map(lambda x: x.clip(0, 1))

    def bounce(state: _Path, _: None) -> tuple[_Path, None]:
        return lax.cond(jnp.any(state.going), farther, lambda s: s, state), None

    def farther(state: _Path) -> _Path:
        span = Reach(state.begin, reach.far - state.gone)
        new = trace_rays(m, d, scene, (state.pos, state.way), span, found.ahead, geoms)
        light, painted = _shade_hits(m, d, scene, look, new, state.beam, geoms, shadows)
        light = _apply_fog(m, look, state.gone + new.depth, light, state.dim)
        rest = _background(m, look, state.way, state.beam)
        rest = rest.map(lambda x: jnp.where(state.mirrored, 0, x))
        total = state.total + _surface_color(new, light, painted, rest).scale(state.weight)
        return _continue_rays(m, d, new, painted, state._replace(total=total))

    one, no = jnp.ones_like(found.depth), jnp.zeros(found.depth.shape, bool)
    total = _surface_color(found, color, painted, behind)
    state = _Path(total, one, one, 0 * one, no, rays[0], found.way, 0 * one, beam, no)
    state = _continue_rays(m, d, found, painted, state)
    state = lax.scan(bounce, state, None, length=look.layers)[0]
    # the remaining transparency shows the background
    rest = behind.scale(jnp.where(state.going & ~state.mirrored, state.weight, 0))
    return (state.total + rest).map(lambda x: x.clip(0, 1))


def _surface_color(found: PixelHits, color: Vec, surface: HitSurface, behind: Vec) -> Vec:
    """Return the contribution of a surface to the color, or of the background."""
    return select_where(found.met, color.scale(surface.opacity), behind)


def _continue_rays(m: Model, d: Data, found: PixelHits, surface: HitSurface, state: _Path) -> _Path:
    """Return the continuation of rays behind transparent surfaces or from mirrors."""
    through = 1 - surface.opacity
    mirror = jnp.where(
        found.met & ~state.mirrored & _can_mirror(m, d, found), surface.reflectance, 0
    )
    is_mirrored = (mirror > 0) & (through <= 0)
    weight = state.weight * jnp.where(is_mirrored, mirror, through)
    n, way = found.normal, found.way
    way = select_where(is_mirrored, way - n.scale(2 * n.dot(way)), way)
    going = found.met & (weight > _MIN_CONTRIBUTION)
    return _Path(
        total=state.total,
        weight=jnp.where(going, weight, 0),
        dim=jnp.where(is_mirrored, mirror, state.dim),
        gone=jnp.where(is_mirrored, found.depth, state.gone),
        mirrored=state.mirrored | is_mirrored,
        pos=select_where(
            is_mirrored, found.point + n.scale(SHADOW_RAY_OFFSET * found.depth), state.pos
        ),
        way=way,
        begin=jnp.where(is_mirrored, 0, found.depth * (1 + CONTINUE_STEP)),
        beam=state.beam.mirror(is_mirrored, n, found.point, way),
        going=going,
    )


def _can_mirror(m: Model, d: Data, found: PixelHits) -> Array:
    """Return whether a surface can be a mirror: a plane, or the upper side of a box."""
    if not m.ngeom:
        return jnp.zeros(found.depth.shape, bool)
    geom = jnp.maximum(found.geom, 0)
    kind = jnp.asarray(m.geom_type, jnp.int32)[geom]
    up = (gather(d.geom_xmat, geom).T @ found.normal).z > 0.99
    return (found.geom >= 0) & ((kind == GeomType.PLANE) | ((kind == GeomType.BOX) & up))


def _shade_hits(
    m: Model,
    d: Data,
    scene: PictureScene,
    look: Look,
    found: PixelHits,
    beam: Beam,
    geoms: np.ndarray,
    shadows: bool,
) -> tuple[Vec, HitSurface]:
    painted = surface(m, d, scene, found, beam, look.tex_pyramid, world_indices(found.depth))
    # MuJoCo draws transparent surfaces twice
    painted = painted._replace(opacity=1 - (1 - painted.opacity.clip(0, 1)) ** 2)
    return shade(m, d, scene, look, found, painted, geoms, shadows), painted


def _background(m: Model, look: Look, way: Vec, beam: Beam) -> Vec:
    """Return the background; a skybox is at the far clipping distance."""
    color = sky(m, way, beam, look.tex_pyramid, world_indices(way.x))
    if color is not None:
        return _apply_fog(m, look, look.zfar * m.stat.extent + 0 * way.x, color)
    return Vec(*(look.background[k : k + 1] + 0 * way.x for k in range(3)))


def _apply_haze(
    m: Model, d: Data, look: Look, begin: Vec, found: PixelHits, color: Vec, behind: Vec
) -> Vec:
    """Return the colors with fog, and infinite planes with haze near the horizon."""
    color = _apply_fog(m, look, found.depth, color)
    endless = m.geom_type == GeomType.PLANE
    if not look.haze_part or not endless.any() or plan_of(m.structure).sky == NO_ID:
        return color
    geom = jnp.maximum(found.geom, 0)
    no_end = (m.geom_size[:, 0] <= 0) & (m.geom_size[:, 1] <= 0)
    here = (found.geom >= 0) & jnp.asarray(endless)[geom] & gather(no_end, geom)
    rot, pos = gather((d.geom_xmat, d.geom_xpos), geom)
    a, b = (rot.T @ (p - pos) for p in (found.point, begin))
    away = Vec(a.x - b.x, a.y - b.y, jnp.zeros_like(a.x)).norm()
    edge = _HAZE_DISTANCE * look.zfar * m.stat.extent
    near = (1 - look.haze_part) * edge
    beyond = away > edge
    share = ((away - near) / (edge - near)).clip(0, 1)
    share = jnp.where(beyond, edge / jnp.where(beyond, away, edge), share)
    haze = Vec(*(look.haze[k : k + 1] + 0 * away for k in range(3)))
    below = select_where(beyond, behind, color)
    return select_where(here, below.scale(1 - share) + haze.scale(share), color)


def _apply_fog(m: Model, look: Look, depth: Array, color: Vec, dim: Array | float = 1.0) -> Vec:
    """Return the colors with fog, if there is any: proportional to the depth [m].

    `dim` is the later attenuation of the color, which does not apply to the fog.
    """
    if look.fog is None:
        return color
    begin, end = (x * m.stat.extent for x in (look.fogstart, look.fogend))
    share = ((depth - begin) / (end - begin)).clip(0, 1)
    return color.scale(1 - share) + Vec(*(look.fog[k : k + 1] * share / dim for k in range(3)))
