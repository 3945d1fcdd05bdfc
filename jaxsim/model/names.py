"""Names of bodies, joints, geoms and the rest: from a name to an id and back."""

from collections.abc import Iterable

from jaxsim.enums import ObjType
from jaxsim.model.model import Model
from jaxsim.words import remedy

SHOWN = 20  # names that a message lists


def name2id(m: Model, kind: ObjType | str, name: str) -> int:
    """The id of a named object.

    Args:
      m: the model.
      kind: what it is: `ObjType.JOINT` or "joint".
      name: its name.

    Raises:
      ValueError: there is no such kind, or no object of this kind has the name; says the nearest.

    Example:
      >>> name2id(m, "joint", "hinge")
      0
      >>> name2id(m, "joint", "hing")
      Traceback (most recent call last):
      ValueError: no joint is named 'hing'; did you mean 'hinge'?
    """
    names = _names(m, kind)
    if name and name in names:
        return names.index(name)
    raise ValueError(f"no {_kind(kind)} is named {name!r}{_nearest(name, filter(None, names))}")


def id2name(m: Model, kind: ObjType | str, index: int) -> str | None:
    """The name of an object; None if it has none, or if there is no such object.

    Raises:
      ValueError: there is no such kind.

    Example:
      >>> id2name(m, "body", 1), id2name(m, "body", 7)
      ('arm', None)
    """
    names = _names(m, kind)
    return names[index] or None if 0 <= index < len(names) else None


def _names(m: Model, kind: ObjType | str) -> tuple[str, ...]:
    known = dict(m.structure.names)
    wanted = _kind(kind)
    if wanted not in known:
        raise ValueError(f"no kind of object is called {wanted!r}{_nearest(wanted, known)}")
    return known[wanted]


def _kind(kind: ObjType | str) -> str:
    name = kind if isinstance(kind, str) else ObjType(kind).name.lower()
    return "body" if name == "xbody" else name


def _nearest(name: str, known: Iterable[str]) -> str:
    """What might have been meant, for the end of a message."""
    known = list(known)
    shown = ", ".join(known[:SHOWN]) or "none"
    return remedy(str(name), known, f"; there are: {shown}{', ...' if len(known) > SHOWN else ''}")
