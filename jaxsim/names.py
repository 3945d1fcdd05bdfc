"""Names of bodies, joints, geoms and the rest: from a name to an id and back."""

import difflib

from jaxsim.enums import ObjType
from jaxsim.model import Model


def name2id(m: Model, kind: ObjType | str, name: str) -> int:
    """The id of a named object, -1 if there is none.

    Args:
      m: the model.
      kind: what it is: `ObjType.JOINT` or "joint".
      name: its name.
    """
    names = _names(m, kind)
    return names.index(name) if name and name in names else -1


def id2name(m: Model, kind: ObjType | str, index: int) -> str | None:
    """The name of an object; None if it has none, or if there is no such object."""
    names = _names(m, kind)
    return names[index] or None if 0 <= index < len(names) else None


def find_id(m: Model, kind: ObjType | str, name: str) -> int:
    """The id of a named object.

    Raises:
      ValueError: no object of this kind has the name; says which names there are.
    """
    found = name2id(m, kind, name)
    if found >= 0:
        return found
    known = [n for n in _names(m, kind) if n]
    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known) or 'none'}"
    raise ValueError(f"no {_kind(kind)} is named '{name}'; {remedy}")


def _names(m: Model, kind: ObjType | str) -> tuple[str, ...]:
    return dict(m.structure.names).get(_kind(kind), ())


def _kind(kind: ObjType | str) -> str:
    name = kind if isinstance(kind, str) else ObjType(kind).name.lower()
    return "body" if name == "xbody" else name
