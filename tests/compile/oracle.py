"""Compiles a model here and with MuJoCo, and compares everything that we say of it."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

from jaxsim.compile import Compiled, compile_file, compile_string
from jaxsim.errors import ModelError

# Numbers go through the same formulas in double precision; what differs is the order of operations.
RTOL, ATOL = 1e-9, 1e-11

# Not compared: MuJoCo's Python shows texts as bytes, these statistics are for viewers alone, and
# MuJoCo does not keep which of them were given.
ELSEWHERE = ("body_matter", "text_data", "stat_given", "center", "extent", "meansize", "meanmass")

# Numbers that MuJoCo holds in single precision, or makes from such.
SINGLE = 1e-6
FROM_SINGLE = ("cam_fovy",)

_NAMES = {
    "body": "nbody",
    "joint": "njnt",
    "geom": "ngeom",
    "site": "nsite",
    "camera": "ncam",
    "light": "nlight",
    "pair": "npair",
    "exclude": "nexclude",
    "equality": "neq",
    "tendon": "ntendon",
    "actuator": "nactuator",
    "sensor": "nsensor",
    "numeric": "nnumeric",
    "text": "ntext",
    "tuple": "ntuple",
    "key": "nkey",
    "plugin": "nplugin",
    "mesh": "nmesh",
    "hfield": "nhfield",
    "texture": "ntex",
    "material": "nmat",
    "skin": "nskin",
}


def assert_agrees(
    text: str, *, skip: tuple[str, ...] = (), files: dict[str, bytes] | None = None
) -> Compiled:
    """Every field, option and name of a model in text form equals MuJoCo's; returns ours."""
    ours = compile_string(text, assets=files)
    return _compare(ours, mujoco.MjModel.from_xml_string(text, assets=files), skip)


def assert_file_agrees(path: str, *, skip: tuple[str, ...] = ()) -> Compiled:
    """Check that a model file compiles as MuJoCo compiles it."""
    return _compare(compile_file(path), mujoco.MjModel.from_xml_path(path), skip)


def refusal(text: str, files: dict[str, bytes] | None = None) -> str | None:
    """MuJoCo's message for a model it refuses, or None."""
    try:
        mujoco.MjModel.from_xml_string(text, assets=files)
    except ValueError as error:
        return str(error)
    return None


def assert_refused(text: str, *words: str, files: dict[str, bytes] | None = None) -> None:
    """MuJoCo refuses a model in text form, and so do we, with the line and these words."""
    assert refusal(text, files) is not None
    with pytest.raises(ModelError) as caught:
        compile_string(text, assets=files)
    message = str(caught.value)
    assert re.match(r"<string>:\d+: <", message), message
    for word in words:
        assert word in message


def _compare(ours: Compiled, theirs: mujoco.MjModel, skip: tuple[str, ...]) -> Compiled:
    wrong = []
    for name, value in ours.fields.items():
        if name not in skip + ELSEWHERE:
            wrong += _difference(name, value, getattr(theirs, name))
    for table, group in ((ours.opt, theirs.opt), (ours.stat, theirs.stat)):
        for name, value in table.items():
            if name not in skip + ELSEWHERE:
                wrong += _difference(name, value, getattr(group, name))
    for kind, count in _NAMES.items():
        obj = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        number = getattr(theirs, count)
        want = tuple(mujoco.mj_id2name(theirs, obj, i) or "" for i in range(number))
        if ours.names[kind] != want:
            wrong.append(f"names of {kind}: {ours.names[kind]} but MuJoCo has {want}")
    assert not wrong, "\n".join(wrong)
    return ours


def _difference(name: str, ours, theirs) -> list[str]:
    """Return the difference of one field: nothing, or one line."""
    if isinstance(ours, bytes):
        return [] if ours == theirs else [f"{name}: {ours} but MuJoCo has {theirs}"]
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        return [f"{name}: shape {a.shape} but MuJoCo has {b.shape}"]
    if isinstance(ours, np.ndarray) and a.dtype != b.dtype:
        return [f"{name}: {a.dtype} but MuJoCo has {b.dtype}"]
    rtol = SINGLE if b.dtype == np.float32 or name in FROM_SINGLE else RTOL
    if name.endswith("quat"):  # a rotation has two quaternions
        a = np.where(np.sum(a * b, axis=-1, keepdims=True) < 0, -a, a)
    scale = np.abs(b).max(initial=0.0)
    if np.all(np.isclose(a, b, rtol=rtol, atol=ATOL + rtol * scale, equal_nan=True)):
        return []
    return [f"{name}:\n  ours   {a.tolist()}\n  MuJoCo {b.tolist()}"]
