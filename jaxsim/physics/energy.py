"""Potential and kinetic energy, `d.energy`."""

import jax.numpy as jnp

from jaxsim.data import Data
from jaxsim.enums import DisableBit
from jaxsim.model import Model
from jaxsim.physics.actuator.reflected import dof_armature, tendon_armature
from jaxsim.physics.spring import spring_energy
from jaxsim.physics.tree import total


def energy_pos(m: Model, d: Data) -> Data:
    """d.energy[0] = -sum(mass gravity . xipos) + energy stored in springs [J]."""
    kinetic = jnp.zeros_like(d.time) if d.energy is None else d.energy[1:]
    return d.replace(energy=jnp.concatenate([potential_energy(m, d), kinetic]))


def energy_vel(m: Model, d: Data) -> Data:
    """d.energy[1] = qvel . M qvel / 2 [J]."""
    potential = jnp.zeros_like(d.time) if d.energy is None else d.energy[:1]
    return d.replace(energy=jnp.concatenate([potential, kinetic_energy(m, d)]))


def potential_energy(m: Model, d: Data):
    """Energy of position in gravity and in springs, `[1, *W]`."""
    energy = spring_energy(m, d)
    if not m.opt.disableflags & DisableBit.GRAVITY:
        energy = energy - total(m.body_mass * d.xipos.dot(m.opt.gravity))
    return energy


def kinetic_energy(m: Model, d: Data):
    """Energy of the bodies' motion and of reflected inertias, `[1, *W]`.

    The same as qvel . M qvel / 2, by bodies: the mass matrix is not needed.
    """
    if not m.nv:
        return jnp.zeros_like(d.time)
    energy = total(d.cvel.dot(d.cinert @ d.cvel)) + total(dof_armature(m) * d.qvel * d.qvel)
    if m.ntendon:
        energy = energy + total(tendon_armature(m) * d.ten_velocity * d.ten_velocity)
    return 0.5 * energy
