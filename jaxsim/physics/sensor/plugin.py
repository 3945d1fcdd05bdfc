"""Sensors computed by plugins."""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import ObjType, Stage
from jaxsim.extend.plugin import Attached
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contact_list import list_contacts, order_contact_forces
from jaxsim.physics.plugin import call_plugin, plugin_config
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.solver.constraint_force import net_contact_force


def plugin_sensors(m: Model, d: Data, g: SensorGroup) -> tuple[Array, ...]:
    """Compute the outputs of the sensors of one plugin instance.

    The plugin receives `d.contact` even if the user's Data does not carry it; in the stage ACC it
    has forces. XLA removes both for a plugin that does not read them.
    """
    # Objects and reference frames of its sensors.
    served = Attached(
        plugin_config(m.structure, g.plugin),
        g.ids,
        g.objtype,
        g.objid,
        ObjType.UNKNOWN if g.reftype is None else g.reftype,
        g.refid,
    )
    size = int(np.unique(m.sensor_dim[g.ids]).item())
    d = _list_contacts_for_plugin(m, d, g.stage)
    out = call_plugin(m, d, g.plugin, "sensor", served, (len(g.ids), size))
    return tuple(out[:, k] for k in range(size))


def _list_contacts_for_plugin(m: Model, d: Data, at: Stage) -> Data:
    """Return `d` with its list of contacts; in the stage ACC, after the solver, with forces."""
    if d.found is None:
        return d
    # Create a contact list for a Data without one.
    if d.contact is None:
        dist = jnp.zeros((collision_layout(m).capacity, *d.qpos.shape[1:]), d.qpos.dtype)
        d = d.replace(contact=Contact().replace_unchecked({"dist": dist}, native=True))
        d = d.replace(contact=list_contacts(m, d, d.found))
    # Contact forces exist after the solver only.
    force = net_contact_force(d) if at == Stage.ACC else None
    if force is None:
        return d
    return d.replace(contact=d.contact.replace(force=order_contact_forces(d, force)))
