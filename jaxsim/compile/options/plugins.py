"""Compile plugin instances: `plugin*`, and the elements that each of them serves.

Instances declared in `<extension>` come first; every element that names a plugin instead of an
instance has its own, in the order in which MuJoCo reads a model: assets, actuators, sensors,
bodies.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.instances import Instance, Instances
from jaxsim.compile.step import declare_pass
from jaxsim.extend.registry import registered_plugins as known_plugins
from jaxsim.spec import SpecElement
from jaxsim.spelling import remedy

# The capability that a plugin needs, by the element to which it is attached.
_SERVES = {"mesh": "sdf", "geom": "sdf", "actuator": "actuator", "sensor": "sensor"}
_PASSIVE = "passive force"

# Plugins of MuJoCo 3 that flexes have replaced: the version that removed them, and their
# replacement inside <flexcomp>. Their settings are attributes of the same names there.
_FLEX_DOES = {
    "mujoco.elasticity.solid": ("3.2.4", "young='...' poisson='...' damping='...'"),
    "mujoco.elasticity.membrane": (
        "3.2.4",
        "elastic2d='stretch' young='...' poisson='...' thickness='...' damping='...'",
    ),
    "mujoco.elasticity.shell": (
        "3.3.3",
        "elastic2d='bend' young='...' poisson='...' thickness='...' damping='...'",
    ),
}


@declare_pass(gives="instances plugin")
def plugin_fields(c: Compilation) -> None:
    """Add all fields of plugins, and the instances themselves."""
    declared = _declared_plugins(c)
    found: list[tuple[str, Instance]] = [
        (child.name or "", _instance(c, child, e.own("plugin")))
        for e in declared
        for child in e.children
        if e.own("plugin") in known_plugins()
    ]
    named = {name: i for i, (name, _) in enumerate(found)}
    known = {e.own("plugin") for e in declared}
    of_element: dict[SpecElement | None, int] = {}
    for e, serves in _plugin_users(c):
        number = _resolve_instance(c, e, serves, known, named, found)
        if number >= 0:
            of_element[e] = number
    c.register("plugin", [i.element for _, i in found], [name for name, _ in found])
    instances = [instance for _, instance in found]
    c.instances = Instances(instances, of_element)
    _fields(c, instances)
    served = set(of_element.values())
    for number, instance in enumerate(instances):
        fault = instance.fault or ("" if number in served else instance.plugin.idle)
        if fault:
            c.fault(instance.element, f"{instance.plugin.name}: {fault}")


def plugin_id(c: Compilation, element: SpecElement | None) -> int:
    """Return the instance that serves an element through its `<plugin>` child, or -1."""
    return c.instances.ids.get(plugin_child(element), -1)


def plugin_child(element: SpecElement | None) -> SpecElement | None:
    """Return the `<plugin>` inside an element, or None; of several the first counts, as in
    MuJoCo."""
    children = element.children if element is not None else []
    return next((child for child in children if _is_plugin(child)), None)


def plugin_ids(c: Compilation, elements: list[SpecElement]) -> np.ndarray:
    """Return the instances of elements that are plugins themselves, as actuators and sensors; -1
    for others."""
    return np.array([c.instances.ids.get(e, -1) for e in elements], np.int32)


def check_activations(c: Compilation, element: SpecElement, extra: int, states: int) -> None:
    """Check that an actuator has the activations of its plugin, plus `extra` for its dyntype."""
    instance = c.instances.of(element)
    if instance is not None:
        wanted = instance.plugin.activations(instance.config) + extra
        if states != wanted:
            c.fault(element, f"this plugin has {wanted} activations; write actdim='{wanted}'")


def _declared_plugins(c: Compilation) -> list[SpecElement]:
    """Return the plugins declared in `<extension>`; unknown ones are reported."""
    elements = c.spec.section("extension")
    for e in elements:
        name, known = str(e.own("plugin")), known_plugins()
        if name in known:
            continue
        if name in _FLEX_DOES:
            version, attributes = _FLEX_DOES[name]
            c.fault(
                e,
                f"plugin='{name}' was removed in MuJoCo {version}; remove it here and from its "
                f"<flexcomp>, and write <elasticity {attributes}/> inside that",
            )
        else:
            end = remedy(name, known, f"; known are {', '.join(known)}")
            c.fault(e, f"plugin='{name}' is not known{end}; register_plugin adds one")
    return elements


def _plugin_users(c: Compilation) -> Iterator[tuple[SpecElement, str]]:
    """Yield every element that refers to a plugin, and the capability it needs."""
    for e in c.spec.section("asset"):
        child = plugin_child(e)
        if child is not None:
            yield child, _SERVES.get(e.tag, "")
    for section in ("actuator", "sensor"):
        yield from ((e, _SERVES[section]) for e in c.spec.section(section) if _is_plugin(e))
    for world in c.spec.sections("worldbody"):
        for e in world.walk():
            child = plugin_child(e)
            if child is not None:
                yield child, _SERVES.get(e.tag, _PASSIVE)


def _is_plugin(e: SpecElement) -> bool:
    return e.tag == "plugin"


def _resolve_instance(
    c: Compilation,
    e: SpecElement,
    serves: str,
    known: set[str],
    named: dict[str, int],
    found: list[tuple[str, Instance]],
) -> int:
    """Return the instance an element refers to, created if it names a plugin alone; -1 after a
    fault."""
    name, plugin = e.own("instance"), e.own("plugin")
    if name is not None:
        if name not in named:
            end = remedy(name, named, "; declare it in <extension>")
            c.fault(e, f"instance='{name}' names no instance of a plugin{end}")
            return -1
        if plugin is not None and plugin not in known:
            c.fault(e, f"plugin='{plugin}' is not declared; remove it, the instance suffices")
        number = named[name]
    elif plugin is None:
        c.fault(e, "it needs plugin, or the instance of one that <extension> declares")
        return -1
    elif plugin not in known:
        c.fault(e, f"plugin='{plugin}' must be declared: <extension><plugin plugin='{plugin}'/>")
        return -1
    elif plugin not in known_plugins():
        return -1  # reported at its declaration
    else:
        number = len(found)
        found.append(("", _instance(c, e, plugin)))
    can = found[number][1].plugin
    if serves not in can.serves():
        what = " and ".join(f"{kind}s" for kind in can.serves())
        c.fault(e, f"{can.name} is for {what}; it cannot serve a {serves or 'thing'} here")
    return number


def _instance(c: Compilation, e: SpecElement, plugin: str) -> Instance:
    """Return an instance with the settings that its element gives."""
    kind = known_plugins()[plugin]
    config: dict[str, str] = {}
    for child in e.children:
        key = child.own("key")
        if key in config:
            c.fault(child, f"key='{key}' is given twice; remove one")
        elif key not in kind.settings:
            end = remedy(key, kind.settings, f"; it has {', '.join(kind.settings)}")
            c.fault(child, f"key='{key}' is no setting of {plugin}{end}")
        config[key] = child.own("value")
    return Instance(kind, config, e)


def _fields(c: Compilation, instances: list[Instance]) -> None:
    """Add the plugin fields; `plugin_attr` has the settings as zero-terminated texts."""
    texts = [
        b"".join(i.given.get(key, "").encode() + b"\0" for key in i.plugin.settings)
        for i in instances
    ]
    length = np.array([len(text) for text in texts], np.int32)
    row_of_plugin = {name: number for number, name in enumerate(known_plugins())}
    number = [row_of_plugin[i.plugin.name] for i in instances]
    states = np.array([0 if i.fault else np.size(i.plugin.state(i.config)) for i in instances])
    c.fields.update(
        nplugin=len(instances),
        npluginattr=int(length.sum()),
        npluginstate=int(states.sum()),
        plugin=np.array(number, np.int32),
        plugin_stateadr=(np.cumsum(states) - states).astype(np.int32),
        plugin_statenum=states.astype(np.int32),
        plugin_attr=np.frombuffer(b"".join(texts), np.int8).copy(),
        plugin_attradr=(np.cumsum(length) - length).astype(np.int32),
    )
