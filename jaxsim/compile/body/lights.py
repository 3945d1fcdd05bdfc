"""Compile lights: `light_*`; their poses are used by viewers alone."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.body.bodies import owners
from jaxsim.compile.body.cameras import TRACKING_MODES
from jaxsim.compile.columns import Column, copy_columns
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import frame_pose
from jaxsim.compile.geometry.orientation import normalize_direction
from jaxsim.compile.step import declare_pass
from jaxsim.enums import LightType
from jaxsim.math.quaternion import quat_rotate
from jaxsim.spec import SpecElement

_TYPES = {kind.name.lower(): kind for kind in LightType}

_COLUMNS = (
    Column("light_mode", "mode", dtype=np.int32, keywords=TRACKING_MODES),
    Column("light_castshadow", "castshadow", dtype=bool),
    Column("light_active", "active", dtype=bool),
    Column("light_bulbradius", "bulbradius", dtype=np.float32),
    Column("light_intensity", "intensity", dtype=np.float32),
    Column("light_range", "range", dtype=np.float32),
    Column("light_attenuation", "attenuation", 3, np.float32),
    Column("light_cutoff", "cutoff", dtype=np.float32),
    Column("light_softness", "softness", dtype=np.float32),
    Column("light_exponent", "exponent", dtype=np.float32),
    Column("light_ambient", "ambient", 3, np.float32),
    Column("light_diffuse", "diffuse", 3, np.float32),
    Column("light_specular", "specular", 3, np.float32),
)


@declare_pass(needs="bodies", gives="light")
def lights(c: Compilation) -> None:
    """Add all fields of lights that do not need the reference pose."""
    elements = [light for body in c.bodies for light in body.lights]
    c.register("light", elements, [light.name for light in elements])
    frames = [frame_pose(c, element) for element in elements]
    pos = [frame.point(e.get("pos")) for frame, e in zip(frames, elements, strict=True)]
    aim = [
        quat_rotate(frame.quat, _light_direction(c, e))
        for frame, e in zip(frames, elements, strict=True)
    ]
    copy_columns(c, elements, _COLUMNS)
    for e, softness in zip(elements, c.fields["light_softness"], strict=True):
        if not 0 <= softness <= 1:
            c.fault(e, f"softness='{softness:g}' must be from 0 to 1")
    c.fields.update(
        nlight=len(elements),
        light_bodyid=owners(c.bodies, "lights"),
        light_targetbodyid=np.array(
            [c.resolve_attribute("body", e, "target") for e in elements], np.int32
        ),
        light_type=np.array([_light_type(e) for e in elements], np.int32),
        light_texid=np.array(
            [c.resolve_attribute("texture", e, "texture") for e in elements], np.int32
        ),
        light_pos=np.array(pos).reshape(-1, 3),
        light_dir=np.array(aim).reshape(-1, 3),
    )


def _light_direction(c: Compilation, element: SpecElement) -> np.ndarray:
    direction = normalize_direction(c, element, "dir", np.array(element.get("dir"), float))
    return np.array([0.0, 0.0, -1.0]) if direction is None else direction


def _light_type(element: SpecElement) -> int:
    """Return the type of a light; `directional` is an older spelling, and the last layer counts."""
    for layer in reversed(element.layers()):
        if "type" in layer.attrs:
            return _TYPES[layer.attrs["type"]]
        if "directional" in layer.attrs:
            return _TYPES["directional" if layer.attrs["directional"] == "true" else "spot"]
    return _TYPES["spot"]
