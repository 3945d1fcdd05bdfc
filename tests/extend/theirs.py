"""A plugin registered in MuJoCo from Python, to hold ours against where it has a state.

MuJoCo calls plugins by pointers to C functions. These know only the addresses of a model and its
data; the objects that Python has of both are found by them.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

import mujoco

POINTER = ctypes.c_void_p
ACTUATOR, SENSOR, PASSIVE = 1, 2, 4  # mjtPluginCapabilityBit

_NUMBER_OF = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int)
_READINGS = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int, ctypes.c_int)
_INIT = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_int)
_RESET = ctypes.CFUNCTYPE(None, POINTER, ctypes.POINTER(ctypes.c_double), POINTER, ctypes.c_int)
_COMPUTE = ctypes.CFUNCTYPE(None, POINTER, POINTER, ctypes.c_int, ctypes.c_int)
_CHANGE = ctypes.CFUNCTYPE(None, POINTER, POINTER, ctypes.c_int)


class _Plugin(ctypes.Structure):
    """`mjpPlugin` of mjplugin.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nattribute", ctypes.c_int),
        ("attributes", ctypes.POINTER(ctypes.c_char_p)),
        ("capabilityflags", ctypes.c_int),
        ("needstage", ctypes.c_int),
        ("nstate", _NUMBER_OF),
        ("nsensordata", _READINGS),
        ("init", _INIT),
        ("destroy", POINTER),
        ("copy", POINTER),
        ("reset", _RESET),
        ("compute", _COMPUTE),
        ("advance", _CHANGE),
        ("visualize", POINTER),
        ("act_dot", _CHANGE),
        ("sdf", POINTER * 5),
    )


_kept = []  # what MuJoCo points to must live as long as it does


def register(
    name: str,
    stage: int,
    states: int,
    readings: int,
    reset: Callable,
    compute: Callable,
    advance: Callable,
    act_dot: Callable,
) -> Callable:
    """Registers a plugin that can serve actuators, sensors and bodies, without settings.

    Args:
      name: its name.
      stage: when its sensors are computed.
      states: size of the state of an instance.
      readings: of a sensor.
      reset: `(state, instance)` writes the state at the start.
      compute: `(m, d, instance, capability)`; advance, act_dot: `(m, d, instance)`.

    Returns:
      `(m, d)` to be called before MuJoCo works with a model and its data.
    """
    now: dict = {}

    def known(function: Callable) -> Callable:
        def call(m: int, d: int, *more: int) -> None:
            if now and m == now["m"]._address:  # else it is compiling a model
                function(now["m"], now["d"], *more)

        return call

    plugin = _Plugin(
        name=name.encode(),
        capabilityflags=ACTUATOR | SENSOR | PASSIVE,
        needstage=stage,
        nstate=_NUMBER_OF(lambda m, i: states),
        nsensordata=_READINGS(lambda m, i, sensor: readings),
        init=_INIT(lambda m, d, i: 0),
        reset=_RESET(lambda m, state, data, i: reset(state, i)),
        compute=_COMPUTE(known(compute)),
        advance=_CHANGE(known(advance)),
        act_dot=_CHANGE(known(act_dot)),
    )
    _kept.append(plugin)
    folder = Path(mujoco.__file__).parent
    library = ctypes.CDLL(str(next(folder.glob("libmujoco.*"))))
    assert library.mjp_registerPlugin(ctypes.byref(plugin)) >= 0
    return lambda m, d: now.update(m=m, d=d)
