"""A changed Spec compiled again while its state goes on: MuJoCo's `mj_recompile`.

Objects are found again by the element of the spec that they were written as, whatever their names
and numbers are now. What is new begins as `make_data` has it, what is gone takes its state along,
and what has another size than before, such as a joint of another type, starts again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.compile.identity import IDENTITY_KINDS, Identity, identities_by_name
from jaxsim.io.load import load_model
from jaxsim.model.allocate import kept_names
from jaxsim.model.data import JUST_AWAKE, Data
from jaxsim.model.indices import act_indices, ctrl_indices, dof_indices, qpos_indices
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.public.arguments import check_model
from jaxsim.physics.public.make_data import make_data
from jaxsim.spec import Spec

Blocks = list[np.ndarray]  # slots of each object in an array; empty where it has none


def recompile(spec: Spec, m: Model, d: Data, **options: Any) -> tuple[Model, Data]:
    """Compile a changed Spec, with the state of the objects that are still there.

    Args:
      spec: the model that `m` was loaded from by `load_model(spec)`, changed since. Another spec,
        such as one read from the file of `m`, is matched by names.
      m: the model before the change. Numbers that were changed in it, but not in the spec, are
        those of the spec again.
      d: a world of `m`, or many with leading axes.
      options: of `load_model`, such as `contacts`; without `smooth` and `straight_through`
        those of `m` stay.

    Returns:
      The new model, and a Data with the fields that `d` keeps. Its integration state (MuJoCo's
      `mjSTATE_INTEGRATION`) and which trees sleep are those of `d`; results are not computed yet.

    Raises:
      ModelError: the spec cannot be compiled.
      ValueError: `m` is not the model that was loaded from the spec, and has objects without names.

    Example:
      >>> spec = jaxsim.Spec.from_string('<mujoco><worldbody><body name="arm"><joint name="j"/>'
      ...     '<geom size=".1"/></body></worldbody></mujoco>')
      >>> m = jaxsim.load_model(spec)
      >>> d = jaxsim.make_data(m).replace(qpos=jnp.array([0.5]))
      >>> hand = spec["body", "arm"].add("body", pos=[0, 0, 1])
      >>> _ = hand.add("joint"), hand.add("geom", size=0.1)
      >>> m, d = jaxsim.recompile(spec, m, d)
      >>> d.qpos.tolist()
      [0.5, 0.0]
    """
    check_model("recompile", m)
    if m.smooth is not None:
        options.setdefault("smooth", float(m.smooth))
        options.setdefault("straight_through", m.straight_through)
    before = _old_identities(spec, m)
    new = load_model(spec, **options)
    after = spec.compiled
    assert after is not None, "a spec that was loaded knows its objects"
    if isinstance(before, str):  # by names alone
        before, after = (
            {k: identities_by_name(_names(x, k)) for k in IDENTITY_KINDS} for x in (m, new)
        )
    start = make_data(new, kept_names(d))
    batch = np.shape(d.time)
    state = {n: np.array(getattr(d, n)) for n in _WHOLE_FIELDS if getattr(start, n) is not None}
    for name, part in _PARTS.items():
        old, fresh = getattr(d, name), getattr(start, name)
        if old is not None and fresh is not None:
            slots = _pairs(before, after, part, m.structure, new.structure)
            state[name] = _transfer_slots(np.asarray(old), fresh, batch, *slots)
    n = min(m.nuserdata, new.nuserdata)
    state["userdata"] = _repeat_for_batch(start.userdata, batch)
    state["userdata"][..., :n] = np.asarray(d.userdata)[..., :n]
    if d.tree_asleep is not None and start.tree_asleep is not None:
        asleep = np.asarray(d.tree_asleep).reshape(-1, m.structure.ntree)
        rows = _asleep(before, after, m.structure, new.structure, asleep, start.tree_asleep)
        state["tree_asleep"] = rows.reshape(*batch, new.structure.ntree)
    worlds = jax.tree.map(lambda a: jnp.asarray(_repeat_for_batch(a, batch)), start)
    typed = {n: jnp.asarray(a, getattr(start, n).dtype) for n, a in state.items()}
    return new, worlds.replace(**typed)


def _repeat_for_batch(a: Any, batch: tuple[int, ...]) -> np.ndarray:
    """Repeat an array of one world for a batch; the result is writable."""
    return np.array(np.broadcast_to(a, (*batch, *np.shape(a))))


def _transfer_slots(
    old: np.ndarray, fresh: Any, batch: tuple[int, ...], to: np.ndarray, of: np.ndarray
) -> np.ndarray:
    """Return a new array of a batch whose slots `to` are the slots `of` of the old one.

    The other slots are those of `fresh`, the array of one world.
    """
    new = _repeat_for_batch(fresh, batch)
    # the slots are the axis after those of the worlds
    rows = np.moveaxis(new, len(batch), 0)
    rows[to] = np.moveaxis(old, len(batch), 0)[of]
    return new


class _Part(NamedTuple):
    """A field of the state, by the objects that it belongs to: kind, and slots of each object."""

    blocks: tuple[tuple[str, Callable[[Structure], Blocks]], ...]


def _single_slots(size: str) -> Callable[[Structure], Blocks]:
    """Return one slot for each object."""
    return lambda s: [np.array([i]) for i in range(getattr(s, size))]


def _slots_of(
    places: Callable[[Structure, np.ndarray], np.ndarray], size: str
) -> Callable[[Structure], Blocks]:
    """Return the slots of each object, by the index functions of `bind`."""
    return lambda s: [places(s, np.array([i])) for i in range(getattr(s, size))]


def _slots_from_address(
    address: str, others: Sequence[str], size: str
) -> Callable[[Structure], Blocks]:
    """Return the slots from each address to the next one of any kind; none for address -1."""

    def blocks(s: Structure) -> Blocks:
        starts = np.concatenate([np.ravel(getattr(s, name)) for name in (address, *others)])
        ends = np.sort(np.unique([*starts[starts >= 0], getattr(s, size)]))
        return [
            np.arange(a, ends[np.searchsorted(ends, a, "right")]) if a >= 0 else np.zeros(0, int)
            for a in getattr(s, address)
        ]

    return blocks


def _spans(address: str, number: str) -> Callable[[Structure], Blocks]:
    """Return the slots of each object from its address and number."""
    return lambda s: [
        np.arange(a, a + n) for a, n in zip(getattr(s, address), getattr(s, number), strict=True)
    ]


def _mocap(s: Structure) -> Blocks:
    return [np.array([i] if i >= 0 else [], int) for i in s.body_mocapid]


def _shared_vector(owners: Mapping[str, str], size: str) -> _Part:
    """Return the part of a vector with blocks of several kinds, by the addresses of each kind."""
    return _Part(
        tuple(
            (kind, _slots_from_address(address, [a for a in owners.values() if a != address], size))
            for kind, address in owners.items()
        )
    )


_HISTORIES = {"actuator": "actuator_history", "sensor": "sensor_history"}


def _low_times(kind: str) -> Callable[[Structure], Blocks]:
    """Return the slots of the low parts of times in each buffer, one more than it has samples."""

    def blocks(s: Structure) -> Blocks:
        # buffer by buffer, actuators before sensors (`time_indices`)
        held = [(getattr(s, f"{n}adr") >= 0, getattr(s, n)[:, 0] + 1) for n in _HISTORIES.values()]
        lengths = np.concatenate([np.where(has, count, 0) for has, count in held])
        first = np.cumsum(lengths) - lengths
        n = len(held[0][0])
        own = slice(0, n) if kind == "actuator" else slice(n, None)
        return [np.arange(a, a + k) for a, k in zip(first[own], lengths[own], strict=True)]

    return blocks


_DOFS = _Part((("joint", _slots_of(dof_indices, "njnt")),))
_MOCAP = _Part((("body", _mocap),))
_VERTICES = _Part((("flex", _spans("flex_vertadr", "flex_vertnum")),))
_WHOLE_FIELDS = ("time", "time_low", "warning", "warning_lastinfo")
_PARTS = {
    "qpos": _Part((("joint", _slots_of(qpos_indices, "njnt")),)),
    "qvel": _DOFS,
    "qacc_warmstart": _DOFS,
    "qfrc_applied": _DOFS,
    "act": _Part((("actuator", _slots_of(act_indices, "nactuator")),)),
    "ctrl": _Part((("actuator", _slots_of(ctrl_indices, "nactuator")),)),
    "xfrc_applied": _Part((("body", _single_slots("nbody")),)),
    "eq_active": _Part((("equality", _single_slots("neq")),)),
    "mocap_pos": _MOCAP,
    "mocap_quat": _MOCAP,
    "flexvert_lambda": _VERTICES,
    "flexvert_conage": _VERTICES,
    "plugin_state": _Part((("plugin", _spans("plugin_stateadr", "plugin_statenum")),)),
    "history": _shared_vector(
        {"actuator": "actuator_historyadr", "sensor": "sensor_historyadr"}, "nhistory"
    ),
    "history_low": _Part(tuple((kind, _low_times(kind)) for kind in _HISTORIES)),
    "plastic": _shared_vector(
        {"joint": "jnt_plasticadr", "tendon": "tendon_plasticadr", "flex": "flex_plasticadr"},
        "nplastic",
    ),
}


def _pairs(
    before: Mapping[str, Sequence[Identity]],
    after: Mapping[str, Sequence[Identity]],
    part: _Part,
    old: Structure,
    new: Structure,
) -> tuple[np.ndarray, np.ndarray]:
    """Return slots of the new and of the old array, of objects in both with equal sizes."""
    to, of = [np.zeros(0, int)], [np.zeros(0, int)]
    for kind, blocks in part.blocks:
        there = dict(zip(before.get(kind, ()), blocks(old), strict=True))
        for identity, slots in zip(after.get(kind, ()), blocks(new), strict=True):
            found = there.get(identity)
            if found is not None and len(found) == len(slots):
                to.append(slots)
                of.append(found)
    return np.concatenate(to).astype(int), np.concatenate(of).astype(int)


def _asleep(
    before: Mapping[str, Sequence[Identity]],
    after: Mapping[str, Sequence[Identity]],
    old: Structure,
    new: Structure,
    asleep: np.ndarray,
    start: Any,
) -> np.ndarray:
    """Return `tree_asleep` (worlds, ntree); sleeping cycles wake if one of their trees is gone."""
    trees = {_tree(before, old, i): i for i in range(old.ntree)}
    same = {i: trees[t] for i in range(new.ntree) if (t := _tree(after, new, i)) in trees}
    number = {j: i for i, j in same.items()}
    rows = np.tile(np.asarray(start), (len(asleep), 1))
    for was, row in zip(asleep, rows, strict=True):
        for i, j in same.items():
            # once around the cycle of trees that sleep together
            cycle, k = [j], int(was[j])
            while k >= 0 and k not in cycle:
                cycle.append(k)
                k = int(was[k])
            if k < 0:
                row[i] = k
            else:
                row[i] = number[int(was[j])] if all(t in number for t in cycle) else JUST_AWAKE
    return rows


def _tree(identities: Mapping[str, Sequence[Identity]], s: Structure, tree: int) -> tuple:
    """Return what a kinematic tree consists of: its bodies and their numbers of dofs."""
    bodies = np.flatnonzero(np.asarray(s.body_treeid) == tree)
    return tuple((identities["body"][int(b)], int(s.body_dofnum[b])) for b in bodies)


def _old_identities(spec: Spec, m: Model) -> Mapping[str, Sequence[Identity]] | str:
    """Return the identities of the objects of the model; "names" where only these are known.

    Raises:
      ValueError: an object has no name, and the spec does not know it.
    """
    known = spec.compiled
    counts = {kind: len(_names(m, kind)) for kind in IDENTITY_KINDS}
    if known is not None and all(len(known.get(k, ())) == n for k, n in counts.items()):
        return known
    for kind in IDENTITY_KINDS:
        nameless = [i for i, name in enumerate(_names(m, kind)) if not name and (kind, i) != _WORLD]
        if nameless:
            raise ValueError(
                f"recompile: m was not loaded from this spec, and its {kind} {nameless[0]} has no "
                "name to find it by; load_model(spec) before the change, or name it"
            )
    return "names"


_WORLD = ("body", 0)


def _names(m: Model, kind: str) -> Sequence[str]:
    names: Sequence[str] = dict(m.structure.names).get(kind, ())
    return names
