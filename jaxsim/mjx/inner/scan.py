"""MJX's loops over the kinematic tree and over lists of objects: `body_tree` and `flat`.

Objects of the same kind for a function (the same depth, the same joint types) are batched into one
call by `vmap`. A letter for each argument selects the rows of an object: b bodies, j joints, q
coordinates of `qpos`, v of `qvel`, u actuators, a activations, s sites of an actuator, c cameras.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import JointType, TrnType
from jaxsim.model.model import Model

_COUNT_OF_LETTER = {
    "b": "nbody",
    "j": "njnt",
    "q": "nq",
    "v": "nv",
    "u": "nu",
    "a": "na",
    "s": "nsite",
}
_COUNT_OF_LETTER |= {"c": "ncam"}
_SINGLE_ROW_LETTERS = {"j": "b", "u": "uaj", "c": "c"}  # letters of which an object has one row
Rows = dict[str, np.ndarray]  # rows of one object, by letter


def body_tree(
    m: Model, f: Callable, in_types: str, out_types: str, *args: Any, reverse: bool = False
) -> Any:
    """Return the results of a function for each body, which takes the result for the parent.

    Args:
      m: the model.
      f: function of the carry and the body's rows of each argument. The carry is the result for the
        parent, None for the world; with `reverse` the sum of the results for the children, None
        where there are none.
      in_types: a letter for each argument.
      out_types: a letter for each result.
      args: arrays that rows are taken of; a numpy array is passed as one, so its rows must be equal
        in a call.
      reverse: from the leaves to the world.

    Returns:
      The results in the order of the model, a tuple if there are several.
    """
    _check(m, args, in_types)
    bodies = [_rows_of_body(m, i) for i in range(m.nbody)]
    depth = np.zeros(m.nbody, int)
    groups: dict[tuple, list[int]] = {}
    for i in range(m.nbody):
        parent = int(m.body_parentid[i]) if i else -1
        depth[i] = depth[parent] + 1 if i else 0
        carried = _kind(m, bodies[parent], out_types) if i else ()
        groups.setdefault((depth[i], carried, _kind(m, bodies[i], in_types)), []).append(i)
    done: list[tuple[np.ndarray, Any]] = []
    for key in sorted(groups, key=lambda key: (key[0], groups[key][0]), reverse=reverse):
        ids = np.array(groups[key])
        carry = (_sum_child_results if reverse else _parent_results)(m, ids, done)
        own = (_take_rows(a, _stack_rows(bodies, ids, t)) for a, t in _pair_rows(args, in_types))
        y = _vmap_rows(f, carry, *own)
        if y is not None:
            done.append((ids, y))
    several = len(out_types) > 1
    results = []
    for k, letter in enumerate(out_types):
        parts = [(_stack_rows(bodies, ids, letter), y[k] if several else y) for ids, y in done]
        results.append(_restore_order(parts, None, letter == "b"))
    return tuple(results) if several else results[0]


def _parent_results(m: Model, ids: np.ndarray, done: list[tuple[np.ndarray, Any]]) -> Any:
    """Return the results for the parents of bodies of one depth."""
    parents = m.body_parentid[ids]
    found = [(i, y) for i, y in done if np.isin(i, parents).any()] if ids[0] else []
    if not found:
        return None
    y = jax.tree.map(lambda *a: jnp.concatenate(a), *(y for _, y in found))
    return _take_rows(y, _index(np.concatenate([i for i, _ in found]), parents))


def _sum_child_results(m: Model, ids: np.ndarray, done: list[tuple[np.ndarray, Any]]) -> Any:
    """Return the sums of the results for the children of bodies; None if none has any."""
    total = None
    for children, y in done:
        parents = m.body_parentid[children]
        mine = np.isin(parents, ids) & (children > 0)
        if mine.any():
            slots = _index(ids, parents[mine])
            part = jax.tree.map(
                lambda a, mine=mine, slots=slots: jax.ops.segment_sum(a[mine], slots, len(ids)), y
            )
            total = part if total is None else jax.tree.map(jnp.add, total, part)
    return total


def flat(
    m: Model, f: Callable, in_types: str, out_types: str, *args: Any, group_by: str = "j"
) -> Any:
    """Return the results of a function for each body, actuator or camera.

    Args:
      m: the model.
      f: function of the object's rows of each argument.
      in_types: a letter for each argument.
      out_types: a letter for each result.
      args: arrays, as for `body_tree`.
      group_by: kind of objects: "j", a body with its joints; "u", an actuator; "c", a camera.

    Returns:
      The results in the order of the model, a tuple if the function returns several.
    """
    _check(m, args, in_types)
    if group_by not in _ROW_FUNCTIONS:
        raise ValueError(f"group_by: expected one of {', '.join(_ROW_FUNCTIONS)}, got {group_by!r}")
    count, rows_of, kind_of = _ROW_FUNCTIONS[group_by]
    objects = [rows_of(m, i) for i in range(getattr(m, count))]
    groups: dict[tuple, list[int]] = {}
    for i, rows in enumerate(objects):
        groups.setdefault(kind_of(m, rows, in_types + out_types), []).append(i)
    done, several = [], False
    for key in sorted(groups):
        ids = np.array(groups[key])
        if all(_stack_rows(objects, ids, t).size == 0 for t in out_types):
            continue  # the result has no rows of these objects
        own = (_take_rows(a, _stack_rows(objects, ids, t)) for a, t in _pair_rows(args, in_types))
        y = _vmap_rows(f, *own)
        several = isinstance(y, tuple | list)
        done.append((ids, y if several else (y,)))
    kept = np.sort(np.concatenate([ids for ids, _ in done]))
    results = []
    for k, letter in enumerate(out_types):
        order = np.concatenate([objects[i][letter].ravel() for i in kept])
        parts = [(_stack_rows(objects, ids, letter), y[k]) for ids, y in done]
        results.append(
            _restore_order(parts, order[order != -1], letter in _SINGLE_ROW_LETTERS[group_by])
        )
    return tuple(results) if several else results[0]


def _rows_of_body(m: Model, i: int) -> Rows:
    joints = np.flatnonzero(m.jnt_bodyid == i)
    first = m.jnt_qposadr[joints]
    width = [JointType(t).nq for t in m.jnt_type[joints]]
    q = [np.arange(a, a + n) for a, n in zip(first, width, strict=True)]
    return {
        "b": np.array(i),
        "j": joints,
        "v": np.flatnonzero(m.dof_bodyid == i),
        "q": np.concatenate([*q, np.zeros(0, int)]).astype(int),
    }


def _rows_of_actuator(m: Model, i: int) -> Rows:
    kind, target = TrnType(int(m.actuator_trntype[i])), m.actuator_trnid[i]
    of_joint = kind in (TrnType.JOINT, TrnType.JOINTINPARENT)
    joint = int(target[0]) if of_joint else -1
    none = np.array([-1])
    q = none
    if of_joint:
        width = JointType(int(m.jnt_type[joint])).nq
        q = m.jnt_qposadr[joint] + np.arange(width)
    return {
        "u": np.array(i),
        "a": np.array(m.actuator_actadr[i]),
        "j": np.array(joint),
        "s": np.array(target if kind == TrnType.SITE else (-1, -1)),
        "v": np.flatnonzero(m.dof_jntid == joint) if of_joint else none,
        "q": q,
    }


def _rows_of_camera(m: Model, i: int) -> Rows:
    del m
    return {"c": np.array(i)}


def _kind(m: Model, rows: Rows, letters: str) -> tuple:
    """Return the key of the objects that share one call: joint types, numbers of coordinates."""
    found: list = []
    for letter in letters:
        if letter == "j":
            found.append(tuple(map(int, m.jnt_type[rows["j"]])))
        elif letter in "vq":
            found.append((len(rows[letter]),))
    return tuple(found)


def _kind_of_body(m: Model, rows: Rows, letters: str) -> tuple:
    return tuple(map(int, m.jnt_type[rows["j"]])) if set(letters) & set("jqv") else ()


def _kind_of_actuator(m: Model, rows: Rows, letters: str) -> tuple:
    del letters
    i, joint = rows["u"], int(rows["j"])
    types = (m.actuator_biastype, m.actuator_gaintype, m.actuator_dyntype, m.actuator_trntype)
    joint_type = int(m.jnt_type[joint]) if joint >= 0 else -1
    return (*(int(t[i]) for t in types), joint_type, bool(m.actuator_trnid[i, 1] == -1))


def _kind_of_camera(m: Model, rows: Rows, letters: str) -> tuple:
    del letters
    i = rows["c"]
    return int(m.cam_mode[i]), bool(m.cam_targetbodyid[i] >= 0)


_ROW_FUNCTIONS: dict[str, tuple[str, Callable, Callable]] = {
    "j": ("nbody", _rows_of_body, _kind_of_body),
    "u": ("nu", _rows_of_actuator, _kind_of_actuator),
    "c": ("ncam", _rows_of_camera, _kind_of_camera),
}


def _check(m: Model, args: Sequence, letters: str) -> None:
    """Raise IndexError if an argument does not have the rows of its letter."""
    if m.nv == 0:
        raise ValueError("scan: the model has no degrees of freedom")
    for k, (arg, letter) in enumerate(_pair_rows(args, letters)):
        if letter not in _COUNT_OF_LETTER:
            raise ValueError(
                f"in_types: expected letters of {''.join(_COUNT_OF_LETTER)}, got {letter!r}"
            )
        expected = getattr(m, _COUNT_OF_LETTER[letter])
        if len(arg) != expected:
            raise IndexError(
                f"argument {k}, of type {letter!r}: expected {expected} rows, got {len(arg)}"
            )


def _pair_rows(args: Sequence, letters: str) -> Iterable[tuple[Any, str]]:
    return zip(args, letters, strict=True)


def _stack_rows(objects: list[Rows], ids: np.ndarray, letter: str) -> np.ndarray:
    """Return the rows of several objects of one kind, (n,) or (n, width)."""
    return np.stack([objects[i][letter] for i in ids])


def _take_rows(values: Any, rows: np.ndarray) -> Any:
    """Return rows of an array, as a numpy array if it is one."""
    return jax.tree.map(lambda a: a[rows], values)


def _index(among: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the index of each wanted number among others."""
    order = np.argsort(among, kind="stable")
    return order[np.searchsorted(among[order], wanted)]


def _vmap_rows(f: Callable, *args: Any) -> Any:
    """Apply `vmap` of a function; numpy arrays, whose rows are equal, are not batched."""
    for a in args:
        if isinstance(a, np.ndarray) and (a != a[:1]).any():
            raise RuntimeError(f"rows of a numpy argument differ in one call: {a}")
    constant = [a[0] if isinstance(a, np.ndarray) else None for a in args]
    traced = [None if isinstance(a, np.ndarray) else a for a in args]

    def of_one(*values: Any) -> Any:
        return f(*(v if c is None else c for v, c in zip(values, constant, strict=True)))

    if all(a is None for a in traced):
        count = next(len(a) for a in args if a is not None)
        return jax.tree.map(lambda y: jnp.broadcast_to(y, (count, *jnp.shape(y))), of_one(*traced))
    return jax.vmap(of_one, in_axes=tuple(None if a is None else 0 for a in traced))(*traced)


def _restore_order(
    parts: list[tuple[np.ndarray, Any]], order: np.ndarray | None, single: bool
) -> Any:
    """Return the results of all calls in the order of the model.

    Args:
      parts: the rows of each call, and its results.
      order: the wanted rows; None: all, ascending.
      single: whether a result is of one row; else its first axis numbers the object's rows.
    """
    rows = np.concatenate([r.ravel() for r, _ in parts])
    wanted = np.sort(rows) if order is None else order
    whole = [y if single else jax.tree.map(_flatten, y) for _, y in parts]
    y = jax.tree.map(lambda *a: jnp.concatenate(a), *whole)
    if (have := jax.tree.leaves(y)[0].shape[0]) != len(rows):
        raise IndexError(f"a result has {have} rows, its type {len(rows)}")
    return _take_rows(y, _index(rows, wanted))


def _flatten(a: jax.Array) -> jax.Array:
    return a.reshape(-1, *a.shape[2:])
