"""Write the values of a changed Model back to its Spec, and so to MJCF.

The purpose is that of `mj_saveLastXML` in MuJoCo.

    spec = jaxsim.Spec.from_file("arm.xml")
    m = jaxsim.load_model(spec)
    m = m.replace(body_mass=m.body_mass * 1.1)
    text = jaxsim.write_back(spec, m).to_xml()
"""

from typing import Any

import numpy as np

from jaxsim.compile import spec_from_tables
from jaxsim.model.model import Model
from jaxsim.model.record.record import Record
from jaxsim.spec import Spec


def write_back(spec: Spec, m: Model) -> Spec:
    """Return a Spec that compiles to the values of a Model.

    Args:
      spec: the Spec that the model was loaded from; it is not changed.
      m: the model, for one world, with any of its values and options changed.

    Returns:
      The flattened spec (`flatten`), with the differences written on its elements: bit for bit
      where an attribute exists, in the precision of the model.

    Raises:
      ModelError: the spec, or the model with its new values, cannot be compiled.
      ValueError: the model does not belong to the spec, is a batch, or has values that MJCF cannot
        express, such as a bounding box that differs from that of its geom. The message names the
        fields.
    """
    return spec_from_tables(spec, _field_values(m), _field_values(m.opt), _field_values(m.stat))


def _field_values(record: Record) -> dict[str, Any]:
    """Return the fields of a record as numpy arrays and numbers, without those that MJCF does not
    set."""
    values = {
        name: getattr(record, name)
        for name, field in type(record).fields.items()
        if field.nested is None and name not in ("structure", "smooth")
    }
    return {name: np.asarray(value) for name, value in values.items() if value is not None}
