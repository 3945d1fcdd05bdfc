"""Compile `<contact>`: geom pairs with their own parameters, and body pairs that do not collide.

Both are sorted by signature, `body1 << 16 | body2` with the smaller body first. A pair inherits
nothing from its geoms: unset attributes have the schema's defaults.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.columns import Column, copy_columns
from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.spec import SpecElement

_COLUMNS = (
    Column("pair_dim", "condim", dtype=np.int32),
    Column("pair_solref", "solref", 2),
    Column("pair_solreffriction", "solreffriction", 2),
    Column("pair_solimp", "solimp", 5),
    Column("pair_margin", "margin"),
    Column("pair_gap", "gap"),
    Column("pair_adhesion", "adhesion"),
    Column("pair_friction", "friction", 5),
)
_CONDIMS = (1, 3, 4, 6)


@declare_pass(needs="bodies geoms", gives="exclude pair")
def contacts(c: Compilation) -> None:
    """Add `pair_*` and `exclude_signature`."""
    elements = c.spec.section("contact")
    _pairs(c, [e for e in elements if e.tag == "pair"])
    _excludes(c, [e for e in elements if e.tag == "exclude"])


def _pairs(c: Compilation, elements: list[SpecElement]) -> None:
    found = []
    for e in elements:
        if not (e.get("geom1") and e.get("geom2")):
            c.fault(e, "a pair needs geom1 and geom2")
            continue
        if e.get("condim") not in _CONDIMS:
            c.fault(e, f"condim='{e.get('condim')}' must be 1, 3, 4 or 6")
        ids = c.resolve_attribute("geom", e, "geom1"), c.resolve_attribute("geom", e, "geom2")
        if min(ids) >= 0:
            bodies = c.fields["geom_bodyid"][list(ids)]
            signature, swap = _signature(*bodies)
            found.append((signature, ids[::-1] if swap else ids, e))
    found.sort(key=lambda pair: pair[0])
    elements = [e for _, _, e in found]
    c.register("pair", elements, [e.name for e in elements])
    geoms = np.array([ids for _, ids, _ in found], np.int32).reshape(-1, 2)
    c.fields.update(
        npair=len(found),
        pair_geom1=geoms[:, 0].copy(),
        pair_geom2=geoms[:, 1].copy(),
        pair_signature=np.array([signature for signature, _, _ in found], np.int32),
    )
    copy_columns(c, elements, _COLUMNS)


def _excludes(c: Compilation, elements: list[SpecElement]) -> None:
    found = []
    for e in elements:
        bodies = c.resolve_attribute("body", e, "body1"), c.resolve_attribute("body", e, "body2")
        if min(bodies) >= 0:
            found.append((_signature(*bodies)[0], e))
    found.sort(key=lambda pair: pair[0])
    elements = [e for _, e in found]
    c.register("exclude", elements, [e.name for e in elements])
    c.fields["nexclude"] = len(found)
    c.fields["exclude_signature"] = np.array([signature for signature, _ in found], np.int32)


def _signature(body1: int, body2: int) -> tuple[int, bool]:
    """Return the signature of two bodies, and whether they had to be swapped for it."""
    first, second = sorted((int(body1), int(body2)))
    return (first << 16) + second, body1 > body2
