"""Save compiled models to files, atomically and bit for bit, and load them without compiling.

    save_model(m, "robot.jxm")
    m = load_model("robot.jxm")

A file holds the leaves and the structure of one Model, batched leaves with their batch axes. It
belongs to the version of jaxsim that wrote it: a version whose Model has other fields rejects it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.errors import AssetError, LocatedProblem, ModelError, SourceLocation
from jaxsim.extend.registry import local_keys
from jaxsim.io.assemble import warn_unsupported
from jaxsim.io.consistency import check_consistency
from jaxsim.io.jxm import is_jxm, pack, unpack
from jaxsim.model.model import Model
from jaxsim.model.option import Option, Statistic
from jaxsim.model.record.record import Record
from jaxsim.model.structure import Structure
from jaxsim.version import __version__


def save_model(m: Model, target: str | os.PathLike[str] | BinaryIO) -> None:
    """Save a compiled model; `load_model` restores it bit for bit, without callbacks.

    Args:
      m: the model; its leaves may have batch axes.
      target: path of the file, `.jxm` by convention, or a binary stream open for writing. An
        existing file is replaced once the new one is complete.

    Raises:
      ValueError: a leaf has a type that cannot be saved.
      OSError: the file cannot be written; an existing file is unchanged.
    """
    data = to_bytes(m)
    if hasattr(target, "write"):
        target.write(data)
        return
    write_whole(Path(target), data)


def to_bytes(m: Model) -> bytes:
    """Return the contents of the file that `save_model` writes."""
    arrays: list[np.ndarray] = []
    header = {
        "jaxsim": __version__,
        "precision": np.dtype(m.qpos0.dtype).name,
        "model": _encode(m.replace(callbacks=None), arrays),  # callbacks belong to the program
    }
    return pack(header, arrays)


def from_bytes(data: bytes, name: str = "<bytes>") -> Model:
    """Return the model from the contents that `to_bytes` or `save_model` wrote.

    A model saved in another precision than JAX's present default is converted: to single precision
    by rounding, which is what compiling it now would give; to double precision exactly, with a
    warning, since its values keep the accuracy they were saved with.

    Args:
      data: contents of the file.
      name: name of the file for messages.

    Raises:
      ModelError: not a saved model, a damaged one, or one that another jaxsim wrote.

    Warns:
      UnsupportedWarning: the model can be read, but not simulated.
    """
    try:
        header, arrays = unpack(data)
        m = _model(header, arrays, name)
    except AssetError as error:
        raise ModelError(LocatedProblem(SourceLocation(name), str(error))) from None
    if m.unsupported:
        warn_unsupported(m.unsupported)
    return m


def is_saved(data: bytes) -> bool:
    """Return whether the contents of a file are those of a saved model, intact or damaged."""
    return is_jxm(data)


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a part of a model as JSON; an array is appended to `arrays` and replaced by its
    index."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | jax.Array):
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, bytes):
        arrays.append(np.frombuffer(value, np.uint8))
        return {"bytes": len(arrays) - 1}
    if isinstance(value, tuple):
        return [_encode(item, arrays) for item in value]
    if isinstance(value, Record):
        return {name: _encode(getattr(value, name), arrays) for name in value.fields}
    if isinstance(value, Structure):
        return {name: _encode(getattr(value, name), arrays) for name in value}
    raise ValueError(f"{value!r} of type {type(value).__name__} in a model cannot be saved")


def _model(header: Any, arrays: list[np.ndarray], name: str) -> Model:
    """Return the model of a header and its arrays; AssetError if this version has no such model."""
    try:
        _check_writer(header)
        wanted = jax.dtypes.canonicalize_dtype(np.float64)
        saved = np.dtype(header["precision"])
        if saved.itemsize < wanted.itemsize:
            message = f"{name}: saved in {saved.name}; its accuracy is not higher in {wanted.name}"
            warnings.warn(f"{message}; save it again from {wanted.name}", stacklevel=4)

        def leaf(value):
            """Return a leaf; floating-point leaves of the model are converted to JAX's default
            precision."""
            if not isinstance(value, np.ndarray):
                return value
            # Convert with numpy: JAX would compile a program for each shape.
            return np.array(value, wanted if value.dtype == saved else value.dtype)

        m = _decode_record(Model, header["model"], arrays, leaf)
    except AssetError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        message = f"it does not describe a model ({error})"
        raise AssetError(f"damaged: {message}; compile the model again and save it") from None
    try:
        check_consistency(m)
    except AssetError as error:
        raise AssetError(f"damaged: {error}; compile the model again and save it") from None
    return jax.device_put(m)


def _check_writer(header: dict[str, Any]) -> None:
    """Reject a model of another jaxsim, whose fields may differ."""
    written, ours = header["jaxsim"], __version__
    remedy = "compile the model again and save it with this one"
    if written.split(".")[:2] != ours.split(".")[:2]:
        raise AssetError(f"saved by jaxsim {written}, this is {ours}; {remedy}")
    model = header["model"]
    if "refusals" not in model["structure"]:
        raise KeyError("refusals")
    for record, given in ((Model, model), (Option, model["opt"]), (Statistic, model["stat"])):
        differ = sorted(record.fields.keys() ^ given.keys())
        if differ:
            names = ", ".join(differ[:5])
            other = f"another build of jaxsim {written}, whose {record.__name__} differs in {names}"
            raise AssetError(f"saved by {other}; {remedy}")


def _decode_record(
    kind: type[Record], given: dict[str, Any], arrays: list[np.ndarray], leaf: Callable
) -> Any:
    """Return the record that `_encode` converted."""
    values: dict[str, Any] = {}
    for name, field in kind.fields.items():
        value = given[name]
        if field.nested is not None and value is not None:
            values[name] = _decode_record(field.nested, value, arrays, leaf)
        elif name == "structure":
            values[name] = _structure({key: _decode(v, arrays) for key, v in value.items()})
        else:
            values[name] = leaf(_decode(value, arrays))
    return kind(**values)


def _structure(tables: dict[str, Any]) -> Structure:
    """Return the structure, with the keys of the plugins and colliders registered in this
    process."""
    try:
        keys = local_keys(tables["plugin_keys"], tables["collider_keys"])
    except ValueError as error:
        raise AssetError(str(error)) from None
    tables["plugin_keys"], tables["collider_keys"] = keys
    return Structure(tables)


def _decode(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, dict) and "bytes" in value:
        return arrays[value["bytes"]].tobytes()
    if isinstance(value, dict):
        return arrays[value["array"]]
    if isinstance(value, list):
        return tuple(_decode(item, arrays) for item in value)
    return value
