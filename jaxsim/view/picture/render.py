"""Render images by ray tracing: color, depth, segmentation and normals.

MuJoCo's `Renderer` without a window or OpenGL: a pure function that jits, batches and, where
surfaces are smooth, differentiates. Pixels are processed in chunks, so that an image needs little
more memory than its pixels (docs/render.md).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.cache import bounded_cache
from jaxsim.enums import ObjType
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.query.ray import check_visible_geoms, parse_geom_groups
from jaxsim.physics.ray.surfaces import filter_visible_geoms
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache
from jaxsim.transforms.tuning import tuning
from jaxsim.view.camera import Camera
from jaxsim.view.frame import camera_frame, camera_frustum, is_orthographic
from jaxsim.view.picking import DEFAULT_GROUPS
from jaxsim.view.picture.appearance import Look
from jaxsim.view.picture.deformable import NO_HIT_ID, flex_constants, object_of_piece
from jaxsim.view.picture.path import pixel_colors
from jaxsim.view.picture.pixels import Beam, PixelHits, Reach, View, rays_of, trace_rays
from jaxsim.view.picture.scene import PictureScene, scene
from jaxsim.view.picture.sites import add_site_geoms, visible_sites

_MAX_PICTURE_SIDE = 1 << 15  # limit on the width and height of an image
_RENDER_OUTPUTS = ("rgb", "depth", "distance", "segmentation", "normal", "object")


class Picture(NamedTuple):
    """Images of a camera; row 0 is the top. Images that were not requested are None.

    Attributes:
      rgb: colors from 0 to 1, (height, width, 3).
      depth: depth along the optical axis, (height, width) [m]; the far clipping distance where
        nothing is hit (`znear` and `zfar` of the look).
      distance: distance along the ray of the pixel, (height, width) [m]; that of the far clipping
        plane where nothing is hit.
      segmentation: geom ids, (height, width); -1: no geom.
      normal: outward surface normals in the world, (height, width, 3); zero: nothing.
      object: id and `ObjType` of a geom, site, flex, skin or tendon, (height, width, 2); -1 and -1:
        nothing. MuJoCo's segmentation.
    """

    rgb: Float[jax.Array, "height width 3"] | None = None
    depth: Float[jax.Array, "height width"] | None = None
    distance: Float[jax.Array, "height width"] | None = None
    segmentation: Int[jax.Array, "height width"] | None = None
    normal: Float[jax.Array, "height width 3"] | None = None
    object: Int[jax.Array, "height width 2"] | None = None


def render(
    m: Model,
    d: Data,
    camera: Camera | int | str | None = None,
    width: int = 320,
    height: int = 240,
    *,
    what: Sequence[str] = _RENDER_OUTPUTS,
    look: Look | None = None,
    geomgroup: Sequence[bool] = DEFAULT_GROUPS,
    sitegroup: Sequence[bool] = DEFAULT_GROUPS,
    shadows: bool = True,
) -> Picture:
    """Return an image of a world; for many worlds use jax.vmap.

    It depends on the configuration alone. For depth, segmentation and normals every surface is
    opaque, except that objects with opacity 0 are invisible. Depth is differentiable in the state,
    with the visible surface held fixed.

    Args:
      m: the model; its colors, materials and lights may differ between worlds.
      d: data, of which qpos (and the poses of mocap bodies) are used.
      camera: name or id of a camera of the model, or a `jaxsim.view.Camera`; None: a free camera
        that sees the whole model, from the direction in the look (`<visual><global>`).
      width, height: size of the image [pixels].
      what: requested images, of "rgb", "depth", "distance", "segmentation", "normal", "object".
      look: appearance settings; None: `Look.of(m)`.
      geomgroup: six values, visibility of the groups of geoms, flexes, skins and tendons. Known
        when traced.
      sitegroup: six values, visibility of the groups of sites. Known when traced.
      shadows: whether lights cast shadows.

    Returns:
      The requested images.

    Raises:
      ValueError: there is no such camera, a size is not positive, a kind of image is not known,
        or `jaxsim.support.ray` does not support a geom.
    """
    check_model("render", m)
    check_data("render", m, d)
    asked = tuple(name for name in _RENDER_OUTPUTS if name in _requested_outputs(what))
    size = _pixels("width", width), _pixels("height", height)
    groups = parse_geom_groups("render", tuple(geomgroup))
    sites = parse_geom_groups("render", tuple(sitegroup), "sitegroup")
    assert groups is not None  # tuples were given
    assert sites is not None
    check_visible_geoms("render", m, filter_visible_geoms(m.structure, groups))
    look = Look.of(m) if look is None else look
    if not isinstance(look, Look):
        raise ValueError(f"render: look: expected a Look, got {type(look).__name__}")
    camera = _camera(m, camera, look)
    view = _view_rows(m, d, camera, look, size)
    draw = _drawing_program(size, asked, groups, sites, bool(shadows), is_orthographic(m, camera))
    return Picture(**dict(zip(asked, _reshape_to_rows(draw(m, d, view, look), size), strict=True)))


def _reshape_to_rows(found: list[Array], size: tuple[int, int]) -> list[Array]:
    width, height = size
    return [x.reshape(height, width, *x.shape[1:]) for x in found]


def _view_rows(m: Model, d: Data, camera: Camera, look: Look, size: tuple[int, int]) -> Array:
    """Return the rows of a `View`, (18,)."""
    frame, frustum = camera_frame(m, d, camera), camera_frustum(m, camera)
    width = jnp.where(frustum.width > 0, frustum.width, size[0] / size[1] * frustum.height)
    left = frustum.center - 0.5 * width
    extent = jnp.asarray(m.stat.extent)
    numbers = (frustum.bottom, frustum.height, left, width, look.znear * extent, look.zfar * extent)
    vectors = [frame.pos, frame.forward, frame.up, frame.right]
    dtype = m.qpos0.dtype
    return jnp.concatenate([*vectors, jnp.stack(numbers)]).astype(dtype)


@bounded_cache(32)
def _drawing_program(
    size: tuple[int, int],
    asked: tuple[str, ...],
    groups: tuple[bool, ...],
    sitegroup: tuple[bool, ...],
    shadows: bool,
    parallel: bool,
) -> Callable[[Model, Data, Array, Look], list[Array]]:
    """Return the program of the requested images of all pixels, `[n, ...]`."""

    def draw(m: Model, d: Data, rows: Array, look: Look) -> list[Array]:
        d = com_pos(m, kinematics(m, d))
        none = d.xpos[:0]
        d = camlight(m, d.replace(light_xpos=none, light_xdir=none))
        geoms, sites = (
            filter_visible_geoms(m.structure, groups),
            visible_sites(m.structure, sitegroup),
        )
        geoms = np.append(geoms, m.ngeom + np.arange(len(sites)))
        m, d = add_site_geoms(m, d, sitegroup)
        world = scene(m, d, geoms, groups)
        view, number = View.of(rows), size[0] * size[1]
        many = int(np.prod(d.qpos.shape[1:], dtype=int))
        together = tuning().pixels_per_lane * tuning().search_lanes
        tile = min(number, max(1, together // many))
        tiles = -(-number // tile)
        index = jnp.minimum(jnp.arange(tiles * tile, dtype=jnp.int32), number - 1)

        @jax.checkpoint
        def some(index: Array) -> list[Array]:
            like = jnp.zeros_like(d.qpos, shape=(len(index), *d.qpos.shape[1:]))
            rays, reach = rays_of(view, index, size, parallel, like), Reach(view.near, view.far)
            found = trace_rays(m, d, world, rays, reach, view.ahead, geoms)
            made = {
                "depth": found.depth,
                "distance": found.depth * found.way.norm(),
                "segmentation": jnp.where(found.geom < m.ngeom - len(sites), found.geom, NO_HIT_ID),
                "normal": _stack_vector(found.normal),
                "object": _objects(m, world, found, sites),
            }
            if "rgb" in asked:
                beam = Beam.of(view, size, parallel, rays[0])
                some = pixel_colors(m, d, world, look, rays, beam, reach, found, geoms, shadows)
                made["rgb"] = _stack_vector(some)
            return [made[name] for name in asked]

        drawn = lax.map(some, index.reshape(tiles, tile))
        return [x.reshape(-1, *x.shape[2:])[:number] for x in drawn]

    return ProgramCache(batched(draw), inline=True)


def _objects(m: Model, scene: PictureScene, found: PixelHits, sites: np.ndarray) -> Array:
    """Return the id and type of the objects that pixels see, `[n, 2, *W]`; the last geoms are
    sites."""
    first = m.ngeom - len(sites)
    ids = np.concatenate([np.arange(first), sites, [NO_HIT_ID]]).astype(np.int32)
    kinds = np.repeat([ObjType.GEOM, ObjType.SITE, NO_HIT_ID], [first, len(sites), 1]).astype(
        np.int32
    )
    which = jnp.where(found.geom >= 0, found.geom, m.ngeom)
    number, kind = jnp.asarray(ids)[which], jnp.asarray(kinds)[which]
    if scene.soft is not None:
        table, part_id = flex_constants(m.structure), object_of_piece(m, scene.soft, found.piece)
        here = part_id >= 0
        number = jnp.where(here, jnp.asarray(table.id)[jnp.maximum(part_id, 0)], number)
        kind = jnp.where(here, jnp.asarray(table.type)[jnp.maximum(part_id, 0)], kind)
    return jnp.stack([number, kind], axis=1)


def _stack_vector(value: Vec) -> Array:
    return jnp.stack(value.parts, axis=1)


def _camera(m: Model, camera: Camera | int | str | None, look: Look) -> Camera:
    if camera is None:
        return look.free_camera(m)
    return camera if isinstance(camera, Camera) else Camera.fixed(m, camera)


def _pixels(name: str, value: int) -> int:
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 0 < int(value) <= _MAX_PICTURE_SIDE
    ):
        raise ValueError(
            f"render: {name}: expected a number of pixels, 1 to {_MAX_PICTURE_SIDE}, got {value!r}"
        )
    return int(value)


def _requested_outputs(what: Sequence[str]) -> tuple[str, ...]:
    names = (what,) if isinstance(what, str) else tuple(what)
    unknown = [name for name in names if name not in _RENDER_OUTPUTS]
    if unknown or not names:
        got = repr(unknown[0]) if unknown else "nothing"
        raise ValueError(f"render: what: expected some of {', '.join(_RENDER_OUTPUTS)}, got {got}")
    return names
