"""Passive forces: springs, dampers, gravity compensation, fluid, adhesion and user forces.

MuJoCo's documentation, Computation: Passive forces; corresponds to `mj_passive`.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import DisableBit
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.applied_force import wrench_force
from jaxsim.physics.callback import has_callback, passive_force
from jaxsim.physics.collision.params import has_adhesion
from jaxsim.physics.flex.force import flex_forces
from jaxsim.physics.passive.adhesion import adhesion_force
from jaxsim.physics.passive.contact import contact_springs
from jaxsim.physics.passive.damper import damper_force
from jaxsim.physics.passive.fluid import fluid_force
from jaxsim.physics.passive.spring import passive_spring_force
from jaxsim.physics.plugin import (
    call_plugin,
    missing_function,
    plugin_instances,
    plugin_row,
    served_elements,
)
from jaxsim.physics.unsupported import Refusal, make_refusal


def passive(m: Model, d: Data) -> Data:
    """Compute qfrc_passive = springs + dampers + gravcomp + fluid + adhesion + user forces.

    Gravity compensation of joints that receive it through their actuators is excluded from the sum.
    With springs and dampers both disabled all of it is zero, including adhesion. Corresponds to
    `mj_passive` in MuJoCo.
    """
    zero = jnp.zeros_like(d.qvel)
    off = DisableBit.SPRING | DisableBit.DAMPER
    if m.opt.disableflags & off == off:  # both flags together disable all passive forces
        whole, parts = (
            zero,
            dict.fromkeys(("spring", "damper", "gravcomp", "fluid", "adhesion"), zero),
        )
    else:
        # Evaluate every kind of passive force.
        flexes, contacts = flex_forces(m, d), contact_springs(m, d)
        d = d.replace(frames=flexes.frames)
        springs, dampers = passive_spring_force(m, d), damper_force(m, d)
        whole = springs + dampers + flexes.whole
        parts = {
            "spring": springs + flexes.spring,
            "damper": dampers + flexes.damper,
            "gravcomp": _gravcomp(m, d),
            "fluid": fluid_force(m, d),
            "adhesion": adhesion_force(m, d),
        }
        if contacts is not None:
            push = contacts.force()
            parts["spring"], whole = parts["spring"] + push, whole + push
    # Sum in MuJoCo's order.
    whole = whole + parts["fluid"]
    if has_adhesion(m):
        whole = whole + parts["adhesion"]
    if m.flg_gravcomp:
        through = column(m.jnt_actgravcomp[m.dof_jntid].astype(bool), whole)
        whole = whole + jnp.where(through, 0, parts["gravcomp"])
    # Callbacks and plugins add their forces last.
    d = d.replace(qfrc_passive=whole, **{f"qfrc_{name}": f for name, f in parts.items()})
    return d if m.opt.disableflags & off == off else _add_user_forces(m, d)


def unsupported_passive_forces(m: Model) -> list[Refusal]:
    """Return the passive forces that are not supported."""
    found = [
        make_refusal(m, "body", b, what)
        for b in np.flatnonzero(m.body_plugin >= 0)
        if (what := _plugin_unsupported_reason(m, int(b), m.body_plugin[b]))
    ]
    return found


def _plugin_unsupported_reason(m: Model, body: int, instance: int) -> str:
    """Return the reason why a plugin cannot act on a body, or ""."""
    unknown = missing_function(m, instance, "passive")
    if unknown:
        return f"{unknown} is not supported"
    row = plugin_row(m.structure, instance)
    what = row.lacks(m, body)
    return f"plugin {row.name}: {what}" if what else ""


def _add_user_forces(m: Model, d: Data) -> Data:
    """Add the forces of the user's callback, then those of plugins."""
    if has_callback(m, "passive"):
        d = d.replace(qfrc_passive=d.qfrc_passive + passive_force(m, d))
    whole = d.qfrc_passive
    # Each plugin instance computes the force of all its bodies together.
    for instance in plugin_instances(m.body_plugin):
        served = served_elements(m, instance, m.body_plugin)
        whole = whole + call_plugin(m, d, instance, "passive", served, (m.nv,))
    return d.replace(qfrc_passive=whole)


def _gravcomp(m: Model, d: Data) -> Array:
    """Compute gravity compensation, an upward force at each center of mass; `[nv, *W]`."""
    if not m.flg_gravcomp or m.opt.disableflags & DisableBit.GRAVITY:
        return jnp.zeros_like(d.qvel)
    # The compensating force at each center of mass is -gravcomp * mass * gravity.
    weight = -m.body_mass * m.body_gravcomp
    force = Vec(*(g * weight for g in m.opt.gravity.parts))
    return wrench_force(m, d, force, force.map(jnp.zeros_like), d.xipos)
