"""Access fields of named objects: `d.bind(m, element).xpos`, as MuJoCo binds elements of a spec."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np

from jaxsim.model.indices import (
    act_indices,
    ctrl_indices,
    dof_indices,
    out_indices,
    qpos_indices,
    sensor_indices,
)
from jaxsim.model.record.record import Record
from jaxsim.model.structure import Structure
from jaxsim.spelling import remedy

R = TypeVar("R", bound=Record)


def _mocap_slots(s: Structure, ids: np.ndarray) -> np.ndarray:
    at: np.ndarray = s.body_mocapid[ids]
    if (at < 0).any():
        raise AttributeError("bind: some of these bodies are not mocap bodies")
    return at


class ObjectKind(NamedTuple):
    """Naming and indexing of the fields of one kind of object.

    Attributes:
      prefixes: prefixes of the field names, "" for fields without one.
      index_functions: index functions by the size of a field's first axis; each maps ids to
        indices.
    """

    prefixes: tuple[str, ...]
    index_functions: Mapping[str, Callable[[Structure, np.ndarray], np.ndarray]]


def _own_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    return ids


_OBJECT_KINDS = {
    "body": ObjectKind(("", "body_"), {"nbody": _own_indices, "nmocap": _mocap_slots}),
    "joint": ObjectKind(
        ("", "jnt_", "dof_"), {"njnt": _own_indices, "nq": qpos_indices, "nv": dof_indices}
    ),
    "geom": ObjectKind(("geom_",), {"ngeom": _own_indices}),
    "site": ObjectKind(("site_",), {"nsite": _own_indices}),
    "camera": ObjectKind(("cam_",), {"ncam": _own_indices}),
    "light": ObjectKind(("light_",), {"nlight": _own_indices}),
    "mesh": ObjectKind(("mesh_",), {"nmesh": _own_indices}),
    "material": ObjectKind(("mat_",), {"nmat": _own_indices}),
    "pair": ObjectKind(("pair_",), {"npair": _own_indices}),
    "equality": ObjectKind(("eq_",), {"neq": _own_indices}),
    "tendon": ObjectKind(("ten_", "tendon_"), {"ntendon": _own_indices}),
    "actuator": ObjectKind(
        ("", "actuator_"),
        {"nactuator": _own_indices, "nu": ctrl_indices, "na": act_indices, "nout": out_indices},
    ),
    "sensor": ObjectKind(("", "sensor_"), {"nsensor": _own_indices, "nsensordata": sensor_indices}),
    "key": ObjectKind(("key_",), {"nkey": _own_indices}),
}  # fmt: skip


class Bound(Generic[R]):
    """View of the fields of some objects of one kind.

    For a single object, attributes have no object axis, and no axis of length 1 for a single value.
    For a list of objects the first axis follows the list. Leading batch axes are kept.

    Example:
      >>> spec = jaxsim.Spec.from_string('<mujoco><worldbody><body name="arm"><joint name="j"/>'
      ...     '<geom size=".1"/></body></worldbody></mujoco>')
      >>> m = jaxsim.load_model(spec)
      >>> d = jaxsim.make_data(m).bind(m, spec["joint", "j"]).set("qpos", 0.5)
      >>> d.bind(m, spec["joint", "j"]).qpos
      Array(0.5, dtype=float64)
      >>> m.bind("body:arm").mass.shape
      ()
    """

    def __init__(self, structure: Structure, record: R, elements: Any):
        alone = isinstance(elements, str) or not isinstance(elements, Iterable)
        given = [elements] if alone else list(elements)
        kinds = {_kind(e) for e in given}
        if len(kinds) != 1 or not kinds <= _OBJECT_KINDS.keys():
            raise ValueError(
                f"bind: expected objects of one kind ({', '.join(_OBJECT_KINDS)}), got "
                f"{sorted(kinds)}"
            )
        self._structure, self._record, self._alone = structure, record, alone
        (self._kind,) = kinds
        self._ids = np.array([_id(structure, self._kind, e) for e in given], np.int64)

    @property
    def id(self) -> Any:
        """Return the id of the object among those of its kind; for a list of objects, int (n,)."""
        return int(self._ids[0]) if self._alone else self._ids

    def __getattr__(self, name: str) -> Any:
        """Return a field of the objects, named with or without its prefix.

        Raises:
          AttributeError: the record has no such field, or does not carry it.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        field, axis, at = self._find(name)
        values = jnp.take(jnp.asarray(getattr(self._record, field)), at, axis=axis)
        return jnp.squeeze(values, axis) if self._alone and len(at) == 1 else values

    def set(self, name: str, value: Any) -> R:
        """Return the record with a field of these objects replaced.

        Raises:
          AttributeError: the record has no such field, or does not carry it.
          ValueError: the shape of the value is wrong, or the field is static.
        """
        field, axis, at = self._find(name)
        if field not in self._record.fields:
            raise ValueError(f"{field}: is static, it decides the shape of the program")
        old = getattr(self._record, field)
        value = jnp.asarray(value, old.dtype)
        if self._alone and len(at) == 1 and value.ndim == old.ndim - 1:
            value = jnp.expand_dims(value, axis)
        shape = (*old.shape[:axis], len(at), *old.shape[axis + 1 :])
        if any(n not in (1, k) for n, k in zip(value.shape[::-1], shape[::-1], strict=False)):
            raise ValueError(f"{field} of these objects: expected {shape}, got {value.shape}")
        new = old.at[(slice(None),) * axis + (at,)].set(value)
        return self._record.replace(**{field: new})

    def _find(self, name: str) -> tuple[str, int, np.ndarray]:
        """Return the full name of a field, its object axis, and the indices of the objects on
        it."""
        kind, s = _OBJECT_KINDS[self._kind], self._structure
        for full in (prefix + name for prefix in kind.prefixes):
            declared = self._record.fields.get(full)
            size = str(declared.shape[0]) if declared is not None and declared.shape else ""
            if declared is not None and size in kind.index_functions:
                value = getattr(self._record, full)
                if value is None:
                    raise AttributeError(
                        f"{full} is not carried; keep it: make_data(m, keep=[{full!r}])"
                    )
                at = kind.index_functions[size](s, self._ids)
                return full, value.ndim - len(declared.dims(s.sizes)), at
        for full in (prefix + name for prefix in kind.prefixes if prefix):
            if isinstance(getattr(self._record, full, None), np.ndarray):
                index_function = dof_indices if full.startswith("dof_") else _own_indices
                return full, 0, index_function(s, self._ids)
        raise AttributeError(
            f"{self._kind}: {type(self._record).__name__} has no field {name!r} of it"
        )


def _kind(element: Any) -> str:
    """Return the kind of an element of a `Spec`, of a `mujoco.MjSpec`, or of "kind:name"."""
    if isinstance(element, str):
        return element.partition(":")[0]
    own = getattr(element, "defined_kind", None)
    return own or type(element).__name__.removeprefix("Mjs").lower()


def _id(s: Structure, kind: str, element: Any) -> int:
    """Return the id of an object; for an unnamed one it is read from MuJoCo's compiled spec."""
    name = element.partition(":")[2] if isinstance(element, str) else element.name
    names = dict(s.names)[kind]
    if name and name in names:
        return names.index(name)
    number = getattr(element, "id", -1)
    if name or not isinstance(number, int) or number < 0:
        what = f"no {kind} is named {name!r}" if name else f"bind: this {kind} has no name"
        raise ValueError(f"{what}{remedy(name or '', [n for n in names if n])}")
    return number
