"""Quantities that a cost of an optimization file reads, given as text.

    ctrl, ctrl:ACTUATOR          controls
    qpos:JOINT, qvel:JOINT       position and velocity of a joint; without JOINT those of all
    angle:JOINT                  error of a hinge modulo 2 pi: (sin, 1 - cos) of the error
    sensor:NAME                  data of a sensor
    body:NAME.xpos               also .xquat, .com (of its subtree); site:NAME.xpos, geom:NAME.xpos
    body:NAME.xpos.z             one coordinate
    python:FILE.py:FUNCTION      custom function (m, d) -> vector; also python:MODULE:FUNCTION

The error of a position with quaternions is in tangent coordinates, as in MuJoCo: the velocity that
leads from the target to the position in one second.
"""

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.control.problem import Residual
from jaxsim.enums import JointType
from jaxsim.math import Quat
from jaxsim.model.data import Data
from jaxsim.model.lookup import ctrl_index, dof_index, qpos_index, sensor_index
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.spelling import remedy

_ErrorFunction = Callable[[jax.Array, jax.Array], jax.Array]  # (value, target) -> residual


class Quantity(NamedTuple):
    """A quantity that a cost reads.

    Attributes:
      read: (m, d) -> vector (n,).
      keep: fields of Data that it needs to be kept; None: unknown.
      target_error: (value (n,), target (n,)) -> residual.
    """

    read: Residual
    keep: tuple[str, ...] | None
    target_error: _ErrorFunction


# pose fields of objects
FRAME_FIELDS = {
    "body": {"xpos": "xpos", "xquat": "xquat", "com": "subtree_com"},
    "site": {"xpos": "site_xpos"},
    "geom": {"xpos": "geom_xpos"},
}
_AXIS_LETTERS = "xyz"


def quantity(m: Model, text: str, folder: Path) -> Quantity:
    """Return the quantity named by a text.

    Args:
      m: the model.
      text: see the docstring of this module.
      folder: folder of the optimization file, in which `python:FILE.py` is found.

    Raises:
      ValueError: there is no such quantity; suggests the nearest name.
    """
    kind, _, name = text.partition(":")
    if kind not in QUANTITY_KINDS:
        known = "; there are: " + ", ".join(QUANTITY_KINDS)
        raise ValueError(
            f"{text!r}: no quantity is called {kind!r}{remedy(kind, QUANTITY_KINDS, known)}"
        )
    return QUANTITY_KINDS[kind](m, kind, name, folder)


def _difference(value: jax.Array, target: jax.Array) -> jax.Array:
    return value - jnp.asarray(target, value.dtype)


def _state(m: Model, kind: str, name: str, _: Path) -> Quantity:
    """Return the controls of an actuator, the velocities of a joint, or those of all."""
    find = {"ctrl": ctrl_index, "qvel": dof_index}[kind]
    indices = find(m, name) if name else slice(None)
    return Quantity(lambda m, d: getattr(d, kind)[indices], (), _difference)


def _sensor(m: Model, kind: str, name: str, _: Path) -> Quantity:
    """Return the data of a sensor."""
    indices = sensor_index(m, name)
    return Quantity(lambda m, d: d.sensordata[indices], ("sensordata",), _difference)


def _position(m: Model, kind: str, name: str, _: Path) -> Quantity:
    """Return the positions of one joint or all, with the error in tangent coordinates."""
    s = m.structure
    joints = [name2id(m, "joint", name)] if name else range(m.njnt)
    indices = qpos_index(m, name) if name else np.arange(m.nq)
    types = [JointType(s.jnt_type[j]) for j in joints]

    def target_error(value: jax.Array, target: jax.Array) -> jax.Array:
        parts, at = [], 0
        for joint in types:
            size = _QPOS_WIDTHS.get(joint, 1)
            parts.append(_joint_error(joint, value[at : at + size], target[at : at + size]))
            at += size
        return jnp.concatenate(parts)

    return Quantity(lambda m, d: d.qpos[indices], (), target_error)


_QPOS_WIDTHS = {JointType.FREE: 7, JointType.BALL: 4}


def _joint_error(joint: JointType, value: jax.Array, target: jax.Array) -> jax.Array:
    if joint == JointType.FREE:
        return jnp.concatenate(
            [_difference(value[:3], target[:3]), _rotation_from_target(value[3:], target[3:])]
        )
    return (
        _rotation_from_target(value, target)
        if joint == JointType.BALL
        else _difference(value, target)
    )


def _rotation_from_target(value: jax.Array, target: jax.Array) -> jax.Array:
    """Return the rotation vector from the target, in its frame, (3,) [rad].

    A zero quaternion is no target: the rotation is from the identity.
    """
    target = jnp.asarray(target, value.dtype)
    square = jnp.sum(target * target)
    given = square > 0
    identity = jnp.zeros_like(target).at[0].set(1)
    unit = jnp.where(given, target / jnp.sqrt(jnp.where(given, square, 1)), identity)
    goal = Quat(*unit)
    return jnp.stack((goal.conj * Quat(*value)).rotation_vector().parts)


def _angle_quantity(m: Model, kind: str, name: str, _: Path) -> Quantity:
    """Return the angle of a hinge; the error is zero at the target modulo 2 pi."""
    if m.structure.jnt_type[name2id(m, "joint", name)] != JointType.HINGE:
        raise ValueError(f"angle: joint {name!r} is no hinge; use qpos:{name}")
    place = qpos_index(m, name)

    def target_error(value: jax.Array, target: jax.Array) -> jax.Array:
        left = _difference(value, target)
        return jnp.concatenate([jnp.sin(left), 1 - jnp.cos(left)])

    return Quantity(lambda m, d: d.qpos[place], (), target_error)


def _frame_quantity(m: Model, kind: str, name: str, _: Path) -> Quantity:
    """Return a field of a body, site or geom; the object's name may contain dots."""
    known = FRAME_FIELDS[kind]
    coordinate = slice(None)
    if name[-2:-1] == "." and name[-1] in _AXIS_LETTERS:
        i = _AXIS_LETTERS.index(name[-1])
        name, coordinate = name[:-2], slice(i, i + 1)
    name, dot, last = name.rpartition(".")
    if not dot or last not in known:
        shown = ", ".join(f"{kind}:NAME.{field}" for field in known)
        raise ValueError(f"{kind}: expected one of {shown}{remedy(last, known)}")
    field, row = known[last], name2id(m, kind, name)
    if field == "xquat":
        return Quantity(lambda m, d: d.xquat[row], (field,), _rotation_from_target)
    return Quantity(lambda m, d: getattr(d, field)[row, coordinate], (field,), _difference)


def _python(m: Model, kind: str, name: str, folder: Path) -> Quantity:
    """Return what a function (m, d) of a file or module computes, as a vector."""
    where, _, function = name.rpartition(":")
    module = _module_of_file(folder / where) if where.endswith(".py") else _module_named(where)
    found = getattr(module, function, None)
    if not callable(found):
        raise ValueError(f"python: {where} has no function {function!r}; define it there")

    def read(m: Model, d: Data) -> jax.Array:
        return jnp.atleast_1d(jnp.asarray(found(m, d))).astype(m.qpos0.dtype).reshape(-1)

    return Quantity(read, None, _difference)


def _module_named(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"python: {error}; write python:MODULE:FUNCTION") from None


def _module_of_file(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(
            f"python: there is no file {path}; paths are relative to the optimization file"
        )
    spec = importlib.util.spec_from_file_location(f"user_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"python: {path} cannot be imported; name a file of Python code")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


QUANTITY_KINDS: dict[str, Callable[[Model, str, str, Path], Quantity]] = {
    "ctrl": _state,
    "qpos": _position,
    "qvel": _state,
    "angle": _angle_quantity,
    "sensor": _sensor,
    "body": _frame_quantity,
    "site": _frame_quantity,
    "geom": _frame_quantity,
    "python": _python,
}
