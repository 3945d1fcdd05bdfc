"""Write the inertia of compiled bodies as `<inertial>` elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.spec import Body, SpecElement


def write_inertials(
    c: Compilation, bodies: Iterable[Body], fields: Mapping[str, Any] | None = None
) -> None:
    """Add an `<inertial>` to bodies, with the values of the compiled model, or of other fields.

    A massless body gets none, unless it has one, or other fields are given.
    """
    f = c.fields if fields is None else fields
    for body in bodies:
        i = body.id
        old = body.inertial
        empty = not f["body_mass"][i] and not np.any(f["body_inertia"][i])
        if empty and old is None and fields is None:
            continue
        if old is not None:
            old.remove()
        element = SpecElement("inertial", row=body.element.row.children["inertial"])
        element.set("pos", f["body_ipos"][i])
        element.set("quat", f["body_iquat"][i])
        element.set("mass", f["body_mass"][i])
        element.set("diaginertia", f["body_inertia"][i])
        body.inertial = body.element.adopt(element, 0)
