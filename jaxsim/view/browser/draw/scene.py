"""A drawing of some worlds on a viser server: parts at the poses of their bodies.

The first world has a frame for each body, with its parts as children, so that names in the page's
tree are those of the model and a pose is sent once per body. Further worlds are instances: each
part is sent once for all of them.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math.quaternion import quat_multiply, quat_rotate
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.camera_view import Eye
from jaxsim.view.browser.draw.deformable import Deformable, Deformables, DeformableStyle
from jaxsim.view.browser.draw.layout import (
    WORLD_SPACING,
    bounding_balls,
    grid_cells,
    is_shared,
)
from jaxsim.view.browser.draw.light import Lights, add_sky
from jaxsim.view.browser.draw.marks import Marks
from jaxsim.view.browser.draw.part import HULLS, SURFACES, WIREFRAME, OnPart, Part, parts_of
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.server import Balls
from jaxsim.view.picking import DEFAULT_GROUPS

_GHOST_OPACITY = 0.25  # strength of the colors of ghost worlds, drawn over the first one
_MIN_POSE_MOTION = 1e-7  # smaller motions of a pose are not sent
_HIDDEN_POSE = np.array([0, 0, 0, 1, 0, 0, 0])  # pose used instead of one that is not finite
_FLOOR_EXTENTS = 50.0  # distance at which a floor is no longer visible, in extents of the model
_LINE_BRIGHTNESS = 0.85  # brightness of the grid lines relative to an untextured floor


class BrowserScene:
    """The drawing of some worlds.

    Args:
      server: viser server.
      m: the model.
      start: poses of one world, which is drawn initially.
      on_part: called with each viser handle, its part, and the index of its first world.
      on_soft: called with each viser handle of a flex or skin of the first world, and that object.
      settings: scene whose visible groups and marks, geometry and opacity apply; None: defaults.

    Attributes:
      parts: the parts of a world.
      offset: displacement of each world, (worlds, 3) [m].
      poses: the last poses shown; None: none yet.
      groups: visibility of each group of geoms, sites, flexes and skins, by kind.
      geometry: how shapes are drawn, one of `part.GEOMETRY`.
      opacity: factor on the opacity of all parts of moving bodies.
      softs: flexes and skins.
      frames: whether the body frames of the first world are visible.
      marks: marks besides geoms.
      then: called when other marks are requested, which may need more data.
      lights: the lights of the model.
      eye: the camera of the model that pages look through; set by `look_through`.
      sky: handle of the skybox; None: there is none.
    """

    def __init__(
        self,
        server: Any,
        m: Model,
        start: Poses,
        *,
        on_part: OnPart | None = None,
        on_soft: Callable[[Any, Deformable], None] | None = None,
        settings: "BrowserScene | None" = None,
    ):
        self._server, self._m, self.worlds = server, m, 1
        self._ghosts, self.offset = False, np.zeros((1, 3))
        self.parts = parts_of(m)
        self.softs = Deformables(server, m)
        self.groups = {kind: list(DEFAULT_GROUPS) for kind in ("geom", "site", "flex", "skin")}
        self.opacity, self.frames, self.geometry = 1.0, False, SURFACES
        self.poses: Poses | None = None
        self._lock = threading.RLock()  # the controls of the page are handled by other threads
        self.then: list[Callable[[], None]] = []
        self._on_part, self._on_soft = on_part, on_soft
        self._bodies: list[Any] = []
        self._handles: list[tuple[Part, Any]] = []
        self._instances: list[tuple[Part, Any]] = []
        self._last: np.ndarray | None = None
        self._taken: set[str] = set()
        self.marks, self.lights = Marks(server, m), Lights(server, m)
        self.eye = Eye(server, m)
        self.sky = add_sky(server, m)
        if settings is not None:
            self.groups, self.marks.visible = settings.groups, settings.marks.visible
            self.opacity, self.frames = settings.opacity, settings.frames
            self.geometry = settings.geometry
        self._radius = float(self.bounding_balls(start).radius.max())
        self.draw()
        self.show(start)

    def lay_out(self, worlds: int, ghosts: bool = False, spacing: float | None = None) -> None:
        """Set the number and arrangement of the worlds; the next poses shown are theirs.

        Args:
          worlds: number of worlds.
          ghosts: whether all worlds after the first are drawn over it, faintly, instead of around
            it.
          spacing: distance between worlds side by side [m]; None: chosen by their size.
        """
        if spacing is None:
            spacing = WORLD_SPACING * self._radius
        with self._lock:
            self.worlds, self._ghosts, self.poses = worlds, ghosts, None
            self.offset = (0.0 if ghosts else spacing) * grid_cells(worlds)
            self.draw()

    def draw(self) -> None:
        """Send all parts again, with their present appearance."""
        with self._lock, self._server.atomic():
            for _, handle in self._handles + self._instances:
                handle.remove()
            for handle in self._bodies:
                handle.remove()
            self.softs.remove()
            self._last, self._taken = None, set()
            self._bodies = [self._frame(b) for b in range(self._m.nbody)]
            self._handles = [(part, self._first(part)) for part in self.parts]
            several = [part for part in self.parts if self.worlds > 1 and not self._is_shared(part)]
            self._instances = [(part, self._others(part)) for part in several]
            if self._on_part is not None:
                for world, drawn in enumerate((self._handles, self._instances)):
                    for part, handle in drawn:
                        if not _is_floor(part):  # viser's grids cannot be clicked
                            self._on_part(handle, part, world)
            self.redraw()

    def redraw(self) -> None:
        """Show the same poses again, with the present marks."""
        with self._lock:
            if self.poses is not None:
                self.show(self.poses)

    def look_through(self, camera: int | None) -> None:
        """Let all pages look through a camera of the first world; None: release them."""
        with self._lock:
            self.eye.choose(camera)
            self.redraw()

    def mark(self, name: str, visible: bool) -> None:
        """Show or hide marks of a kind."""
        with self._lock:
            self.marks.visible = (
                self.marks.visible | {name} if visible else self.marks.visible - {name}
            )
            self.redraw()
        for act in self.then:
            act()

    def draw_as(self, geometry: str) -> None:
        """Draw shapes as surfaces, convex hulls or wireframes, see `part.GEOMETRY`."""
        with self._lock:
            self.geometry = geometry
            self.draw()

    def show_groups(self) -> None:
        """Update the visibility of parts by their groups."""
        with self._lock:
            for part, handle in self._handles + self._instances:
                handle.visible = self.groups[part.kind][part.group]
            self.softs.show_groups(self.groups)

    def show_frames(self, visible: bool) -> None:
        """Show or hide the body frames of the first world."""
        with self._lock:
            self.frames = visible
            for handle in self._bodies:
                handle.show_axes = visible

    def show(self, poses: Poses) -> None:
        """Move everything to the poses of the worlds; objects with non-finite poses stay."""
        with self._lock, self._server.atomic():
            self.poses = poses
            pose, moved = self._drawn_poses(poses)
            for body in np.flatnonzero(moved[0]):
                handle = self._bodies[body]
                handle.position, handle.wxyz = pose[0, body, :3], pose[0, body, 3:]
            several = np.any(moved[1:], axis=0)
            for part, handle in self._instances:
                if several[part.body]:
                    handle.batched_positions, handle.batched_wxyzs = _part_poses(part, pose[1:])
            self._show_softs(poses)
            self.marks.show(poses, self.offset)
            self.lights.show(poses)
            self.eye.show(poses, self.offset)

    def _show_softs(self, poses: Poses) -> None:
        faint = self.opacity * (_GHOST_OPACITY if self._ghosts else 1.0)
        new = self.softs.show(poses, self.offset, DeformableStyle(self.opacity, faint, self.groups))
        for soft, handle in new:
            if self._on_soft is not None:
                self._on_soft(handle, soft)

    def settle(self) -> bool:
        """Show the last poses where earlier ones are still visible (deforming_surface.py); return
        whether there were."""
        with self._lock, self._server.atomic():
            return self.softs.settle()

    def bounding_balls(self, poses: Poses) -> Balls:
        """Return bounding spheres of worlds (`layout.bounding_balls`)."""
        return bounding_balls(self._m, self.parts, self.groups["geom"], poses, self.offset)

    def _drawn_poses(self, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
        """Return the poses of bodies as drawn, (worlds, nbody, 7), and which have changed."""
        pose = np.concatenate([poses.xpos + self.offset[:, None], poses.xquat], axis=-1)
        finite = np.isfinite(pose).all(axis=(1, 2))[:, None, None]
        if self._last is None:
            self._last = np.where(finite, pose, _HIDDEN_POSE)
            return self._last, np.ones(pose.shape[:2], bool)
        before, self._last = self._last, np.where(finite, pose, self._last)
        return self._last, np.any(np.abs(self._last - before) > _MIN_POSE_MOTION, axis=-1)

    def _frame(self, body: int) -> Any:
        name = name_of(self._m, "body", body)
        size = 0.15 * float(self._m.stat.meansize)
        return self._server.scene.add_frame(
            self._path("/bodies", name),
            show_axes=self.frames,
            axes_length=10 * size,
            axes_radius=size / 3,
            origin_radius=size / 2,
        )

    def _path(self, above: str, name: str) -> str:
        """Return an unused name below another one: a site may have the same name as a geom."""
        path = first = f"{above}/{name.replace('/', '|')}"
        for i in range(2, 2 + len(self._taken)):
            if path not in self._taken:
                break
            path = f"{first} ({i})"
        self._taken.add(path)
        return path

    def _opacity(self, part: Part) -> float:
        return 1.0 if self._m.body_weldid[part.body] == 0 else self.opacity

    def _is_shared(self, part: Part) -> bool:
        return is_shared(self._m, part, self.offset, self._ghosts)

    def _first(self, part: Part) -> Any:
        """Return a part of the first world, as a child of the frame of its body."""
        path = self._path(self._bodies[part.body].name, part.name)
        where = {"position": part.pos, "wxyz": part.quat}
        visible = self.groups[part.kind][part.group]
        scene = self._server.scene
        if _is_floor(part):
            return self._floor(path, part, visible=visible, **where)
        if self.geometry == WIREFRAME:
            return scene.add_mesh_simple(path, **_wires(part), visible=visible, **where)
        glb = part.glb(self._opacity(part), hull=self.geometry == HULLS)
        return scene.add_glb(path, glb, visible=visible, **where)

    def _floor(self, path: str, part: Part, **how: Any) -> Any:
        """Return a plane without a texture, with grid lines that show the scale."""
        extent = float(self._m.stat.extent)
        color = np.clip(part.look.rgba[:3], 0, 1)
        line = (
            color * _LINE_BRIGHTNESS if color.mean() > 0.3 else 1 - _LINE_BRIGHTNESS * (1 - color)
        )
        # infinite planes end where they are no longer visible from any world
        reach = _FLOOR_EXTENTS * extent
        endless = (part.size[:2] <= 0) | (self.worlds > 1 and self._is_shared(part))
        far = 2 * (2 * reach + float(np.abs(self.offset).max()))
        width, height = np.where(endless, far, 2 * part.size[:2])
        return self._server.scene.add_grid(
            path,
            float(width),
            float(height),
            plane_color=_bytes(color),
            plane_opacity=float(part.look.rgba[3]),
            cell_color=_bytes(line),
            section_color=_bytes(line),
            cell_size=_round_to_one_digit(extent / 10),
            section_size=_round_to_one_digit(extent / 2),
            fade_distance=reach,
            **how,
        )

    def _others(self, part: Part) -> Any:
        """Return a part of all worlds but the first, as instances."""
        opacity = self._opacity(part) * (_GHOST_OPACITY if self._ghosts else 1.0)
        number, path = self.worlds - 1, self._path("/worlds", part.name)
        where = {
            "batched_positions": np.repeat(part.pos[None], number, axis=0),
            "batched_wxyzs": np.repeat(part.quat[None], number, axis=0),
            "lod": "off",
            "visible": self.groups[part.kind][part.group],
        }
        scene = self._server.scene
        if self.geometry == WIREFRAME:
            wires = _wires(part)
            wires["batched_colors"] = np.array(wires.pop("color"), np.uint8)
            return scene.add_batched_meshes_simple(path, **wires, **where)
        glb = part.glb(opacity, solid=True, hull=self.geometry == HULLS)
        return scene.add_batched_glb(path, glb, **where)


def _is_floor(part: Part) -> bool:
    return part.type == GeomType.PLANE and part.look.texture < 0


def _wires(part: Part) -> dict[str, Any]:
    """Return the edges of the triangles of a part, as arguments of viser's meshes."""
    return {
        "vertices": part.shape.vertex.astype(np.float32),
        "faces": part.shape.face.astype(np.uint32),
        "color": _bytes(np.clip(part.look.rgba[:3], 0, 1)),
        "wireframe": True,
    }


def _part_poses(part: Part, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the poses of a part in worlds with body poses (worlds, nbody, 7)."""
    pos, quat = pose[:, part.body, :3], pose[:, part.body, 3:]
    own_pos, own_quat = (np.repeat(x[None], len(pose), axis=0) for x in (part.pos, part.quat))
    return pos + quat_rotate(quat, own_pos), quat_multiply(quat, own_quat)


def _bytes(color: np.ndarray) -> tuple[int, int, int]:
    r, g, b = (int(255 * c) for c in color)
    return r, g, b


def _round_to_one_digit(length: float) -> float:
    """Return a length rounded to one digit, 1, 2 or 5."""
    power = 10 ** np.floor(np.log10(max(length, 1e-6)))
    return float(max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)) * power)
