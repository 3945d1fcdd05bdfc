"""The default camera of images, videos and pages: it frames the bodies, not the floor.

MuJoCo's default free camera is 1.5 extents away from the center of the model, and a large floor
determines the extent. Here the camera has a given direction, and is as close as the bounding boxes
of the framed geoms permit. In its axes, with z along the view, a point (x, y, z) is in the image if
|x - cx| <= tx (z - cz) and |y - cy| <= ty (z - cz), where tx and ty are the tangents of half the
fields of view. The extremes of x - tx z, -x - tx z, y - ty z and -y - ty z over all points give the
position (cx, cy, cz) directly. The settings of a file take precedence (`FileCamera`).
"""

from dataclasses import dataclass
from os import PathLike

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math.quaternion import quat_rotate
from jaxsim.model.model import Model
from jaxsim.spec import Spec
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.camera import DEFAULT_FOVY, Camera, CameraType, default_free_camera
from jaxsim.view.picking import DEFAULT_GROUPS

AZIMUTH, ELEVATION = 120.0, -20.0  # direction unless a file specifies one [degrees]
LOST_DISTANCE = 30.0  # distance beyond which objects are ignored, in sizes of the first frame
_MARGIN = 1.25  # size of the image relative to that of the bodies


@dataclass(frozen=True)
class FileCamera:
    """Settings of a file that determine the default camera.

    Attributes:
      azimuth, elevation, fovy: those of `<visual><global>`, or the defaults of this module
        [degrees]; `fovy` is the height of the image [m] if it is orthographic.
      orthographic: whether the free camera is orthographic.
      cameraid: id of the camera that `<visual><global cameraid>` names; -1: none.
      framed: whether the file gives both `center` and `extent` of `<statistic>`.
    """

    azimuth: float = AZIMUTH
    elevation: float = ELEVATION
    fovy: float = DEFAULT_FOVY
    orthographic: bool = False
    cameraid: int = -1
    framed: bool = False

    @classmethod
    def of(cls, source: str | PathLike[str] | Spec) -> "FileCamera":
        """Return the settings of a file, or of a Spec."""
        spec = source if isinstance(source, Spec) else Spec.from_file(source)
        given = spec.settings("visual", child="global")
        numbers = {n: float(given[n]) for n in ("azimuth", "elevation", "fovy") if n in given}
        return cls(
            **numbers,
            orthographic=spec.setting("visual", "orthographic", child="global") in ("true", "1"),
            cameraid=int(spec.setting("visual", "cameraid", child="global")),
            framed={"center", "extent"} <= set(spec.settings("statistic")),
        )

    def fixed_camera(self, m: Model) -> Camera | None:
        """Return the camera that `cameraid` names; None if there is none.

        Raises:
          ValueError: the model has no camera with this id.
        """
        return None if self.cameraid < 0 else Camera.fixed(m, self.cameraid)

    def frame(self, m: Model, poses: list[Poses], *, aspect: float) -> Camera:
        """Return the default free camera of an image or a video.

        Args:
          m: the model.
          poses: poses of all worlds at some times, the first time first.
          aspect: width of the image divided by its height.

        Returns:
          MuJoCo's free camera for a single time and a file with an explicit `<statistic>`, which
          bodies may leave in a motion; else the closest camera that sees all bodies.
        """
        free = default_free_camera(
            m,
            azimuth=self.azimuth,
            elevation=self.elevation,
            fovy=self.fovy,
            orthographic=self.orthographic,
        )
        if self.framed and len(poses) == 1:
            return free
        points = framed_points(m, poses)
        return fit_camera(free, points, aspect=aspect) if len(points) else free


def framed_geoms(m: Model) -> np.ndarray:
    """Return the ids of the geoms that the default camera frames.

    These are visible geoms of bodies that move, or that carry bodies that move: a robot with its
    base, without floor, walls and tables. If nothing moves, these are all visible geoms but planes.
    """
    parent, moves = np.asarray(m.body_parentid), np.asarray(m.body_weldid) > 0
    moves |= np.asarray(m.body_mocapid) >= 0
    # children have larger ids than their parents
    for body in range(m.nbody - 1, 0, -1):
        moves[parent[body]] |= moves[body]
    moves[0] = False
    material = np.asarray(m.geom_matid)
    opacity = np.asarray(m.geom_rgba)[:, 3]
    if m.nmat:
        opacity = np.where(material >= 0, np.asarray(m.mat_rgba)[material, 3], opacity)
    group = np.clip(np.asarray(m.geom_group), 0, len(DEFAULT_GROUPS) - 1)
    visible = np.array(DEFAULT_GROUPS, bool)[group] & (opacity > 0)
    visible &= np.asarray(m.geom_type) != GeomType.PLANE
    framed = visible & moves[np.asarray(m.geom_bodyid)]
    return np.flatnonzero(framed if framed.any() else visible)


def framed_points(m: Model, poses: list[Poses]) -> np.ndarray:
    """Return the points that the default camera frames, (n, 3) [m].

    They are the corners of the bounding boxes of `framed_geoms`, and the vertices of flexes and
    skins, in all worlds. Points that are LOST_DISTANCE sizes of the first poses away are ignored:
    an object that falls forever would make everything else too small.

    Args:
      m: the model.
      poses: poses of all worlds at some times, the first time first.
    """
    geoms = framed_geoms(m)
    box, quat = np.asarray(m.geom_aabb)[geoms], np.asarray(m.geom_quat)[geoms]
    corner = np.stack(np.meshgrid(*3 * [[-1.0, 1.0]], indexing="ij"), axis=-1).reshape(8, 1, 3)
    local = quat_rotate(quat, box[:, :3] + corner * box[:, 3:]) + np.asarray(m.geom_pos)[geoms]
    body = np.asarray(m.geom_bodyid)[geoms]

    def points(at: Poses) -> np.ndarray:
        quat, pos = at.xquat[:, None, body], at.xpos[:, None, body]
        solid = quat_rotate(quat, np.broadcast_to(local, (len(pos), *local.shape))) + pos
        every = (x.reshape(-1, 3) for x in (solid, at.flexvert_xpos, at.soft))
        found = np.concatenate(list(every))
        return found[np.isfinite(found).all(axis=1)]

    first, *later = map(points, poses)
    if not first.size:
        return first
    middle = (first.min(axis=0) + first.max(axis=0)) / 2
    size = np.linalg.norm(first - middle, axis=1).max()
    near = (p[np.linalg.norm(p - middle, axis=1) <= LOST_DISTANCE * size] for p in later)
    return np.concatenate([first, *near])


def fit_camera(camera: Camera, points: np.ndarray, *, aspect: float) -> Camera:
    """Return the closest free camera of the same direction that sees all points, with a margin.

    Args:
      camera: a free camera.
      points: (n, 3) [m], at least one.
      aspect: width of the image divided by its height.

    Returns:
      The camera. If it is orthographic, the height of its image is fitted instead of its distance.

    Raises:
      ValueError: it is no free camera.
    """
    if camera.type != CameraType.FREE:
        raise ValueError(f"fit_camera: camera: expected a free camera, got {camera.type.name}")
    axes = _camera_axes(float(camera.azimuth), float(camera.elevation))
    x, y, z = (points @ axis for axis in axes)
    dtype, fovy = camera.lookat.dtype, float(camera.fovy)
    if camera.orthographic:
        height = _MARGIN * max(np.ptp(y), np.ptp(x) / aspect)
        center = np.array([(v.min() + v.max()) / 2 for v in (x, y, z)])
        back = np.ptp(z)
        fovy = float(height) or fovy
    else:
        slope = np.tan(np.deg2rad(fovy) / 2) / _MARGIN
        cx, behind_x = _fit_axis(x, z, aspect * slope)
        cy, behind_y = _fit_axis(y, z, slope)
        center = np.array([cx, cy, (z.min() + z.max()) / 2])
        back = center[2] - min(behind_x, behind_y)
    return camera.replace(
        lookat=jnp.asarray(center @ np.stack(axes), dtype),
        distance=jnp.asarray(back, dtype),
        fovy=jnp.asarray(fovy, dtype),
    )


def _fit_axis(x: np.ndarray, z: np.ndarray, slope: float) -> tuple[float, float]:
    """Return cx and the largest cz with |x - cx| <= slope (z - cz) for all points."""
    high, low = float((x - slope * z).max()), float((-x - slope * z).max())
    return (high - low) / 2, -(high + low) / (2 * slope)


def _camera_axes(azimuth: float, elevation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return right, up and forward of a free camera, (3,) each, as `frame.free_camera_axes`."""
    yaw, rise = np.deg2rad(azimuth), np.deg2rad(elevation)
    forward = np.array(
        [np.cos(rise) * np.cos(yaw), np.cos(rise) * np.sin(yaw), np.sin(rise)],
    )
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    return right, np.cross(right, forward), forward
