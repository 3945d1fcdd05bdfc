"""Rangefinders: ray casts from sites and from the pixels of cameras.

MuJoCo's documentation, XML reference: sensor/rangefinder. A site's ray is along its z axis. A
camera's rays pass through its pixel centers, row by row from the upper left: for a perspective
camera from one point, in the directions

    ((x - cx) / fx, -(y - cy) / fy, -1)

with x and y in pixels; for an orthographic one from points in its plane, all along -z. Geoms of the
sensor's own body are excluded. All rays of all sensors are one query (ray/cast.py).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import ObjType, Projection, RayDataField, SensorType
from jaxsim.math import Vec, concat, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.body.camera_intrinsics import lens
from jaxsim.physics.ray.cast import Rays, cast_rays
from jaxsim.physics.ray.surfaces import filter_visible_geoms, unknown_sdf_geoms
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.unsupported import describe_object


@dataclass(frozen=True, eq=False)
class RangefinderPlan:
    """Rays of the rangefinders of a model: first those of sites, then those of cameras.

    Attributes:
      site: site of each site ray, `[n]`.
      cam: camera of each camera ray, `[k]`.
      x, y: its pixel, from the upper left, `[k]`.
      body: body whose geoms are excluded, `[n + k]`.
      fields: numbers reported by some sensor, among those of all fields, ascending.
      rows: index of each output among these numbers of all rays, number by number.
    """

    site: np.ndarray
    cam: np.ndarray
    x: np.ndarray
    y: np.ndarray
    body: np.ndarray
    fields: np.ndarray
    rows: np.ndarray


class _Beams(NamedTuple):
    """Rays in the world: origins, and unit directions."""

    pos: Vec
    way: Vec


def read_rangefinders(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    """Compute the outputs of all rangefinders, concatenated in one array."""
    plan = _plan(m.structure)
    # Rays of all sensors, sites first.
    sites, cameras = _site_beams(d, plan), _camera_beams(m, d, plan)
    pos, way = concat([sites, cameras])
    # A ray ignores the geoms of the body that its sensor is attached to.
    body = jnp.asarray(column(plan.body.astype(np.int32), pos))
    known = np.setdiff1d(
        filter_visible_geoms(m.structure), unknown_sdf_geoms(m.structure)
    )  # see `unsupported_ray_reason`
    hits = cast_rays(m, d, Rays(pos, way, (body,)), known)
    met, zero = hits.geom >= 0, jnp.zeros_like(hits.dist)
    point = pos + way.scale(hits.dist)
    # Depth: distance from the camera plane; for sites the distance.
    number = len(plan.site)
    offset = point[number:] - gather_static(d.cam_xpos, plan.cam)
    depth = concatenate_kinds(
        [hits.dist[:number], -offset.dot(gather_static(d.cam_xmat, plan.cam).cols[2])]
    )
    # All numbers of all rays, grouped by field.
    numbers = {
        RayDataField.DIST: [hits.dist],
        RayDataField.DIR: [jnp.where(met, x, zero) for x in way.parts],
        RayDataField.ORIGIN: [x + zero for x in pos.parts],
        RayDataField.POINT: [jnp.where(met, x, zero) for x in point.parts],
        RayDataField.NORMAL: list(hits.normal.parts),
        RayDataField.DEPTH: [jnp.where(met, depth, -1)],
    }
    # Select the fields in use, then the numbers of each sensor.
    every = [x for field in RayDataField for x in numbers[field]]
    return (gather_static(concatenate_kinds([every[k] for k in plan.fields]), plan.rows),)


def unsupported_ray_reason(m: Model, i: int) -> str | None:
    """Return the geom without a known distance that a sensor's rays might hit, or None."""
    of_camera = m.sensor_objtype[i] == ObjType.CAMERA
    body = (m.cam_bodyid if of_camera else m.site_bodyid)[m.sensor_objid[i]]
    geoms = unknown_sdf_geoms(m.structure)
    geoms = geoms[m.geom_bodyid[geoms] != body]
    return (
        f"{describe_object(m, 'geom', geoms[0])}, whose distance is not known,"
        if len(geoms)
        else None
    )


def _site_beams(d: Data, plan: RangefinderPlan) -> _Beams:
    return _Beams(
        gather_static(d.site_xpos, plan.site), gather_static(d.site_xmat, plan.site).cols[2]
    )


def _camera_beams(m: Model, d: Data, plan: RangefinderPlan) -> _Beams:
    cam, like = plan.cam, m.cam_fovy
    pos, turn, of = gather_static(d.cam_xpos, cam), gather_static(d.cam_xmat, cam), lens(m, cam)
    # Pixel centers.
    x, y = (column(place + 0.5, like) for place in (plan.x, plan.y))
    flat = column(m.cam_projection[cam] == Projection.ORTHOGRAPHIC, like)
    # Direction through the pixel: perspective, or along -z for an orthographic camera.
    zero = jnp.zeros_like(of.fx)
    fx, fy = (jnp.where(flat, 1, f) for f in (of.fx, of.fy))
    out = Vec((x - of.cx) / fx, -(y - of.cy) / fy, zero - 1)
    ahead = Vec(zero, zero, zero - 1)
    way = (turn @ select_where(flat, ahead, out)).normalize()
    # For an orthographic camera fovy is the height of the image plane, and its width [m].
    height = gather_static(m.cam_fovy, cam)
    beside = Vec(
        jnp.where(flat, (x / of.width - 0.5) * height, 0),
        jnp.where(flat, (0.5 - y / of.height) * height, 0),
        zero,
    )
    return _Beams(pos + turn @ beside, way)


@cache_by_structure
def _plan(s: Structure) -> RangefinderPlan:
    """Build the plan of a model with rangefinders."""
    ids = np.flatnonzero(s.sensor_type == SensorType.RANGEFINDER)
    on_site = s.sensor_objtype[ids] == ObjType.SITE
    site, cam = s.sensor_objid[ids[on_site]], s.sensor_objid[ids[~on_site]]
    # Flatten the pixels of all cameras.
    pixels = s.cam_resolution[cam]
    count = pixels.prod(axis=1)
    owner = np.repeat(cam, count)
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    width = np.repeat(pixels[:, 0], count)

    first = np.zeros(len(ids), int)  # first ray of each sensor
    first[on_site] = np.arange(len(site))
    first[~on_site] = len(site) + np.cumsum(count) - count
    number = np.ones(len(ids), int)
    number[~on_site] = count
    # Numbers that each sensor reports, and their union over the sensors.
    asked = [_numbers(int(bits)) for bits in s.sensor_intprm[ids, 0]]
    fields = np.unique(np.concatenate(asked))
    rays = len(site) + len(owner)
    # Row of each output: (number, ray) in the table of all rays.
    rows = [
        rays * np.searchsorted(fields, of_one) + (f + np.arange(n))[:, None]
        for of_one, f, n in zip(asked, first, number, strict=True)
    ]
    return RangefinderPlan(
        site=site,
        cam=owner,
        x=place % width,
        y=place // width,
        body=np.concatenate([s.site_bodyid[site], s.cam_bodyid[owner]]),
        fields=fields,
        rows=np.concatenate([r.ravel() for r in rows]),
    )


def _numbers(bits: int) -> np.ndarray:
    """Return the numbers that a sensor reports per ray, among those of all fields."""
    # Offset of each field among the numbers of a ray.
    width = np.array([field.width for field in RayDataField])
    start = np.cumsum(width) - width
    reported = [f for f in RayDataField if bits >> f & 1]
    return np.concatenate([start[f] + np.arange(width[f]) for f in reported])
