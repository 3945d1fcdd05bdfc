"""From a changed Model back to its Spec, and so to MJCF: what `mj_saveLastXML` is for.

spec = jaxsim.Spec.from_file("arm.xml")
m = jaxsim.load_model(spec)
m = m.replace(body_mass=m.body_mass * 1.1)
text = jaxsim.write_back(spec, m).to_xml()
"""

from typing import Any

import numpy as np

from jaxsim.compile import write_back as write_tables
from jaxsim.model.fields import Record
from jaxsim.model.model import Model
from jaxsim.spec import Spec


def write_back(spec: Spec, m: Model) -> Spec:
    """Return a Spec that compiles to the numbers of a Model.

    Args:
      spec: what the model was loaded from; it stays as it is.
      m: the model, for one world, with any of its numbers and options changed.

    Returns:
      The spec with everything expanded in it (`flatten`), and what differs in the model written on
      its elements: to the bit for what an attribute says, in the precision of the model.

    Raises:
      ModelError: the spec, or the model with its new numbers, cannot be compiled.
      ValueError: the model is not that of the spec, is a batch, or has numbers that MJCF cannot
        say, such as a bounding box that is not that of its geom. The message names the fields.
    """
    return write_tables(spec, _values(m), _values(m.opt), _values(m.stat))


def _values(record: Record) -> dict[str, Any]:
    """Return the fields of a record as numpy arrays and numbers; of those that a model has from
    MJCF."""
    values = {
        name: getattr(record, name)
        for name, field in type(record).fields.items()
        if field.nested is None and name not in ("structure", "smooth")
    }
    return {name: np.asarray(value) for name, value in values.items() if value is not None}
