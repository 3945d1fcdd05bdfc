"""Lighting of surfaces: ambient, diffuse and specular terms of each light, and shadows.

The model of OpenGL's fixed-function pipeline (Blinn-Phong), which MuJoCo's renderer uses: for each
light

    ambient color + a s (diffuse max(n l, 0) color + specular k max(n h, 0)^(128 shininess))

with the unit vectors n outward, l to the light, h halfway between l and the camera, the specular k
of the material, the attenuation a = 1 / (c0 + c1 r + c2 r^2) and, within the cone of a spotlight, s
= cos^e of the angle from its axis. Occluders block everything but the ambient term.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import LightType
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.ray.cast import Rays
from jaxsim.view.picture.appearance import Look
from jaxsim.view.picture.pixels import PixelHits, first_hits
from jaxsim.view.picture.scene import PictureScene
from jaxsim.view.picture.surface import HitSurface

SHADOW_RAY_OFFSET = (
    1e-4  # offset of shadow ray origins from a surface, relative to the distance to the camera
)
_MAX_SHININESS = 128  # exponent of the shiniest surface


class Lamp(NamedTuple):
    """Lights, `[n, *W]`, or one, `[1, *W]`."""

    pos: Vec
    way: Vec
    ambient: Vec
    diffuse: Vec
    specular: Vec
    attenuation: Vec
    cosine: jax.Array
    exponent: jax.Array
    directional: jax.Array


def shade(
    m: Model,
    d: Data,
    scene: PictureScene,
    look: Look,
    seen: PixelHits,
    surface: HitSurface,
    shown: np.ndarray,
    shadows: bool,
) -> Vec:
    """Return the colors of surfaces lit by the headlight and the model's lights.

    Only visible geoms cast shadows.
    """
    normal = surface.normal
    to_camera = -seen.way.normalize()

    def add(color: Vec, lamp: Lamp, geoms: np.ndarray | None) -> Vec:
        return color + _lamp_light(m, d, scene, seen, surface, normal, to_camera, lamp, geoms)

    color = surface.color.scale(surface.emission) + _headlight(look, seen, surface, to_camera)
    some = m.light_active & (m.light_type != LightType.IMAGE)  # image lights are not supported here
    casts = np.asarray(m.light_castshadow, bool) & shadows
    geoms = shown[np.asarray(m.geom_castshadow, bool)[shown]]
    for ids, blocking in ((some & casts, geoms), (some & ~casts, None)):
        if ids.any():
            color = _accumulate_lights(
                add, color, _model_lights(m, d, np.flatnonzero(ids)), blocking
            )
    return color


def _accumulate_lights(add: Callable, color: Vec, lamps: Lamp, geoms: np.ndarray | None) -> Vec:
    """Accumulate one light after another, so that their shadows share one program."""
    each = jax.tree.map(lambda x: x[:, None], lamps)
    return lax.scan(lambda c, lamp: (add(c, lamp, geoms), None), color, each)[0]


def _headlight(look: Look, seen: PixelHits, surface: HitSurface, to_camera: Vec) -> Vec:
    """Return the light of the headlight, which shines along the view direction everywhere."""
    n, to_light = surface.normal, -seen.ahead
    rows = [Vec(*(x[k : k + 1] for k in range(3))) for x in (look.ambient, look.diffuse)]
    shine = Vec(*(look.specular[k : k + 1] for k in range(3)))
    facing = jnp.maximum(n.dot(to_light), 0)
    base = _componentwise_product(rows[0] + rows[1].scale(facing), surface.color)
    return base + shine.scale(_highlight(surface, n, to_light, to_camera))


def _lamp_light(
    m: Model,
    d: Data,
    scene: PictureScene,
    seen: PixelHits,
    surface: HitSurface,
    n: Vec,
    to_camera: Vec,
    lamp: Lamp,
    geoms: np.ndarray | None,
) -> Vec:
    """Return the light of one lamp; `geoms` are the possible occluders."""
    apart = lamp.pos - seen.point
    far = apart.norm()
    to_light = apart.scale(1 / jnp.where(far > 0, far, 1))
    along = -to_light.dot(lamp.way)
    c0, c1, c2 = lamp.attenuation.parts
    fade = c0 + far * (c1 + far * c2)
    fade = jnp.where(fade > 0, 1 / jnp.where(fade > 0, fade, 1), 1)
    within = along >= lamp.cosine
    cone = jnp.where(within, jnp.where(within, along, 1).clip(1e-6) ** lamp.exponent, 0)
    strength = jnp.where(lamp.directional, 1, fade * jnp.where(lamp.cosine > -1, cone, 1))
    # directional lights
    back = Vec(*(jnp.broadcast_to(-w, far.shape) for w in lamp.way.parts))
    to_light = Vec(
        *(
            jnp.where(lamp.directional, a, b)
            for a, b in zip(back.parts, to_light.parts, strict=True)
        )
    )
    facing = jnp.maximum(n.dot(to_light), 0)
    if geoms is not None:
        lift = SHADOW_RAY_OFFSET * seen.depth
        begin = seen.point + seen.normal.scale(lift)
        hits, piece = first_hits(m, d, scene, Rays(begin, to_light, ()), geoms)
        free = ((hits.geom < 0) & (piece < 0)) | (~lamp.directional & (hits.dist > far))
        strength = jnp.where(free & (seen.normal.dot(to_light) > 0), strength, 0)
    diffuse = _componentwise_product(lamp.diffuse, surface.color).scale(facing * strength)
    shine = lamp.specular.scale(strength * _highlight(surface, n, to_light, to_camera))
    dark = jnp.where(lamp.directional, 1, fade * jnp.where(lamp.cosine > -1, cone, 1))
    return _componentwise_product(lamp.ambient, surface.color).scale(dark) + diffuse + shine


def _highlight(surface: HitSurface, n: Vec, to_light: Vec, to_camera: Vec) -> Array:
    half = jnp.maximum(n.dot((to_light + to_camera).normalize()), 0)
    bright = half > 0
    power = jnp.where(bright, half, 1) ** (_MAX_SHININESS * surface.shininess)
    return jnp.where(bright & (n.dot(to_light) > 0), surface.specular * power, 0)


def _model_lights(m: Model, d: Data, ids: np.ndarray) -> Lamp:
    """Return the lights of the model, `[n, *W]`."""
    shape = (len(ids), *d.qpos.shape[1:])

    def rows(x: Array) -> Vec:
        return Vec(*(jnp.broadcast_to(gather_static(x[:, k], ids), shape) for k in range(3)))

    kind = column(m.light_type[ids], d.qpos)
    angle = gather_static(m.light_cutoff, ids)
    spot = (kind == LightType.SPOT) & (angle < 180)
    cosine = jnp.where(spot, jnp.cos(jnp.deg2rad(angle)), -1)
    numbers = (
        cosine,
        jnp.where(spot, gather_static(m.light_exponent, ids), 0),
        kind == LightType.DIRECTIONAL,
    )
    cosine, exponent, directional = (jnp.broadcast_to(x, shape) for x in numbers)
    pos, way = (
        jax.tree.map(lambda x: jnp.broadcast_to(x, shape), gather_static(x, ids))
        for x in (d.light_xpos, d.light_xdir)
    )
    colors = (m.light_ambient, m.light_diffuse, m.light_specular, m.light_attenuation)
    ambient, diffuse, specular, attenuation = map(rows, colors)
    return Lamp(pos, way, ambient, diffuse, specular, attenuation, cosine, exponent, directional)


def _componentwise_product(a: Vec, b: Vec) -> Vec:
    return Vec(*(x * y for x, y in zip(a.parts, b.parts, strict=True)))
