"""Colors along rays: of the surface that is seen, and of what is seen through and in it.

What lets light through is mixed with what is behind it, with the opacity a as if it were there
twice, front and back: 1 - (1 - a)^2. A plane, or the upper side of a box, with `reflectance` adds
this part of what a mirror would show there, but the sky, and nothing is mirrored twice. Haze and
fog mix distant surfaces with a color. All of this is MuJoCo's renderer's (XML reference,
asset/material and visual).
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import GeomType
from jaxsim.math import Vec, select
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import pick
from jaxsim.physics.ray.local import worlds_of
from jaxsim.view.picture.light import LIFT, lit
from jaxsim.view.picture.look import Look
from jaxsim.view.picture.pixels import STEP, Beam, Reach, Seen, seen
from jaxsim.view.picture.soft import Soft
from jaxsim.view.picture.surface import NONE, Surface, plan_of, sky, surface

FAINT = 1 / 512  # of the color of a pixel: what adds less is not looked for
EDGE = 0.5**0.5  # where the haze is thickest, in distances to which one sees


def colors(
    m: Model,
    d: Data,
    scene: Soft | None,
    look: Look,
    rays: tuple[Vec, Vec],
    beam: Beam,
    reach: Reach,
    found: Seen,
    geoms: np.ndarray,
    shadows: bool,
) -> Vec:
    """Colors of pixels, from 0 to 1, `[n, *W]`.

    Args:
      m, d: model and data with the poses of geoms and lights.
      scene: flexes, skins and tendons.
      look: light at the camera, images, what is behind; how many surfaces are seen.
      rays, beam, reach: of the pixels.
      found: what they see first.
      geoms: those that may be seen.
      shadows: whether lights cast them.
    """
    behind = _behind(m, look, found.way, beam)
    if not (m.ngeom or scene is not None):
        return behind.map(lambda x: x.clip(0, 1))
    color, painted = _shaded(m, d, scene, look, found, beam, geoms, shadows)
    color = _hazed(m, d, look, rays[0], found, color, behind)
    if not look.layers:
        return select(found.met, color, behind).map(lambda x: x.clip(0, 1))

    def turn(state: tuple, _: None) -> tuple:
        return lax.cond(jnp.any(state[-1]), farther, lambda s: s, state), None

    def farther(state: tuple) -> tuple:
        total, weight, mirrored, pos, way, begin, beam, _ = state
        span = Reach(begin, reach.far + jnp.zeros_like(begin))
        new = seen(m, d, scene, (pos, way), span, found.ahead, geoms)
        light, look_of_it = _shaded(m, d, scene, look, new, beam, geoms, shadows)
        light = _fogged(m, look, new.depth, light)
        rest = _behind(m, look, way, beam).map(lambda x: jnp.where(mirrored, 0, x))
        total = total + _seen(new, light, look_of_it, rest).scale(weight)
        return _onward(m, d, new, look_of_it, total, weight, mirrored, pos, beam)

    no = jnp.zeros(found.depth.shape, bool)
    total = _seen(found, color, painted, behind)
    state = _onward(m, d, found, painted, total, jnp.ones_like(found.depth), no, rays[0], beam)
    total, weight, mirrored, *_, going = lax.scan(turn, state, None, length=look.layers)[0]
    # what is still clear ends before what is behind everything
    rest = behind.scale(jnp.where(going & ~mirrored, weight, 0))
    return (total + rest).map(lambda x: x.clip(0, 1))


def _seen(found: Seen, color: Vec, surface: Surface, behind: Vec) -> Vec:
    """The part of a color that a surface gives, or what is behind everything."""
    return select(found.met, color.scale(surface.opacity), behind)


def _onward(
    m: Model,
    d: Data,
    found: Seen,
    surface: Surface,
    total: Vec,
    weight: Array,
    mirrored: Array,
    pos: Vec,
    beam: Beam,
) -> tuple:
    """How rays go on from what they met, in the order of the state of `colors`."""
    through = 1 - surface.opacity
    mirror = jnp.where(found.met & ~mirrored & _flat(m, d, found), surface.reflectance, 0)
    turns = (mirror > 0) & (through <= 0)
    weight = weight * jnp.where(turns, mirror, through)
    n, way = found.normal, found.way
    pos = select(turns, found.point + n.scale(LIFT * found.depth), pos)
    way = select(turns, way - n.scale(2 * n.dot(way)), way)
    begin = jnp.where(turns, 0, found.depth * (1 + STEP))
    beam = beam.mirrored(turns, n, found.point, way)
    going = found.met & (weight > FAINT)
    return total, jnp.where(going, weight, 0), mirrored | turns, pos, way, begin, beam, going


def _flat(m: Model, d: Data, found: Seen) -> Array:
    """Whether a surface can be a mirror: a plane, or the upper side of a box."""
    if not m.ngeom:
        return jnp.zeros(found.depth.shape, bool)
    geom = jnp.maximum(found.geom, 0)
    kind = jnp.asarray(m.geom_type, jnp.int32)[geom]
    up = (pick(d.geom_xmat, geom).T @ found.normal).z > 0.99
    return (found.geom >= 0) & ((kind == GeomType.PLANE) | ((kind == GeomType.BOX) & up))


def _shaded(
    m: Model,
    d: Data,
    scene: Soft | None,
    look: Look,
    found: Seen,
    beam: Beam,
    geoms: np.ndarray,
    shadows: bool,
) -> tuple[Vec, Surface]:
    painted = surface(m, d, scene, found, beam, look.tex_pyramid, worlds_of(found.depth))
    # MuJoCo draws what lets light through twice
    painted = painted._replace(opacity=1 - (1 - painted.opacity.clip(0, 1)) ** 2)
    return lit(m, d, scene, look, found, painted, geoms, shadows), painted


def _behind(m: Model, look: Look, way: Vec, beam: Beam) -> Vec:
    """What is behind everything; a sky is as far away as one sees."""
    color = sky(m, way, beam, look.tex_pyramid, worlds_of(way.x))
    if color is not None:
        return _fogged(m, look, look.zfar * m.stat.extent + 0 * way.x, color)
    return Vec(*(look.background[k : k + 1] + 0 * way.x for k in range(3)))


def _hazed(m: Model, d: Data, look: Look, begin: Vec, found: Seen, color: Vec, behind: Vec) -> Vec:
    """Colors with the fog, and planes without end with the haze before their horizon."""
    color = _fogged(m, look, found.depth, color)
    endless = m.geom_type == GeomType.PLANE
    if not look.haze_part or not endless.any() or plan_of(m.structure).sky == NONE:
        return color
    geom = jnp.maximum(found.geom, 0)
    no_end = (m.geom_size[:, 0] <= 0) & (m.geom_size[:, 1] <= 0)
    here = (found.geom >= 0) & jnp.asarray(endless)[geom] & pick(no_end, geom)
    rot, pos = pick((d.geom_xmat, d.geom_xpos), geom)
    a, b = (rot.T @ (p - pos) for p in (found.point, begin))
    away = Vec(a.x - b.x, a.y - b.y, jnp.zeros_like(a.x)).norm()
    edge = EDGE * look.zfar * m.stat.extent
    near = (1 - look.haze_part) * edge
    beyond = away > edge
    share = ((away - near) / (edge - near)).clip(0, 1)
    share = jnp.where(beyond, edge / jnp.where(beyond, away, edge), share)
    haze = Vec(*(look.haze[k : k + 1] + 0 * away for k in range(3)))
    below = select(beyond, behind, color)
    return select(here, below.scale(1 - share) + haze.scale(share), color)


def _fogged(m: Model, look: Look, depth: Array, color: Vec) -> Vec:
    """Colors with the fog, if there is any: thicker in proportion to the depth [m]."""
    if look.fog is None:
        return color
    begin, end = (x * m.stat.extent for x in (look.fogstart, look.fogend))
    share = ((depth - begin) / (end - begin)).clip(0, 1)
    return color.scale(1 - share) + Vec(*(look.fog[k : k + 1] * share for k in range(3)))
