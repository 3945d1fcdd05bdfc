"""`<visual>`: display settings, which do not affect the physics.

Images use those of `headlight`, `map`, `rgba` and `global` that view/picture/appearance.py reads.
All are kept for writing.
"""

from dataclasses import replace

from jaxsim.mjcf.schema.groups import DRAWING_ONLY
from jaxsim.mjcf.schema.rows import Row, boolean, integer, keyword, real, row


def _visual_element(tag: str, doc: str, *attrs) -> Row:
    return row(tag, "?", doc, *(replace(attr, no_effect=DRAWING_ONLY) for attr in attrs))


GLOBAL = _visual_element(
    "global",
    "General settings of the viewer.",
    integer("cameraid", -1, "camera at the start; -1: the free camera"),
    boolean("orthographic", "false", "orthographic free camera"),
    real("fovy", 45, "deg", "vertical field of view of the free camera"),
    real("ipd", 0.068, "m", "distance between the eyes of the free camera"),
    real("azimuth", 90, "deg", "azimuth of the free camera at the start"),
    real("elevation", -45, "deg", "elevation of the free camera at the start"),
    real("linewidth", 1, "1", "width of lines in pixels"),
    real("glow", 0.3, "1", "emission added to the selected body"),
    integer("offwidth", 640, "width of the off-screen image"),
    integer("offheight", 480, "height of the off-screen image"),
    real("realtime", 1, "1", "speed of the viewer relative to real time"),
    boolean("ellipsoidinertia", "false", "draw inertias as ellipsoids, not boxes"),
    boolean("bvactive", "false", "draw bounding volumes that are in use"),
)

QUALITY = _visual_element(
    "quality",
    "Quality of the drawing.",
    integer("shadowsize", 4096, "size of the shadow map"),
    integer("offsamples", 4, "samples per pixel of the off-screen image"),
    integer("numslices", 28, "slices of round shapes about their axis"),
    integer("numstacks", 16, "stacks of round shapes along their axis"),
    integer("numquads", 4, "subdivisions of planes and boxes"),
)

HEADLIGHT = _visual_element(
    "headlight",
    "The light that travels with the camera.",
    real("ambient", (0.1, 0.1, 0.1), "1", "ambient color"),
    real("diffuse", (0.4, 0.4, 0.4), "1", "diffuse color"),
    real("specular", (0.5, 0.5, 0.5), "1", "specular color"),
    keyword(
        "active",
        "false true auto 0 1 2",
        "auto",
        "switched on; auto: unless an image lights the scene; 0, 1, 2: old spellings",
    ),
)

MAP = _visual_element(
    "map",
    "Scales between physical quantities and the drawing.",
    real("stiffness", 100, "/s^2", "strength of dragging with the mouse"),
    real("stiffnessrot", 500, "/s^2", "strength of rotating with the mouse"),
    real("force", 0.005, "s^2", "length of the arrow of a force"),
    real("torque", 0.1, "s^2/m", "length of the arrow of a torque"),
    real("alpha", 0.3, "1", "opacity of transparent geoms"),
    real("fogstart", 3, "1", "distance where fog begins, in extents"),
    real("fogend", 10, "1", "distance where fog is full, in extents"),
    real("znear", 0.01, "1", "near clipping plane, in extents"),
    real("zfar", 50, "1", "far clipping plane, in extents"),
    real("haze", 0.3, "1", "share of the skybox covered by haze"),
    real("shadowclip", 1, "1", "size of the shadow of a directional light, in extents"),
    real("shadowscale", 0.6, "1", "fraction of a spot's cone that casts shadows"),
    real("actuatortendon", 2, "1", "width of an actuated tendon relative to a passive one"),
)

SCALE = _visual_element(
    "scale",
    "Sizes of decorations, relative to the mean size of a body.",
    real("forcewidth", 0.1, "1", "width of force arrows"),
    real("contactwidth", 0.3, "1", "width of contact discs"),
    real("contactheight", 0.1, "1", "height of contact discs"),
    real("connect", 0.2, "1", "width of the lines between bodies"),
    real("com", 0.4, "1", "size of centers of mass"),
    real("camera", 0.3, "1", "size of cameras"),
    real("light", 0.3, "1", "size of lights"),
    real("selectpoint", 0.2, "1", "size of the selected point"),
    real("jointlength", 1.0, "1", "length of joint axes"),
    real("jointwidth", 0.1, "1", "width of joint axes"),
    real("actuatorlength", 0.7, "1", "length of actuators"),
    real("actuatorwidth", 0.2, "1", "width of actuators"),
    real("framelength", 1.0, "1", "length of frame axes"),
    real("framewidth", 0.1, "1", "width of frame axes"),
    real("constraint", 0.1, "1", "width of violated constraints"),
    real("slidercrank", 0.2, "1", "width of slider-cranks"),
    real("frustum", 10, "1", "length of camera frustums"),
)

_COLORS = {
    "fog": (0, 0, 0, 1),
    "haze": (1, 1, 1, 1),
    "force": (1, 0.5, 0.5, 1),
    "inertia": (0.8, 0.2, 0.2, 0.6),
    "joint": (0.2, 0.6, 0.8, 1),
    "actuator": (0.2, 0.25, 0.2, 1),
    "actuatornegative": (0.2, 0.6, 0.9, 1),
    "actuatorpositive": (0.9, 0.4, 0.2, 1),
    "com": (0.9, 0.9, 0.9, 1),
    "camera": (0.6, 0.9, 0.6, 1),
    "light": (0.6, 0.6, 0.9, 1),
    "selectpoint": (0.9, 0.9, 0.1, 1),
    "connect": (0.2, 0.2, 0.8, 1),
    "contactpoint": (0.9, 0.6, 0.2, 1),
    "contactforce": (0.7, 0.9, 0.9, 1),
    "contactfriction": (0.9, 0.8, 0.4, 1),
    "contacttorque": (0.9, 0.7, 0.9, 1),
    "contactgap": (0.5, 0.8, 0.9, 1),
    "rangefinder": (1, 1, 0.1, 1),
    "constraint": (0.9, 0, 0, 1),
    "slidercrank": (0.5, 0.3, 0.8, 1),
    "crankbroken": (0.9, 0, 0, 1),
    "frustum": (1, 1, 0, 0.2),
    "bv": (0, 1, 0, 0.5),
    "bvactive": (1, 0, 0, 0.5),
}

RGBA = _visual_element(
    "rgba",
    "Colors of decorations.",
    *(real(name, rgba, "1", f"color of '{name}'") for name, rgba in _COLORS.items()),
)

VISUAL = row(
    "visual",
    "*",
    "How a viewer draws the model.",
    children=[GLOBAL, QUALITY, HEADLIGHT, MAP, SCALE, RGBA],
)
