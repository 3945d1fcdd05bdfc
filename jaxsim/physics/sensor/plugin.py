"""Sensors that a plugin of the user computes."""

import numpy as np

from jaxsim.enums import ObjType
from jaxsim.extend.plugin import Attached
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.plugin import compute, config
from jaxsim.physics.sensor.group import SensorGroup


def plugin_sensors(m: Model, d: Data, g: SensorGroup) -> tuple[Array, ...]:
    """Outputs of the sensors of one instance of a plugin."""
    served = Attached(
        config(m, g.plugin),
        g.ids,
        g.objtype,
        g.objid,
        ObjType.UNKNOWN if g.reftype is None else g.reftype,
        g.refid,
    )
    size = int(np.unique(m.sensor_dim[g.ids]).item())
    out = compute(m, d, g.plugin, served, (len(g.ids), size))
    return tuple(out[:, k] for k in range(size))
