"""The section "Rendering": marks, geometry, opacity, groups, and the cameras of the model."""

from collections.abc import Callable
from typing import Any

from jaxsim.escape import unique
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.deformable import Deformable
from jaxsim.view.browser.draw.part import GEOMETRY, Part
from jaxsim.view.browser.draw.scene import BrowserScene
from jaxsim.view.browser.panel.shortcuts import Shortcuts

# Label of each kind of mark, and what it shows.
MARK_LABELS = {
    "tendons": ("tendons", "paths of spatial tendons"),
    "contacts": ("contact points", "positions of contacts"),
    "forces": ("contact forces", "an arrow of length 0.4 extents is the weight of the model"),
    "perturbations": (
        "perturbation forces",
        "applied forces (xfrc_applied), such as that of the mouse, at the centers of mass",
    ),
    "inertia": ("inertia boxes", "homogeneous boxes with the mass and inertia of the bodies"),
    "joints": ("joint axes", "axes of hinges and slides"),
    "centers": ("centers of mass", "centers of mass of the kinematic trees"),
    "cameras": ("cameras", "frustums of the cameras of the model"),
}
# Key, control, and what the key does.
_VISIBILITY_KEYS = (
    ("C", "contacts", "show or hide contact points"),
    ("F", "forces", "show or hide contact forces"),
    ("I", "inertia", "show or hide inertia boxes"),
    ("J", "joints", "show or hide joint axes"),
    ("M", "centers", "show or hide centers of mass"),
    ("B", "frames", "show or hide frames of bodies"),
    ("G", "geometry", "draw surfaces, convex hulls or a wireframe"),
    ("N", "camera", "look through the next camera"),
)
_MAX_LISTED_NAMES = 12  # names in the hint of a group
_FREE_CAMERA_LABEL = "free"


def add_rendering(server: Any, m: Model, scene: BrowserScene, contacts: bool) -> dict[str, Any]:
    """Add the visibility controls to the panel of a page, those of contacts only if there may be
    some.

    Returns:
      The handles of marks by kind, and of "frames", "geometry" and "camera", for shortcuts.
    """
    gui = server.gui
    there = {"tendons": m.ntendon, "cameras": m.ncam, "joints": m.njnt}
    there |= dict.fromkeys(("contacts", "forces", "perturbations"), contacts)
    switches: dict[str, Any] = {}
    with gui.add_folder("Rendering", expand_by_default=False, order=40):
        for name in MARK_LABELS:
            if there.get(name, True):
                switches[name] = _add_mark_switch(gui, scene, name)
        frames = gui.add_checkbox("frames of bodies", initial_value=scene.frames)
        frames.on_update(lambda _: scene.show_frames(frames.value))
        switches["frames"] = frames
        geometry = gui.add_dropdown(
            "geometry",
            GEOMETRY,
            initial_value=scene.geometry,
            hint="surfaces as they look, the convex hulls with which meshes collide, or triangles",
        )
        geometry.on_update(lambda _: scene.draw_as(geometry.value))
        switches["geometry"] = geometry
        _add_environment_switches(gui, scene)
        opacity = gui.add_slider("opacity", min=0.1, max=1.0, step=0.1, initial_value=scene.opacity)

        @opacity.on_update
        def _(_: Any) -> None:
            scene.opacity = opacity.value
            scene.draw()

        for kind in scene.groups:
            _groups(gui, scene, kind)
    if m.ncam:
        switches["camera"] = _cameras(gui, m, scene)
    return switches


def add_visibility_keys(shortcuts: Shortcuts, controls: dict[str, Any]) -> None:
    """Add shortcuts for some of the controls that `add_rendering` returns."""
    for key, name, does in _VISIBILITY_KEYS:
        if name in controls:
            shortcuts.add(key, does, _next_value(controls[name]))


def _next_value(control: Any) -> Callable[[Any], None]:
    """Return an action that toggles a checkbox, or selects the next option of a list."""

    def act(_: Any) -> None:
        if isinstance(control.value, bool):
            control.value = not control.value
        else:
            options = control.options
            control.value = options[(options.index(control.value) + 1) % len(options)]

    return act


def _add_environment_switches(gui: Any, scene: BrowserScene) -> None:
    """Add switches for the model's lights and skybox."""
    if len(scene.lights.ids):
        lights = gui.add_checkbox("lights of the model", initial_value=scene.lights.visible)

        @lights.on_update
        def _(_: Any) -> None:
            scene.lights.shine(lights.value)
            scene.redraw()

    if scene.sky is not None:
        sky = gui.add_checkbox("sky", initial_value=True)

        @sky.on_update
        def _(_: Any) -> None:
            scene.sky.visible = sky.value


def _add_mark_switch(gui: Any, scene: BrowserScene, name: str) -> Any:
    label, hint = MARK_LABELS[name]
    box = gui.add_checkbox(label, initial_value=name in scene.marks.visible, hint=hint)
    box.on_update(lambda _: scene.mark(name, box.value))
    return box


def _groups(gui: Any, scene: BrowserScene, kind: str) -> None:
    """Add a switch for each nonempty group, with the names of its objects."""
    parts: list[Part | Deformable] = [*scene.parts, *scene.softs.drawn]
    used = sorted({part.group for part in parts if part.kind == kind})
    many = "flexes" if kind == "flex" else f"{kind}s"
    for group in used:
        names = [part.name for part in parts if part.kind == kind and part.group == group]
        more = ", ..." if len(names) > _MAX_LISTED_NAMES else ""
        box = gui.add_checkbox(
            f"{many} of group {group} ({len(names)})",
            initial_value=scene.groups[kind][group],
            hint=", ".join(names[:_MAX_LISTED_NAMES]) + more,
        )

        def change(_: Any, group: int = group, box: Any = box) -> None:
            scene.groups[kind][group] = box.value
            scene.show_groups()

        box.on_update(change)


def _cameras(gui: Any, m: Model, scene: BrowserScene) -> Any:
    """Add a selector of the camera that the page looks through."""
    names = unique((name_of(m, "camera", i) for i in range(m.ncam)), (_FREE_CAMERA_LABEL,))
    choice = gui.add_dropdown(
        "camera", (_FREE_CAMERA_LABEL, *names), initial_value=_FREE_CAMERA_LABEL, order=41
    )

    @choice.on_update
    def _(_: Any) -> None:
        scene.look_through(
            None if choice.value == _FREE_CAMERA_LABEL else names.index(choice.value)
        )

    return choice
