"""Marks besides geoms: tendons, contacts, forces, inertia, joint axes, centers of mass, cameras."""

from typing import Any

import numpy as np

from jaxsim.enums import JointType
from jaxsim.escape import unique
from jaxsim.math.quaternion import quat_from_matrix, quat_multiply, quat_rotate
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.view.browser.draw.contacts import Touch
from jaxsim.view.browser.draw.poses import Poses

_PULLEY_OBJ = -2  # value of `wrap_obj`
# Colors: red, green and blue, from 0 to 255.
CONTACT, FORCE, CENTER = (230, 140, 20), (90, 200, 90), (230, 60, 60)
PUSH, JOINT, INERTIA = (220, 60, 200), (60, 110, 220), (200, 100, 60)
_INERTIA_OPACITY = 0.45
_JOINT_ARROW_LENGTH = 12.0  # length of the arrow of a joint, in radii of a point
_WEIGHT_ARROW_LENGTH = 0.4  # arrow of a force as large as the model's weight, in extents


class Marks:
    """Marks of some worlds on a viser server.

    Attributes:
      visible: the visible kinds of "tendons", "contacts", "forces", "perturbations", "inertia",
        "joints", "centers", "cameras"; initially tendons and perturbations.
      touch: the contacts to draw; None: there are none.
      applied: `xfrc_applied` of each world, (worlds, nbody, 6) [N, N m]; None: unknown.
    """

    def __init__(self, server: Any, m: Model):
        self._server, self._m = server, m
        self.visible = {"tendons", "perturbations"}
        self.touch: Touch | None = None
        self.applied: np.ndarray | None = None
        self._drawn: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._width = np.asarray(m.tendon_width) if m.ntendon else np.zeros(0)
        self._color = np.asarray(m.tendon_rgba)[:, :3] if m.ntendon else np.zeros((0, 3))
        self._size = 0.1 * float(m.stat.meansize)
        self._unit = _WEIGHT_ARROW_LENGTH * float(m.stat.extent) / max(self._weight(), 1e-9)

    def _weight(self) -> float:
        """Return the weight of the model [N], that on Earth without gravity."""
        gravity = float(np.linalg.norm(np.asarray(self._m.opt.gravity))) or 9.81
        return float(np.asarray(self._m.body_mass).sum()) * gravity

    def show(self, poses: Poses, offset: np.ndarray) -> None:
        """Draw the marks of the worlds with these poses, displaced by `offset`, (worlds, 3)."""
        # Each returns path -> (function of the server that adds the object, its arguments).
        draw_functions = {
            "tendons": self._tendons,
            "contacts": self._contacts,
            "forces": self._forces,
            "perturbations": self._perturbations,
            "inertia": self._inertia,
            "joints": self._joints,
            "centers": self._centers,
            "cameras": self._cameras,
        }
        for name, draw in draw_functions.items():
            objects = draw(poses, offset) if name in self.visible else {}
            for path in [p for p in self._drawn if p.startswith(f"/{name}/") and p not in objects]:
                self._drawn.pop(path)[0].remove()
            for path, (make, values) in objects.items():
                self._put(path, make, values)

    def _put(self, path: str, make: Any, values: dict[str, Any]) -> None:
        """Draw an object, or update what has changed of one that is drawn already."""
        handle, before = self._drawn.get(path, (None, {}))
        if handle is None:
            self._drawn[path] = make(path, **values), values
            return
        for name, value in values.items():
            if isinstance(value, np.ndarray) and not np.array_equal(value, before[name]):
                setattr(handle, name, value)
        self._drawn[path] = handle, values

    def _tendons(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the paths of tendons as line segments, one object for each width."""
        if not poses.paths:
            return {}
        lines, tendon = tendon_lines(poses, offset)
        found = {}
        for width in np.unique(self._width[tendon]):
            of_width = self._width[tendon] == width
            found[f"/tendons/{width:g}"] = (
                self._server.scene.add_line_segments,
                {
                    "points": lines[of_width].astype(np.float32),
                    "colors": _bytes(np.repeat(self._color[tendon[of_width], None], 2, axis=1)),
                    "thickness": float(2 * width),
                },
            )
        return found

    def _contacts(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the positions of contacts as points."""
        if self.touch is None or not len(self.touch.pos):
            return {}
        point = self.touch.pos + offset[self.touch.world]
        return {"/contacts/points": self._points(point, CONTACT, 2.0)}

    def _forces(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the contact forces on the second geoms as arrows."""
        if self.touch is None or self.touch.force is None or not len(self.touch.pos):
            return {}
        begin = self.touch.pos + offset[self.touch.world]
        return {"/forces/arrows": self._arrows(begin, self._unit * self.touch.force, FORCE)}

    def _arrows(self, begin: np.ndarray, vector: np.ndarray, color: tuple) -> tuple:
        """Return arrows from points (n, 3) along vectors (n, 3) [m]."""
        size = self._size / 4
        values = {
            "points": np.stack([begin, begin + vector], axis=1).astype(np.float32),
            "colors": _bytes(np.tile(np.array(color) / 255, (len(begin), 1))),
            "shaft_radius": size,
            "head_radius": 2 * size,
            "head_length": 4 * size,
        }
        return self._server.scene.add_arrows, values

    def _perturbations(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the forces applied to bodies, at their centers of mass."""
        if self.applied is None or len(self.applied) != len(poses.xpos):
            return {}
        force = self.applied[..., :3]
        world, body = np.nonzero(np.any(force != 0, axis=-1))
        if not len(world):
            return {}
        begin = _centers_of_mass(self._m, poses)[world, body] + offset[world]
        return {"/perturbations/arrows": self._arrows(begin, self._unit * force[world, body], PUSH)}

    def _inertia(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return a box for each body that moves, with its mass and inertia."""
        half = inertia_boxes(self._m)
        bodies = np.flatnonzero((self._m.body_weldid > 0) & (half > 0).all(axis=1))
        if not len(bodies):
            return {}
        pos = _centers_of_mass(self._m, poses)[:, bodies] + offset[:, None]
        quat = quat_multiply(poses.xquat, np.asarray(self._m.body_iquat)[None])[:, bodies]
        worlds = len(pos)
        cube = require("trimesh.creation", "view").box(extents=(2.0, 2.0, 2.0))
        values = {
            "vertices": np.asarray(cube.vertices, np.float32),
            "faces": np.asarray(cube.faces, np.uint32),
            "batched_positions": pos.reshape(-1, 3).astype(np.float32),
            "batched_wxyzs": quat.reshape(-1, 4).astype(np.float32),
            "batched_scales": np.tile(half[bodies], (worlds, 1)).astype(np.float32),
            "batched_colors": np.array(INERTIA, np.uint8),
            "opacity": _INERTIA_OPACITY,
            "flat_shading": True,
            "lod": "off",
        }
        # viser cannot change the size of a batch, so the path contains it
        return {f"/inertia/{worlds}": (self._server.scene.add_batched_meshes_simple, values)}

    def _joints(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the axes of hinges and slides as arrows from their anchors."""
        single = np.flatnonzero(np.isin(self._m.jnt_type, (JointType.HINGE, JointType.SLIDE)))
        if not len(single):
            return {}
        begin = (poses.xanchor[:, single] + offset[:, None]).reshape(-1, 3)
        vector = _JOINT_ARROW_LENGTH * self._size * poses.xaxis[:, single].reshape(-1, 3)
        return {"/joints/arrows": self._arrows(begin, vector, JOINT)}

    def _centers(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the centers of mass of the trees."""
        roots = np.flatnonzero((self._m.body_parentid == 0) & (np.arange(self._m.nbody) > 0))
        point = (poses.subtree_com[:, roots] + offset[:, None]).reshape(-1, 3)
        return {"/centers/points": self._points(point, CENTER, 2.0)} if len(point) else {}

    def _points(self, point: np.ndarray, color: tuple, size: float) -> tuple:
        """Return discs at points (n, 3) [m], with a size in radii of a point."""
        values = {
            "points": point.astype(np.float32),
            "colors": _bytes(np.tile(np.array(color) / 255, (len(point), 1))),
            "point_size": size * self._size,
            "point_shape": "circle",
        }
        return self._server.scene.add_point_cloud, values

    def _cameras(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the cameras of the first world, as pyramids."""
        names, found = unique(name_of(self._m, "camera", i) for i in range(self._m.ncam)), {}
        for i in range(self._m.ncam):
            values = {
                "fov": float(np.deg2rad(np.asarray(self._m.cam_fovy)[i])),
                "aspect": 4 / 3,
                "scale": 3 * self._size,
                "position": poses.cam_xpos[0, i] + offset[0],
                "wxyz": optical_rotation(poses.cam_xmat[0, i]),
            }
            found[f"/cameras/{names[i].replace('/', '|')}"] = (
                self._server.scene.add_camera_frustum,
                values,
            )
        return found


def inertia_boxes(m: Model) -> np.ndarray:
    """Return half the sides of a homogeneous box with the mass and inertia of each body, (nbody, 3)
    [m].

    A box with half sides (a, b, c) has I_x = mass (b^2 + c^2) / 3, hence
    a^2 = 3 (I_y + I_z - I_x) / (2 mass). Bodies without mass have the size 0.
    """
    mass, inertia = np.asarray(m.body_mass, float)[:, None], np.asarray(m.body_inertia, float)
    square = 1.5 * (inertia.sum(axis=1, keepdims=True) - 2 * inertia)
    return np.sqrt(np.clip(square / np.where(mass > 0, mass, np.inf), 0, None))


def _centers_of_mass(m: Model, poses: Poses) -> np.ndarray:
    """Return the center of mass of each body, (worlds, nbody, 3) [m]."""
    return poses.xpos + quat_rotate(poses.xquat, np.asarray(m.body_ipos)[None])


def tendon_lines(poses: Poses, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the segments of all tendons in all worlds, (n, 2, 3) [m], and the tendon of each,
    (n,)."""
    adr, num = poses.paths["ten_wrapadr"], poses.paths["ten_wrapnum"]
    worlds = len(adr)
    point = poses.paths["wrap_xpos"].reshape(worlds, -1, 3) + offset[:, None]
    pulley = poses.paths["wrap_obj"].reshape(worlds, -1) == _PULLEY_OBJ
    index = np.arange(point.shape[1])
    # The paths of all tendons are in one array: a point is of the first tendon that ends after it.
    end = adr + num
    tendon = (index[None, :, None] >= end[:, None, :]).sum(axis=-1)
    # Segments join successive points of a tendon, except at pulleys, which divide it into branches.
    joined = (tendon[:, :-1] == tendon[:, 1:]) & (tendon[:, 1:] < adr.shape[1])
    joined &= ~(pulley[:, :-1] | pulley[:, 1:])
    lines = np.stack([point[:, :-1], point[:, 1:]], axis=2)[joined]
    return lines, tendon[:, :-1][joined]


def optical_rotation(mat: np.ndarray) -> np.ndarray:
    """Return the orientation of a camera in viser's convention, (4,): z along the view, y down.

    Args:
      mat: frame of a camera of MuJoCo, (3, 3): it looks along -z, y is up.
    """
    return quat_from_matrix(mat * [1.0, -1.0, -1.0])


def _bytes(color: np.ndarray) -> np.ndarray:
    """Convert colors from [0, 1] to bytes."""
    return np.clip(255 * color, 0, 255).astype(np.uint8)
