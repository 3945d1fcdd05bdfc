"""Write changed values of the whole model: options, keyframes; see `write_back`."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.option import OPTION_ENUMS
from jaxsim.compile.write.changes import Changes
from jaxsim.enums import DisableBit, EnableBit
from jaxsim.spec import Spec

_KEY = ("qpos", "qvel", "act", "ctrl", "mpos", "mquat", "plastic")
KEY_FIELDS = ("key_time", *(f"key_{attr}" for attr in _KEY))


def write_options(changes: Changes, flat: Spec) -> None:
    """Write `<option>` and its flags."""
    if not changes:
        return
    section = flat.at("option")
    for name in sorted(changes.names):
        value = changes.new[name]
        if name in OPTION_ENUMS:
            words = {word.lower(): word for word in section.row.attrs[name].keywords}
            section.set(name, words[OPTION_ENUMS[name](int(value)).name.lower()])
        elif name in ("disableflags", "enableflags"):
            _write_flags(flat, name, int(changes.base[name]) ^ int(value), int(value))
        elif name == "disableactuator":
            groups = [i for i in range(31) if int(value) >> i & 1]
            section.attrs["actuatorgroupdisable"] = np.array(groups, np.int64)
        else:
            section.set(name, value)


def _write_flags(flat: Spec, table: str, changed: int, value: int) -> None:
    """Write the flags whose bits have changed."""
    bits, set_, unset = (
        (DisableBit, "disable", "enable")
        if table == "disableflags"
        else (EnableBit, "enable", "disable")
    )
    for bit in bits:
        if changed & bit:
            flat.at("option/flag").set(str(bit.name).lower(), set_ if value & bit else unset)


def write_statistic(changes: Changes, flat: Spec) -> None:
    """Write `<statistic>`, which overrides computed statistics."""
    for name in sorted(changes.names):
        flat.at("statistic").set(name, changes.new[name])


def write_custom(c: Compilation, changes: Changes) -> None:
    """Write custom numbers, and the parameters of tuples."""
    new = changes.new
    rows = set(changes.rows("numeric_data"))
    for i, element in enumerate(c.elements["numeric"]):
        start, size = new["numeric_adr"][i], new["numeric_size"][i]
        if rows.intersection(range(start, start + size)):
            element.set("data", new["numeric_data"][start : start + size])
    entries = [entry for element in c.elements["tuple"] for entry in element.children]
    for i in changes.rows("tuple_objprm"):
        entries[i].set("prm", new["tuple_objprm"][i])


def write_keys(c: Compilation, changes: Changes) -> None:
    """Write keyframes; those created by `<size nkey>` are written up to the last changed one."""
    rows = changes.rows(*KEY_FIELDS)
    keys = c.elements["key"]
    for i in range(max(rows, default=-1) + 1):
        if keys[i] is None:
            keys[i] = c.spec.at("keyframe").add("key")
    for i in rows:
        keys[i].set("time", changes.new["key_time"][i])
        for attr in _KEY:
            if i in changes.rows(f"key_{attr}"):
                keys[i].set(attr, changes.new[f"key_{attr}"][i])
