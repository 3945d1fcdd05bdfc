"""Names of all objects in one text, as mjModel stores them: `m.names[m.name_bodyadr[1]:]`.

Names follow each other, each terminated by a zero byte, after the name of the model, which is not
stored: the text begins with an empty name.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxsim.model.structure import Structure, cache_by_structure

# Kinds of objects in the order of the text, with the names of their tables in mjModel.
NAME_TABLES = {
    "body": "body",
    "joint": "jnt",
    "geom": "geom",
    "site": "site",
    "camera": "cam",
    "light": "light",
    "flex": "flex",
    "mesh": "mesh",
    "skin": "skin",
    "hfield": "hfield",
    "texture": "tex",
    "material": "mat",
    "pair": "pair",
    "exclude": "exclude",
    "equality": "eq",
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
    "numeric": "numeric",
    "text": "text",
    "tuple": "tuple",
    "key": "key",
    "plugin": "plugin",
}
ADDRESSES = {f"name_{table}adr": kind for kind, table in NAME_TABLES.items()}


class NameText(bytes):
    r"""Names of all objects, zero-terminated; indexing with a kind returns the list of its names.

    Example:
      >>> m.names["body"]
      ['world', 'arm']
      >>> m.names[m.name_bodyadr[1]:].partition(b"\0")[0].decode()
      'arm'
    """

    of: dict[str, tuple[str, ...]]

    def __getitem__(self, key: Any) -> Any:
        return list(self.of[key]) if isinstance(key, str) else super().__getitem__(key)

    def __contains__(self, key: Any) -> bool:
        return key in self.of if isinstance(key, str) else super().__contains__(key)

    def get(self, kind: str, default: Any = None) -> Any:
        """Return the names of a kind of object, or a default if there is no such kind."""
        return self[kind] if kind in self.of else default

    def keys(self) -> Iterator[str]:
        """Return the kinds of objects."""
        return iter(self.of)

    def items(self) -> Iterator[tuple[str, list[str]]]:
        """Return each kind of object with its names."""
        return ((kind, self[kind]) for kind in self.of)

    def __reduce__(self) -> tuple:
        return _join_names, (tuple(self.of.items()),)


@cache_by_structure
def name_text(s: Structure) -> NameText:
    """Return the names of a model."""
    return _join_names(s.names)


@cache_by_structure
def name_addresses(s: Structure) -> dict[str, np.ndarray]:
    """Return the addresses of names in the text, by MuJoCo's name of each table."""
    names, begin, found = dict(s.names), 1, {}
    for table, kind in ADDRESSES.items():
        lengths = [len(_encode_name(name)) + 1 for name in names.get(kind, ())]
        ends = begin + np.cumsum(lengths, dtype=np.int32)
        found[table] = (ends - lengths).astype(np.int32)
        begin += sum(lengths)
    return found


def _join_names(names: tuple[tuple[str, tuple[str, ...]], ...]) -> NameText:
    of = dict(names)
    ordered = [name for kind in NAME_TABLES for name in of.get(kind, ())]
    text = NameText(b"".join(_encode_name(name) + b"\0" for name in ["", *ordered]))
    text.of = of
    return text


def _encode_name(name: str) -> bytes:
    """Return the encoded name; names made in Python may contain lone surrogates."""
    return name.encode("utf-8", "surrogatepass")
