"""Marks besides geoms: tendons, contacts with their forces, centers of mass, cameras."""

from typing import Any

import numpy as np

from jaxsim.escape import unique
from jaxsim.math.quaternion import quat_from_matrix
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.contacts import Touch
from jaxsim.view.browser.draw.poses import Poses

_PULLEY_OBJ = -2  # value of `wrap_obj`
CONTACT, FORCE, CENTER = (230, 140, 20), (90, 200, 90), (230, 60, 60)
_WEIGHT_ARROW_LENGTH = (
    0.4  # length of the arrow of a force equal to the weight of the model, in extents
)


class Marks:
    """Marks of some worlds on a viser server; initially all except tendons are hidden.

    Attributes:
      shown: the visible kinds of "tendons", "contacts", "forces", "centers", "cameras".
      touch: the contacts to draw; None: there are none.
    """

    def __init__(self, server: Any, m: Model):
        self._server, self._m = server, m
        self.shown = {"tendons"}
        self.touch: Touch | None = None
        self._drawn: dict[str, Any] = {}
        self._width = np.asarray(m.tendon_width) if m.ntendon else np.zeros(0)
        self._color = np.asarray(m.tendon_rgba)[:, :3] if m.ntendon else np.zeros((0, 3))
        self._size = 0.1 * float(m.stat.meansize)
        self._unit = _WEIGHT_ARROW_LENGTH * float(m.stat.extent) / max(self._weight(), 1e-9)

    def _weight(self) -> float:
        gravity = float(np.linalg.norm(np.asarray(self._m.opt.gravity))) or 9.81
        return float(np.asarray(self._m.body_mass).sum()) * gravity

    def show(self, poses: Poses, offset: np.ndarray) -> None:
        """Draw the marks of the worlds with these poses, displaced by `offset`, (worlds, 3)."""
        want = {
            "tendons": self._tendons,
            "contacts": self._contacts,
            "forces": self._forces,
            "centers": self._centers,
            "cameras": self._cameras,
        }
        for name, draw in want.items():
            lines = draw(poses, offset) if name in self.shown else {}
            for path in [p for p in self._drawn if p.startswith(f"/{name}/") and p not in lines]:
                self._drawn.pop(path).remove()
            for path, (make, values) in lines.items():
                self._put(path, make, values)

    def _put(self, path: str, make: Any, values: dict[str, Any]) -> None:
        """Draw an object, or update one that is drawn already."""
        handle = self._drawn.get(path)
        if handle is None:
            self._drawn[path] = make(path, **values)
            return
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                setattr(handle, name, value)

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
        if self.touch is None or not len(self.touch.pos):
            return {}
        point = self.touch.pos + offset[self.touch.world]
        return {"/contacts/points": self._points(point, CONTACT, 2.0)}

    def _forces(self, poses: Poses, offset: np.ndarray) -> dict:
        if self.touch is None or self.touch.force is None or not len(self.touch.pos):
            return {}
        begin = self.touch.pos + offset[self.touch.world]
        arrow = np.stack([begin, begin + self._unit * self.touch.force], axis=1)
        size = self._size / 4
        values = {
            "points": arrow.astype(np.float32),
            "colors": _bytes(np.tile(np.array(FORCE) / 255, (len(arrow), 1))),
            "shaft_radius": size,
            "head_radius": 2 * size,
            "head_length": 4 * size,
        }
        return {"/forces/arrows": (self._server.scene.add_arrows, values)}

    def _centers(self, poses: Poses, offset: np.ndarray) -> dict:
        """Return the centers of mass of the trees."""
        roots = np.flatnonzero((self._m.body_parentid == 0) & (np.arange(self._m.nbody) > 0))
        point = (poses.subtree_com[:, roots] + offset[:, None]).reshape(-1, 3)
        return {"/centers/points": self._points(point, CENTER, 2.0)} if len(point) else {}

    def _points(self, point: np.ndarray, color: tuple, size: float) -> tuple:
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


def tendon_lines(poses: Poses, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the segments of all tendons in all worlds, (n, 2, 3) [m], and the tendon of each,
    (n,)."""
    adr, num = poses.paths["ten_wrapadr"], poses.paths["ten_wrapnum"]
    worlds = len(adr)
    point = poses.paths["wrap_xpos"].reshape(worlds, -1, 3) + offset[:, None]
    pulley = poses.paths["wrap_obj"].reshape(worlds, -1) == _PULLEY_OBJ
    index = np.arange(point.shape[1])
    # the tendon of each point: the first one that ends after it
    end = adr + num
    tendon = (index[None, :, None] >= end[:, None, :]).sum(axis=-1)
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
    return np.clip(255 * color, 0, 255).astype(np.uint8)
