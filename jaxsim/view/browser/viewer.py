"""Browser viewer for any simulation loop: `viewer.show(d)`."""

import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.contacts import Touching
from jaxsim.view.browser.draw.deformable import Deformable
from jaxsim.view.browser.draw.part import OnPart, Part
from jaxsim.view.browser.draw.poses import Poses, Posing, pose_state
from jaxsim.view.browser.draw.scene import BrowserScene
from jaxsim.view.browser.panel.fault import stop_message
from jaxsim.view.browser.panel.screenshot import send_screenshot
from jaxsim.view.browser.panel.selection import Selected
from jaxsim.view.browser.panel.shortcuts import Shortcuts
from jaxsim.view.browser.panel.visibility import add_rendering, add_visibility_keys
from jaxsim.view.browser.server import (
    DEFAULT_HOST,
    Balls,
    address,
    aim_camera,
    close_server,
    open_server,
)

_SETTLE_DELAY = 0.05  # delay without a new state after which the last one is settled [s]
_MAX_FRAME_RATE = 60.0  # largest frame rate
# viser 1.1 draws a closed folder as an empty box; without its padding it is a line with a title
_CLOSED_FOLDER_STYLE = """<style>
.mantine-Paper-root > div[aria-hidden="true"][inert] + div { display: none; }
</style>"""


class Viewer:
    """Page that shows worlds of a model, served by the local machine; a context manager.

    It listens on 127.0.0.1 only unless another host is given, and answers only requests to its
    `address`, which has a token. Closing the page ends nothing, and it can be reopened; `close`
    ends it. In a notebook a viewer as the value of a cell shows the page.

    Args:
      m: the model; also one that cannot be simulated.
      port: port to listen on; 0: any free port; None: 8080, or the next free port.
      host: address of this machine to listen on; "0.0.0.0": all of them, for other machines.
      names: additional host names accepted from browsers.
      ghosts: whether the worlds of a batch overlap, all but the first faintly, instead of being
        side by side.
      spacing: distance between worlds side by side [m]; None: chosen by their size.
      on_part: called with each viser handle, its part, and the world of its first instance.
      on_soft: called with each viser handle of a flex or skin of the first world, and that object.
      contacts: whether the page has switches for contacts, if shown states may carry them.

    Attributes:
      server: the viser server, for custom controls.
      scene: the drawing; another one after `replace_model`.
      shortcuts: the keyboard shortcuts of the page.
      files: folder of the panel with the buttons that load and download files.
      selected: the selected object.
      ghosts: as given.
      posing: computes the poses of the drawn worlds.

    Raises:
      ValueError: there is no such port.
      OSError: the port is in use, or the host is no address of this machine.
      MissingExtra: viser is not installed.

    Example:
      with Viewer(m) as viewer:
          for _ in range(1000):
              d = step(m, d)
              viewer.show(d)
    """

    def __init__(
        self,
        m: Model,
        *,
        port: int | None = None,
        host: str = DEFAULT_HOST,
        names: Iterable[str] = (),
        ghosts: bool = False,
        spacing: float | None = None,
        on_part: OnPart | None = None,
        on_soft: Callable[[Any, Deformable], None] | None = None,
        contacts: bool = True,
    ):
        if not isinstance(m, Model):
            raise ValueError(f"Viewer: m: expected a Model, got {type(m).__name__}")
        self.ghosts, self._spacing, self._may_touch = ghosts, spacing, contacts
        self._also, self._also_soft = on_part, on_soft
        self._replacing = threading.RLock()  # held while a state is drawn, or the model replaced
        self.server: Any = open_server(port, host=host, names=names)
        try:
            poses = self._build(m)
            aim_camera(self.server, self.scene.bounding_balls(poses))
            # a page that opens while nothing moves must be set to the selected camera
            self.server.on_client_connect(lambda _: self.scene.redraw())
        except BaseException:
            close_server(self.server)
            raise
        self._balls: Callable[[Poses], Balls] = self.scene.bounding_balls
        self._next: tuple[dict, dict | None, Any] | None = None
        self._news = threading.Condition()
        self._closed, self._laid_out = False, True
        self._fault: BaseException | None = None
        self._drawing = threading.Thread(target=self._draw, name="jaxsim viewer", daemon=True)
        self._drawing.start()

    def _build(self, m: Model, before: BrowserScene | None = None) -> Poses:
        """Draw a model, add its panel, and return its initial poses.

        Args:
          m: the model.
          before: scene whose visibility settings apply again; None: the default settings.
        """
        self._m, self.posing, self._touching = m, Posing(m), Touching(m)
        self.selected, self.shortcuts = Selected(self.server, m), Shortcuts(self.server)
        poses = self.posing.of({"qpos": np.asarray(m.qpos0)[None]})
        self.scene = BrowserScene(
            self.server, m, poses, on_part=self._on_part, on_soft=self._on_soft, settings=before
        )
        controls = add_rendering(self.server, m, self.scene, self._may_touch)
        add_visibility_keys(self.shortcuts, controls)
        gui = self.server.gui
        self.files = gui.add_folder("Files", expand_by_default=False, order=7)
        with self.files:
            capture = gui.add_button("Screenshot", hint="download an image of this view")
        capture.on_click(lambda event: send_screenshot(event.client))
        self.shortcuts.add(
            "P", "download a screenshot", lambda event: send_screenshot(event.client)
        )
        gui.add_html(_CLOSED_FOLDER_STYLE, order=1000)
        sheet = gui.add_button("Keyboard and mouse", order=6)
        sheet.on_click(lambda event: self.shortcuts.help(event.client))
        return poses

    def replace_model(self, m: Model) -> None:
        """Show another model on the same page, with a new panel and shortcuts.

        Cameras of pages and visibility settings stay. A state of the former model that was not yet
        drawn is dropped.
        """
        with self._replacing:
            with self._news:
                self._next = None
            self.server.gui.reset()
            self.server.scene.reset()
            self._build(m, before=self.scene)
            self._balls = self.scene.bounding_balls

    def follow_options(self, m: Model) -> None:
        """Use the options of a model that differs from the shown one by its options alone."""
        self._m = self._touching.m = m

    @property
    def address(self) -> str:
        """Return the address of the page."""
        return address(self.server)

    def show(self, d: Data) -> None:
        """Show one world, or those of a batch; return at once.

        States that a slow page cannot keep up with are skipped: always the last one is drawn. The
        poses follow from `qpos` (and the poses of mocap bodies). Contacts are drawn if `d` carries
        them (`make_data(m, keep=["contact", ...])`).

        Raises:
          ValueError: this is not a Data of the model, or the viewer is closed.
          RuntimeError: an earlier state could not be drawn.
        """
        if not isinstance(d, Data):
            raise ValueError(f"show: d: expected a Data, got {type(d).__name__}")
        if d.qpos.ndim not in (1, 2) or d.qpos.shape[-1] != self._m.nq:
            raise ValueError(
                f"show: d.qpos: expected shape ({self._m.nq},) or (worlds, {self._m.nq}), got "
                f"{d.qpos.shape}"
            )
        # started here: the caller may donate the memory of `d` to its next step
        touch = self._touching.find(d) if self.wants_contacts() else None
        applied = None if d.xfrc_applied is None else 1 * d.xfrc_applied
        self._put(self.posing.find(pose_state(d)), touch, applied)

    def show_state(self, state: dict) -> None:
        """Show worlds by their qpos and, if there are mocap bodies, mocap_pos and mocap_quat.

        Args:
          state: arrays by name, (worlds, ...).
        """
        self._put(self.posing.find(state), None)

    def lay_out(self, ghosts: bool) -> None:
        """Choose whether the worlds of a batch overlap or are side by side."""
        if ghosts != self.ghosts:
            self.ghosts, self._laid_out = ghosts, False

    def start_with(self, state: dict, balls: Callable[[Poses], Balls]) -> None:
        """Draw worlds before the page is opened.

        Args:
          state: see `show_state`.
          balls: returns the spheres to frame by the camera of a new page, for worlds with these
            poses, now and whenever the layout changes.
        """
        self._balls = balls
        poses = self.posing.of(state)
        if len(poses.xpos) > 1:
            self.scene.lay_out(len(poses.xpos), self.ghosts, self._spacing)
        self.scene.show(poses)
        self._aim(poses)

    def _aim(self, poses: Poses) -> None:
        aim_camera(self.server, self._balls(poses), above=len(poses.xpos) > 1)

    def _put(self, found: dict, touch: dict | None, applied: Any = None) -> None:
        with self._news:
            if self._closed:
                raise ValueError("show: the viewer is closed")
            if self._fault is not None:
                raise RuntimeError(f"show: drawing has stopped: {self._fault}") from self._fault
            self._next = found, touch, applied
            self._news.notify()

    def close(self) -> None:
        """End the page's server; repeated calls have no effect."""
        with self._news:
            if self._closed:
                return
            self._closed = True
            self._news.notify()
        self._drawing.join()
        close_server(self.server)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Viewer({self.address}{', closed' if self._closed else ''})"

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.address}" width="100%" height="480"></iframe>'

    def wants_contacts(self) -> bool:
        """Return whether contacts or their forces are to be drawn."""
        return bool(self.scene.marks.visible & {"contacts", "forces"})

    def _has_news(self) -> bool:
        return self._next is not None or self._closed

    def _await(self, timeout: float | None) -> bool:
        with self._news:
            return self._news.wait_for(self._has_news, timeout)

    def _draw(self) -> None:
        try:
            self._run_loop()
        except BaseException as error:  # noqa: BLE001  (reported by the page and by `show`)
            self._fault = error
            self.server.gui.add_markdown(stop_message(error), order=-1)

    def _run_loop(self) -> None:
        """Draw the last state shown, repeatedly, until the viewer is closed."""
        while True:
            if not self._await(_SETTLE_DELAY):
                with self._replacing:
                    self.scene.settle()  # may be slow: `show` does not wait for it
                self._await(None)
            with self._replacing:
                self._draw_next()
            with self._news:
                if self._news.wait_for(lambda: self._closed, timeout=1 / _MAX_FRAME_RATE):
                    return

    def _draw_next(self) -> None:
        """Draw the last state shown, unless the model was replaced since."""
        with self._news:
            if self._next is None:
                return
            (found, touch, applied), self._next = self._next, None
        poses = self.posing.poses(found)
        if len(poses.xpos) != self.scene.worlds or not self._laid_out:
            self._laid_out = True
            self.scene.lay_out(len(poses.xpos), self.ghosts, self._spacing)
            self._aim(poses)
        self.scene.marks.touch = self._touching.touch(touch)
        forces = None if applied is None else np.asarray(applied)
        self.scene.marks.applied = (
            None if forces is None else forces.reshape(-1, *forces.shape[-2:])
        )
        self.scene.show(poses)

    def _on_part(self, handle: Any, part: Part, world: int) -> None:
        self.selected.watch(handle, part, world)
        if self._also is not None:
            self._also(handle, part, world)

    def _on_soft(self, handle: Any, soft: Deformable) -> None:
        self.selected.watch_soft(handle, soft)
        if self._also_soft is not None:
            self._also_soft(handle, soft)
