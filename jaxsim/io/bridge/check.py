"""Check that the model and the state of an exchange belong together."""

from typing import Any

import numpy as np

from jaxsim.model.contact import Contact
from jaxsim.model.data import Data
from jaxsim.model.indices import time_indices
from jaxsim.model.record.record import Record


def check_same_model(function: str, model: Any, data: Any) -> None:
    """Raise ValueError if an MjData was not made for an MjModel of this structure."""
    sizes = ("nq", "nv", "nu", "na", "nbody", "ngeom", "nsite")
    of_data = data.model
    if data.signature == model.signature and all(
        getattr(model, n) == getattr(of_data, n) for n in sizes
    ):
        return
    theirs, ours = (", ".join(f"{n}={getattr(m, n)}" for n in sizes) for m in (of_data, model))
    raise ValueError(
        f"{function}: the MjData is one of another model: it has {theirs}; the model has {ours}"
    )


def check_one_world(function: str, model: Any, d: Data) -> None:
    """Raise ValueError if a Data does not have the shapes of one world of an MjModel."""
    check_shapes(function, model, d, "")
    if d.contact is not None:
        check_shapes(function, model, d.contact, "contact.")


def check_shapes(function: str, model: Any, record: Record, prefix: str) -> None:
    """Raise ValueError if a record does not have the shapes of one world; its contact capacity is
    free."""
    contact_capacity = (
        record.dist.shape[0] if isinstance(record, Contact) and record.dist.ndim else 0
    )
    for name, field in record.fields.items():
        value = getattr(record, name)
        if field.static or field.nested is not None or value is None:
            continue
        symbols = {n for n in field.shape if isinstance(n, str)}
        # MuJoCo's model has no row capacity; nothing is written to these fields
        if "nrow" in symbols:
            continue
        own = {"ncontact": contact_capacity, "nhistorytime": len(time_indices(model))}
        sizes = {n: own[n] if n in own else int(getattr(model, n)) for n in symbols}
        if np.shape(value) != field.dims(sizes):
            raise ValueError(
                f"{function}: {prefix}{name}: has shape {np.shape(value)}, expected for one world "
                f"{field.dims(sizes)}"
            )
