"""MuJoCo's own distance functions, which its plugins have for the compiler alone."""

from __future__ import annotations

import ctypes
from pathlib import Path

import mujoco
import numpy as np

_DOUBLES = ctypes.POINTER(ctypes.c_double)
_TEXTS = ctypes.POINTER(ctypes.c_char_p)
_SKIPPED = 12  # callbacks before those of the compiler


class _Plugin(ctypes.Structure):
    """`mjpPlugin` of mjplugin.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nattribute", ctypes.c_int),
        ("attributes", _TEXTS),
        ("capabilityflags", ctypes.c_int),
        ("needstage", ctypes.c_int),
        ("callbacks", ctypes.c_void_p * _SKIPPED),
        ("sdf_staticdistance", ctypes.CFUNCTYPE(ctypes.c_double, _DOUBLES, _DOUBLES)),
        ("sdf_attribute", ctypes.CFUNCTYPE(None, _DOUBLES, _TEXTS, _TEXTS)),
        ("sdf_aabb", ctypes.CFUNCTYPE(None, _DOUBLES, _DOUBLES)),
    )


def _plugin(name: str) -> _Plugin:
    folder = Path(mujoco.__file__).parent
    library = ctypes.CDLL(str(next(folder.glob("libmujoco.*"))))
    library.mjp_getPlugin.restype = ctypes.POINTER(_Plugin)
    return library.mjp_getPlugin(name.encode(), None).contents


def defaults(name: str) -> dict[str, float]:
    """The settings of a plugin, in its order."""
    plugin = _plugin(name)
    values = np.zeros(plugin.nattribute)
    blank = (ctypes.c_char_p * plugin.nattribute)(*[b""] * plugin.nattribute)
    plugin.sdf_attribute(_pointer(values), plugin.attributes, blank)
    return {plugin.attributes[i].decode(): value for i, value in enumerate(values.tolist())}


def half_box(name: str, settings: list[float]) -> np.ndarray:
    """Half the sides of the box of a shape, (3,)."""
    box = np.zeros(6)
    _plugin(name).sdf_aabb(_pointer(box), _pointer(np.array(settings)))
    assert not box[:3].any()
    return box[3:]


def distance(name: str, point: np.ndarray, settings: list[float]) -> np.ndarray:
    """Signed distances of points (n, 3)."""
    function, values = _plugin(name).sdf_staticdistance, np.array(settings)
    return np.array([function(_pointer(row), _pointer(values)) for row in point])


def _pointer(array: np.ndarray):
    return array.ctypes.data_as(_DOUBLES)
