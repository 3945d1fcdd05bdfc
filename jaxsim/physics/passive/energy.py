"""Potential and kinetic energy, `d.energy`."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import sum_items
from jaxsim.enums import DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.flex.stretch import edge_energy
from jaxsim.physics.passive.spring import spring_energy


def energy_pos(m: Model, d: Data) -> Data:
    """Compute d.energy[0] = -sum(mass gravity . xipos) + energy stored in springs [J].

    Corresponds to `mj_energyPos` in MuJoCo.
    """
    kinetic = jnp.zeros_like(d.time) if d.energy is None else d.energy[1:]
    return d.replace(energy=jnp.concatenate([potential_energy(m, d), kinetic]))


def energy_vel(m: Model, d: Data) -> Data:
    """Compute d.energy[1] = qvel . M qvel / 2 [J]; corresponds to `mj_energyVel` in MuJoCo."""
    potential = jnp.zeros_like(d.time) if d.energy is None else d.energy[:1]
    return d.replace(energy=jnp.concatenate([potential, kinetic_energy(m, d)]))


def potential_energy(m: Model, d: Data) -> Array:
    """Compute the potential energy of gravity and springs, `[1, *W]`."""
    energy = spring_energy(m, d)
    if m.nflex and not m.opt.disableflags & DisableBit.SPRING:
        energy = energy + edge_energy(m, d)
    if not m.opt.disableflags & DisableBit.GRAVITY:
        energy = energy - sum_items(m.body_mass * d.xipos.dot(m.opt.gravity))
    return energy


def kinetic_energy(m: Model, d: Data) -> Array:
    """Compute qvel . M qvel / 2, `[1, *W]`.

    This is not the sum over bodies and tendons: M omits what tendons couple across branches.
    """
    if not m.nv:
        return jnp.zeros_like(d.time)
    return 0.5 * sum_items(d.qvel * apply(d.M, d.qvel))
