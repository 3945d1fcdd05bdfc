"""Actuator plugins in a step: forces, rates of their activations, and their next states."""

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.plugin import (
    call_plugin,
    own_activations,
    plugin_instances,
    plugin_row,
    served_elements,
)


def forces(m: Model, d: Data, force: Array, given: Array) -> Array:
    """Replace the forces `[nout, *W]` of actuators that plugins drive.

    Args:
      m, d: model and data.
      force: forces of the others.
      given: setpoint of each: its control or activation, `[nactuator, *W]`.
    """
    # One call per instance for all its actuators.
    for instance in plugin_instances(m.actuator_plugin):
        served = served_elements(m, instance, m.actuator_plugin)
        of_served = gather_static(given, served.id)
        own = call_plugin(m, d, instance, "actuator", served, served.id.shape, of_served)
        force = force.at[m.actuator_outadr[served.id]].set(own)
    return force


def rates(m: Model, d: Data, given: Array) -> Array:
    """Replace the rates in act_dot `[na, *W]` of activations owned by plugins."""
    act_dot = d.act_dot
    for instance in plugin_instances(m.actuator_plugin):
        slots = own_activations(m.structure, instance)
        if not slots.size or plugin_row(m.structure, instance).act_dot is None:
            continue
        served = served_elements(m, instance, m.actuator_plugin)
        of_served = gather_static(given, served.id)
        own = call_plugin(m, d, instance, "act_dot", served, slots.shape, of_served)
        act_dot = act_dot.at[slots].set(own)
    return act_dot


def advance_plugin_states(m: Model, d: Data) -> Data:
    """Apply the plugins' updates of activations and states at the end of a step."""
    act, state = d.act, d.plugin_state
    actuation = not m.opt.disableflags & DisableBit.ACTUATION
    for instance in range(m.nplugin):
        # Activations, then states of the instance.
        row = plugin_row(m.structure, instance)
        slots = own_activations(m.structure, instance)
        served = served_elements(m, instance, m.actuator_plugin)
        if row.next_act is not None and slots.size and actuation:
            act = act.at[slots].set(call_plugin(m, d, instance, "next_act", served, slots.shape))
        start, number = (int(n[instance]) for n in (m.plugin_stateadr, m.plugin_statenum))
        if row.next_state is not None and number:
            own = call_plugin(m, d, instance, "next_state", served, (number,))
            state = state.at[start : start + number].set(own)
    return d.replace(act=act, plugin_state=state)
