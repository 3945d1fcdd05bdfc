"""Change tables of the structure of a finished model: limits, collision masks, groups.

They decide the shape of the program, although MuJoCo reads them at run time: the changed model is
another program, compiled at its first call. Derived tables are recomputed: limit rows, geom pairs,
capacities, and unsupported features.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from jaxsim.enums import JointType
from jaxsim.errors import AssetError
from jaxsim.io.capacity.capacity import with_new_capacity
from jaxsim.io.consistency import check_structure
from jaxsim.io.unsupported import unsupported_features
from jaxsim.model.model import Model
from jaxsim.model.structure import CHANGEABLE, Structure
from jaxsim.physics.collision.convex.hull.tables import collidable_geoms, geoms_without_hull
from jaxsim.physics.unsupported import describe_object
from jaxsim.spelling import remedy

# Range that belongs to each limit flag, and the kind of object.
_LIMIT_RANGES = {
    "jnt_limited": ("jnt_range", "joint"),
    "tendon_limited": ("tendon_range", "tendon"),
    "actuator_ctrllimited": ("actuator_ctrlrange", "actuator"),
    "actuator_forcelimited": ("actuator_forcerange", "actuator"),
    "actuator_actlimited": ("actuator_actrange", "actuator"),
    "jnt_actfrclimited": ("jnt_actfrcrange", "joint"),
    "tendon_actfrclimited": ("tendon_actfrcrange", "tendon"),
}
_CONTACT_TABLES = frozenset(n for n in CHANGEABLE if n.startswith("geom_") and n != "geom_group")


def replace_structure(m: Model, *, contacts: int | None = None, **tables: Any) -> Model:
    """Return a model with other tables of its structure, such as `jnt_limited` or `geom_contype`.

    They decide the program: functions called with the new model are compiled again. Data of the old
    model fits the new one unless `m.ncontact` has changed.

    Args:
      m: the model, outside of jit.
      contacts: contact capacity of a world, if collision masks change; None: what loading would
        choose, at least the present capacity.
      tables: new values of `jaxsim.model.structure.CHANGEABLE`: one for each joint, geom, ..., or
        one number for all.

    Raises:
      ValueError: there is no such table, it cannot be changed, or its values do not fit.

    Example:
      >>> free = jaxsim.replace_structure(m, jnt_limited=0)
      >>> int(free.jnt_limited.sum())
      0
    """
    if any(isinstance(a, jax.core.Tracer) for a in (*jax.tree.leaves(m), *tables.values())):
        raise ValueError(
            "replace_structure: tables decide the program: change them outside of jit, vmap, grad"
        )
    values = {name: _checked_table(m, name, value) for name, value in tables.items()}
    for name in values.keys() & _LIMIT_RANGES.keys():
        _check_range(m, name, values[name])
    structure = _set_body_masks(m.structure.replace(**values))
    try:
        check_structure(structure)
    except AssetError as error:
        raise ValueError(f"replace_structure: {error}") from None
    new = m.replace_unchecked({"structure": structure}, native=False)
    if _CONTACT_TABLES & values.keys():
        new = _set_contact_pairs(m, new, contacts)
    refused = unsupported_features(new, {}, None)
    return new.replace_unchecked({"structure": new.structure.replace(**refused)}, native=False)


def _set_body_masks(s: Structure) -> Structure:
    """Return the structure with the collision masks of bodies, the union over their geoms."""
    tables = {}
    for name in ("contype", "conaffinity"):
        of_body = np.zeros_like(getattr(s, f"body_{name}"))
        np.bitwise_or.at(of_body, s.geom_bodyid, getattr(s, f"geom_{name}").astype(of_body.dtype))
        if (of_body != getattr(s, f"body_{name}")).any():
            tables[f"body_{name}"] = of_body
    return s.replace(**tables) if tables else s


def _checked_table(m: Model, name: str, value: Any) -> np.ndarray:
    """Return a new table, of the type and shape of the old one."""
    if name not in CHANGEABLE:
        if name in m.fields:
            what = f"is an array, not a table: m.replace({name}=...)"
        elif name in m.structure:
            what = "cannot be changed in a model: change the Spec, and load it again"
        else:
            what = f"is no table of a model{remedy(name, CHANGEABLE)}"
        raise ValueError(f"replace_structure: {name} {what}")
    old = getattr(m.structure, name)
    given = np.asarray(value)
    if given.dtype.kind not in "biu" or given.shape not in ((), old.shape):
        raise ValueError(
            f"replace_structure: {name}: expected whole numbers of shape {old.shape}, got "
            f"{given.dtype}{list(given.shape)}"
        )
    return np.broadcast_to(given.astype(old.dtype), old.shape).copy()


def _check_range(m: Model, name: str, limited: np.ndarray) -> None:
    """Reject limits without a range."""
    field, kind = _LIMIT_RANGES[name]
    span = np.asarray(getattr(m, field))
    empty = limited.astype(bool) & ~(span[:, 0] < span[:, 1])
    if name == "jnt_limited":
        free = limited.astype(bool) & (m.jnt_type == JointType.FREE)
        if free.any():
            which = describe_object(m, "joint", int(np.flatnonzero(free)[0]))
            raise ValueError(f"replace_structure: {which}: a free joint has no limits")
    if empty.any():
        i = int(np.flatnonzero(empty)[0])
        raise ValueError(
            f"replace_structure: {describe_object(m, kind, i)}: {name} needs a range, "
            f"{field}[{i}] is {span[i].tolist()}; give it one first: m.replace({field}=...)"
        )


def _set_contact_pairs(m: Model, new: Model, contacts: int | None) -> Model:
    """Return the model with the pairs and the contact capacity of its new collision masks."""
    was, now = (collidable_geoms(partial(getattr, a.structure)) for a in (m, new))
    lacks = np.flatnonzero(now & ~was & geoms_without_hull(new.structure))
    if len(lacks):
        which = describe_object(m, "geom", int(lacks[0]))
        raise ValueError(
            f"replace_structure: {which}: its mesh could not collide when it was loaded, and "
            "has no hull; change the Spec, and load it again"
        )
    return with_new_capacity(new, contacts)
