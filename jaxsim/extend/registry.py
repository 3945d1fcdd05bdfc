"""Registry of plugins, and of colliders for pairs of geom types.

A model stores the entries with which it was loaded. Programs compiled with an entry are not reused
with another entry of the same name: a model loaded before an entry was replaced raises an error.
"""

from __future__ import annotations

import itertools
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jaxsim.assets.sdf.operations import library
from jaxsim.assets.sdf.shapes import SdfShape
from jaxsim.cache import bounded_cache
from jaxsim.enums import GeomType
from jaxsim.extend.plugin import CAPABILITIES, Plugin, ShapePlugin

ENTRY_POINTS = "jaxsim.plugins"  # entry point group of installed packages

Key = tuple[str, int]  # name of a plugin, and its serial number
ColliderKey = tuple[int, int, int]  # types of the geoms, and serial number
AnyPlugin = TypeVar("AnyPlugin", bound=Plugin | type[Plugin])
_clock = itertools.count(1)


class _Row(NamedTuple):
    """A plugin, and its serial number in the order of registration; 0: built in."""

    plugin: Plugin
    serial: int


_plugins: dict[str, _Row] = {}


def engine_plugins(plugins: Iterable[Plugin]) -> None:
    """Register the built-in plugins, in their order."""
    _plugins.update({plugin.name: _Row(plugin, 0) for plugin in plugins})


def register_plugin(plugin: AnyPlugin) -> AnyPlugin:
    """Register a plugin, so that models loaded from now on can use it. A decorator.

    Args:
      plugin: a subclass of `Plugin`, or an instance of one.

    Returns:
      The argument.

    Raises:
      ValueError: it has no name, the name is taken, or it implements no capability.
    """
    row = plugin() if isinstance(plugin, type) else plugin
    if not row.name:
        raise ValueError(f"register_plugin: {type(row).__name__} has no name; give it name = '...'")
    if row.name in _plugins:
        raise ValueError(
            f"register_plugin: {row.name!r} is registered already; unregister_plugin it first"
        )
    if not row.serves():
        has = ", ".join(CAPABILITIES.values())
        raise ValueError(
            f"register_plugin: {row.name!r} implements no capability; give it one of {has}"
        )
    _plugins[row.name] = _Row(row, next(_clock))
    return plugin


def register_shape(
    name: str,
    settings: Mapping[str, float],
    distance: Callable,
    half_box: Callable,
    fault: Callable = lambda *_: "",
) -> None:
    """Register a shape given by its signed distance: a plugin for meshes and sdf geoms.

    Args:
      name: its identifier in `<plugin plugin="...">`.
      settings: its settings and their defaults, in the order of the functions' arguments.
      distance: `(x, y, z, *settings) -> distance` [m] of points in the frame of the shape, arrays
        of equal shape; negative inside, increasing outward from the surface. Written in jax.numpy.
      half_box: `(*settings) -> (x, y, z)`, half sizes of a bounding box about the origin [m].
      fault: `(*settings) -> str`, the fault in the settings, or "".

    Raises:
      ValueError: the name is taken.
    """

    def of_points(x: Any, y: Any, z: Any, *values: Any) -> Any:
        return distance(*library(x).broadcast_arrays(x, y, z), *values)

    register_plugin(ShapePlugin(name, SdfShape(settings, of_points, half_box, fault)))


def unregister_plugin(name: str) -> None:
    """Unregister a plugin of `register_plugin` or `register_shape`.

    Raises:
      ValueError: no user has registered a plugin of that name.
    """
    row = _plugins.get(name)
    if row is None or not row.serial:
        raise ValueError(f"unregister_plugin: no plugin {name!r} was registered")
    del _plugins[name]


def load_plugins(folder: str | Path) -> list[str]:
    """Run all Python files of a folder, in order of their names; they register their plugins.

    The files are executed: use only folders that you trust.

    Returns:
      Names of the plugins that are new.

    Raises:
      FileNotFoundError: there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"load_plugins: there is no folder {str(folder)!r}")
    before = set(_plugins)
    for file in sorted(folder.glob("*.py")):
        runpy.run_path(str(file))
    return [name for name in _plugins if name not in before]


def has_extensions() -> bool:
    """Return whether the user has registered plugins, shapes or colliders."""
    return bool(_colliders) or any(row.serial for row in _plugins.values())


def registered_plugins() -> dict[str, Plugin]:
    """Return all registered plugins, by name; MuJoCo's own come first, in its numbering.

    Those of installed packages, under the entry point `jaxsim.plugins`, are included.
    """
    _load_offered()
    return {name: row.plugin for name, row in _plugins.items()}


_offered: set[str] = set()  # entry points that were loaded


def _load_offered() -> None:
    """Load the plugins of installed packages, once: modules that register them, or classes."""
    for point in _entry_points(tuple(sys.path)):
        if point.value in _offered:
            continue
        _offered.add(point.value)
        found = point.load()
        if isinstance(found, type) and issubclass(found, Plugin) and found.name not in _plugins:
            register_plugin(found)


@bounded_cache(4)
def _entry_points(path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of the packages on a path; cached, because reading them takes 7
    ms."""
    return entry_points(group=ENTRY_POINTS)


def engine_plugin(number: int) -> str:
    """Return the name of the plugin with this number in MuJoCo; a placeholder if there is none."""
    own = [name for name, row in _plugins.items() if not row.serial]
    return own[number] if number < len(own) else f"number {number}"


def shape_kind(key: Key) -> str | None:
    """Return a unique name for the shape of a model's plugin; None if it is no shape.

    The name belongs to that entry alone, so that programs traced with a shape are not reused for
    another shape of the same plugin name.
    """
    name, serial = key
    plugin = plugin_of(key)
    if plugin is None or plugin.shape is None:
        return None
    return f"{name} ({serial})" if serial else name


def shapes() -> dict[str, SdfShape]:
    """Return all registered shapes, by the names that `shape_kind` returns."""
    keys = [(name, row.serial) for name, row in _plugins.items()]
    return {
        kind: shape
        for key in keys
        if (kind := shape_kind(key)) and (shape := _plugins[key[0]].plugin.shape)
    }


def plugin_key(name: str) -> Key:
    """Return the key that a model stores of its plugin; the serial number of an unknown one is
    -1."""
    row = _plugins.get(name)
    return name, row.serial if row is not None else -1


def local_keys(keys: tuple[Key, ...], colliders: tuple[ColliderKey, ...]) -> tuple:
    """Return keys of another process as the corresponding keys of this process.

    Raises:
      ValueError: a plugin or collider is not registered here.
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
    """Return the plugin with which a model was loaded; None if it is unregistered or was
    replaced."""
    row = _plugins.get(key[0])
    return row.plugin if row is not None and row.serial == key[1] else None


class Collider(NamedTuple):
    """A user's collision function for two geom types.

    Attributes:
      collide: `(size1, pos1, mat1, size2, pos2, mat2) -> (dist, pos, normal)` for one pair: sizes
        `(3,)` as in `geom_size`, positions `(3,)`, orientations `(3, 3)`; distances `(slots,)`,
        negative in penetration, positions `(slots, 3)` midway between the surfaces, and unit
        normals `(slots, 3)` from the first geom to the second. Unused slots have a large distance.
        Traced by JAX.
      slots: number of points of a pair.
      serial: serial number of the registration.
    """

    collide: Callable
    slots: int
    serial: int


_colliders: dict[tuple[int, int], Collider] = {}


def register_collider(type1: GeomType, type2: GeomType, collide: Callable, slots: int) -> None:
    """Register a collision function for two types of geoms, which replaces the built-in one if any.

    It applies to models that are loaded from now on.

    Args:
      type1, type2: types of the geoms, the smaller number first, as in MuJoCo's contacts.
      collide: see `Collider`.
      slots: number of points that it returns for a pair.

    Raises:
      ValueError: the types are in the other order, `slots` is not positive, or a function is
        registered for the pair already.
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
    """Unregister the collision function of two types of geoms; the built-in one, if any, applies
    again.

    Raises:
      ValueError: no function was registered for them.
    """
    if _colliders.pop((int(type1), int(type2)), None) is None:
        raise ValueError("unregister_collider: none was registered for these types")


def collider_keys() -> tuple[ColliderKey, ...]:
    """Return the keys that a model stores of the registered colliders."""
    return tuple((*kind, row.serial) for kind, row in sorted(_colliders.items()))


def collider_of(key: ColliderKey) -> Collider | None:
    """Return the collider with which a model was loaded; None if it is not registered any more."""
    row = _colliders.get(key[:2])
    return row if row is not None and row.serial == key[2] else None
