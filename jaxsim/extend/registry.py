"""The rows that a user adds: plugins, and colliders for pairs of geom types.

A model remembers which rows it was loaded with. Programs that were compiled with a row are not used
with another one of the same name: a model loaded before a row was replaced refuses to run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from jaxsim.enums import GeomType
from jaxsim.extend.known import KNOWN
from jaxsim.extend.plugin import SERVES, Plugin

Key = tuple[str, int]  # name of a row, and when it was registered
ColliderKey = tuple[int, int, int]  # types of the geoms, and when it was registered
_clock = itertools.count(1)


class _Row(NamedTuple):
    """A plugin, and its number in the order of registration; 0: MuJoCo's own."""

    plugin: Plugin
    serial: int


_plugins: dict[str, _Row] = {plugin.name: _Row(plugin, 0) for plugin in KNOWN}


def register_plugin(plugin: Plugin) -> None:
    """Makes a plugin known: models that are loaded from now on may use it.

    Raises:
      ValueError: there is a plugin of that name, or it serves what none can.
    """
    if plugin.name in _plugins:
        raise ValueError(
            f"register_plugin: {plugin.name!r} is registered already; unregister_plugin it first"
        )
    if plugin.serves not in SERVES:
        raise ValueError(
            f"register_plugin: {plugin.name!r} serves {plugin.serves!r}; expected one of {SERVES}"
        )
    _plugins[plugin.name] = _Row(plugin, next(_clock))


def unregister_plugin(name: str) -> None:
    """Forgets a plugin that `register_plugin` made known.

    Raises:
      ValueError: no user has registered one of that name.
    """
    row = _plugins.get(name)
    if row is None or not row.serial:
        raise ValueError(f"unregister_plugin: no plugin {name!r} was registered")
    del _plugins[name]


def plugins() -> dict[str, Plugin]:
    """All plugins that are known, by name; MuJoCo's own come first, numbered as it numbers them."""
    return {name: row.plugin for name, row in _plugins.items()}


def plugin_key(name: str) -> Key:
    """What a model remembers of its plugin; a name that nobody knows has no date."""
    row = _plugins.get(name)
    return name, row.serial if row is not None else -1


def renewed(keys: tuple[Key, ...], colliders: tuple[ColliderKey, ...]) -> tuple:
    """The same keys, of another process, as they are here.

    Raises:
      ValueError: a row is not registered here.
    """
    for name, serial in keys:
        if serial and name not in _plugins:
            raise ValueError(f"the model needs the plugin {name!r}; register it first")
    for type1, type2, _ in colliders:
        if (type1, type2) not in _colliders:
            kind = f"{GeomType(type1).name} and {GeomType(type2).name}"
            raise ValueError(f"the model needs a collider for {kind}; register it first")
    here = tuple((*kind[:2], _colliders[kind[:2]].serial) for kind in colliders)
    return tuple(plugin_key(name) for name, _ in keys), here


def plugin_of(key: Key) -> Plugin | None:
    """The plugin that a model was loaded with; None: it is not known, or not that one any more."""
    row = _plugins.get(key[0])
    return row.plugin if row is not None and row.serial == key[1] else None


class Collider(NamedTuple):
    """How a user finds the contacts of two geoms.

    Attributes:
      collide: `(size1, pos1, mat1, size2, pos2, mat2) -> (dist, pos, normal)` for one pair: sizes
        `(3,)` as in `geom_size`, positions `(3,)`, orientations `(3, 3)`; distances `(slots,)`,
        negative in penetration, positions `(slots, 3)` midway between the surfaces, and unit
        normals `(slots, 3)` from the first geom to the second. A point that does not exist has a
        large distance. Traced by JAX.
      slots: number of points of a pair.
      serial: when it was registered.
    """

    collide: Callable
    slots: int
    serial: int


_colliders: dict[tuple[int, int], Collider] = {}


def register_collider(type1: GeomType, type2: GeomType, collide: Callable, slots: int) -> None:
    """Finds the contacts of two types of geoms by a function of the user, instead of ours if any.

    It holds for models that are loaded from now on.

    Args:
      type1, type2: types of the geoms, the smaller number first, as the contacts of MuJoCo have
        them.
      collide: see `Collider`.
      slots: number of points that it gives for a pair.

    Raises:
      ValueError: the types are in the other order, the number is not positive, or the pair has a
        function by a user already.
    """
    kind = (int(type1), int(type2))
    if kind[0] > kind[1]:
        raise ValueError(
            f"register_collider: {GeomType(type2).name} comes before {GeomType(type1).name}; "
            "exchange the types, and the geoms in the function"
        )
    if slots < 1:
        raise ValueError(f"register_collider: slots is {slots}; expected at least 1")
    if kind in _colliders:
        raise ValueError("register_collider: the pair has one already; unregister_collider first")
    _colliders[kind] = Collider(collide, int(slots), next(_clock))


def unregister_collider(type1: GeomType, type2: GeomType) -> None:
    """Goes back to our own function, or none, for two types of geoms.

    Raises:
      ValueError: no function was registered for them.
    """
    if _colliders.pop((int(type1), int(type2)), None) is None:
        raise ValueError("unregister_collider: none was registered for these types")


def collider_keys() -> tuple[ColliderKey, ...]:
    """What a model remembers of the colliders that users have registered."""
    return tuple((*kind, row.serial) for kind, row in sorted(_colliders.items()))


def collider_of(key: ColliderKey) -> Collider | None:
    """The collider that a model was loaded with; None: it is not registered any more."""
    row = _colliders.get(key[:2])
    return row if row is not None and row.serial == key[2] else None
