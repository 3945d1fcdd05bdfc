"""Let pages look through a camera of the model, following its motion."""

from typing import Any

import numpy as np

from jaxsim.model.model import Model
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.server import PAGE_FOVY

# smaller motions of a camera are not followed: the mouse may move the page's camera from there
_MIN_CAMERA_MOTION = 1e-6


class Eye:
    """The camera of the first world that all pages look through.

    Attributes:
      camera: its id; None: pages have their own cameras.
    """

    def __init__(self, server: Any, m: Model):
        self._server, self._m = server, m
        self.camera: int | None = None
        self._seen: dict[int, np.ndarray] = {}  # last pose sent to each page

    def choose(self, camera: int | None) -> None:
        """Look through a camera from the next poses on, or release pages where they are."""
        self.camera, self._seen = camera, {}
        if camera is None:
            for client in self._server.get_clients().values():
                client.camera.up_direction = (0.0, 0.0, 1.0)
                client.camera.fov = float(np.deg2rad(PAGE_FOVY))

    def show(self, poses: Poses, offset: np.ndarray) -> None:
        """Move the cameras of pages; `offset` is the displacement of the worlds, (worlds, 3)."""
        if self.camera is None:
            return
        pos, mat = poses.cam_xpos[0, self.camera] + offset[0], poses.cam_xmat[0, self.camera]
        fovy = float(np.asarray(self._m.cam_fovy)[self.camera])
        pose = np.concatenate([pos, mat.reshape(-1)])
        if not np.isfinite(pose).all():
            return
        clients = self._server.get_clients()
        self._seen = {number: seen for number, seen in self._seen.items() if number in clients}
        for number, client in clients.items():
            seen = self._seen.get(number)
            if seen is None or np.abs(pose - seen).max() > _MIN_CAMERA_MOTION:
                self._seen[number] = pose
                self._rotate_view(client, pos, mat, fovy)

    def _rotate_view(self, client: Any, pos: np.ndarray, mat: np.ndarray, fovy: float) -> None:
        """Set the view of a page: along -z of the frame `mat`, y up; `fovy` in degrees."""
        with client.atomic():
            client.camera.up_direction = mat[:, 1]
            client.camera.position = pos
            client.camera.look_at = pos - float(self._m.stat.extent) * mat[:, 2]
            client.camera.fov = float(np.deg2rad(fovy))
