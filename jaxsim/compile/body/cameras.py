"""Compile cameras: `cam_*`, their poses, targets and optics."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.body.bodies import owners
from jaxsim.compile.columns import Column, copy_columns, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import pose_of
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.step import declare_pass
from jaxsim.enums import CamLight, Projection
from jaxsim.spec import SpecElement

TRACKING_MODES = {
    "fixed": CamLight.FIXED,
    "track": CamLight.TRACK,
    "trackcom": CamLight.TRACKCOM,
    "targetbody": CamLight.TARGETBODY,
    "targetbodycom": CamLight.TARGETBODYCOM,
}
_PROJECTIONS = {p.name.lower(): p for p in Projection}
_OUTPUTS = {"rgb": 1, "depth": 2, "distance": 4, "normal": 8, "segmentation": 16}
_MAX_FOVY = 180.0  # limit of the field of view of a perspective camera [degrees]

_COLUMNS = (
    Column("cam_mode", "mode", dtype=np.int32, keywords=TRACKING_MODES),
    Column("cam_projection", "projection", dtype=np.int32, keywords=_PROJECTIONS),
    Column("cam_ipd", "ipd"),
    Column("cam_resolution", "resolution", 2, dtype=np.int32),
)


@declare_pass(needs="bodies", gives="cam camera")
def cameras(c: Compilation) -> None:
    """Add all fields of cameras that do not need the reference pose."""
    elements = [camera for body in c.bodies for camera in body.cameras]
    c.register("camera", elements, [camera.name for camera in elements])
    poses = [pose_of(c, element) for element in elements]
    copy_columns(c, elements, _COLUMNS)
    optics = [_camera_intrinsics(c, element) for element in elements]
    f = c.fields
    f.update(
        ncam=len(elements),
        cam_bodyid=owners(c.bodies, "cameras"),
        cam_targetbodyid=np.array(
            [c.resolve_attribute("body", e, "target") for e in elements], np.int32
        ),
        cam_pos=np.array([pose.pos for pose in poses]).reshape(-1, 3),
        cam_quat=np.array([pose.quat for pose in poses]).reshape(-1, 4),
        cam_fovy=np.array([e.get("fovy") for e in elements], float),
        cam_sensorsize=np.array([e.get("sensorsize") for e in elements], np.float32).reshape(-1, 2),
        cam_output=np.array([_output(e) for e in elements], np.int32),
        cam_intrinsic=np.array(optics, np.float32).reshape(-1, 4),
    )
    _fields_of_view(c, elements)
    user_data(c, "cam", elements)


def _output(element: SpecElement) -> int:
    """Return the requested image kinds as bits."""
    return sum(_OUTPUTS[word] for word in set(str(element.get("output")).split()))


def _camera_intrinsics(c: Compilation, element: SpecElement) -> np.ndarray:
    """Return the focal lengths and offset of the principal point [m], (4,).

    Without a sensor, the focal length is the distance of the near plane, in extents of the model.
    """
    sensor = np.array(element.get("sensorsize"), float)
    resolution = np.array(element.get("resolution"), float)
    if np.all(sensor > 0) and not np.all(resolution > 0):
        c.fault(
            element, f"resolution='{mjcf_numbers(resolution)}' must be positive for its sensorsize"
        )
        resolution = np.ones(2)
    lengths = {}
    for attr in ("focal", "principal"):
        pixels = element.get(f"{attr}pixel")
        lengths[attr] = np.array(element.get(attr), float)
        if pixels is not None and np.any(pixels):
            lengths[attr] = np.array(pixels, float) * sensor / resolution
    if not np.all(sensor > 0):
        for attr in ("focal", "focalpixel", "principal", "principalpixel"):
            if element.own(attr) is not None and np.any(element.own(attr)):
                c.fault(element, f"{attr} needs sensorsize, the size of the sensor")
        near = c.spec.setting("visual", "znear", child="map")
        return np.array([near, near, 0.0, 0.0])
    return np.concatenate([lengths["focal"], lengths["principal"]])


def _fields_of_view(c: Compilation, elements: list[SpecElement]) -> None:
    """Set `cam_fovy` [degrees] of cameras with a sensor, from its height and the focal length."""
    f = c.fields
    sensor = np.all(f["cam_sensorsize"] > 0, axis=1)
    height, focal = f["cam_sensorsize"][:, 1], f["cam_intrinsic"][:, 1]
    half = np.arctan2(height, 2 * focal).astype(np.float64)  # in float32, as both arguments
    f["cam_fovy"] = np.where(sensor, np.rad2deg(2 * half), f["cam_fovy"])
    perspective = f["cam_projection"] == Projection.PERSPECTIVE
    for i in np.flatnonzero((f["cam_fovy"] >= _MAX_FOVY) & perspective & ~sensor):
        c.fault(elements[i], f"fovy='{f['cam_fovy'][i]:g}' must be below {_MAX_FOVY:g} degrees")
