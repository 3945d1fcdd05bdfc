"""Whether nothing stirs: the question that lets a step of sleeping worlds cost next to nothing.

MuJoCo skips what sleeps, thing by thing. A program that all worlds share can skip where it may
branch: there the worlds that are stepped together all sleep, and nothing wakes them. What would
wake a tree is asked by the functions that wake (wake.py), and of contacts by a cheap test.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import EnableBit, GeomType, IntegratorType, SensorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import take
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.candidates.broadphase import EXTENT, near
from jaxsim.physics.collision.candidates.plan import layout
from jaxsim.physics.collision.contacts import placed_boxes, placed_geoms
from jaxsim.physics.collision.params import contact_params
from jaxsim.physics.sleep.incidence import surfaces
from jaxsim.physics.sleep.trees import sleeps, tree_asleep
from jaxsim.physics.sleep.wake import disturbed, wake_by_equalities


def may_skip(m: Model) -> bool:
    """Whether there is a shorter program for states in which everything sleeps.

    Not with functions of the user, who is promised contacts and forces; nor for RK4, whose stages
    wake what fell asleep, and the flag fwdinv, which compares what is left out.
    """
    asks = m.callbacks is not None or np.any(m.sensor_type == SensorType.PLUGIN)
    compares = m.opt.enableflags & EnableBit.FWDINV or m.opt.integrator == IntegratorType.RK4
    return sleeps(m) and platform().branches and not asks and not compares


def nothing_stirs(m: Model, d: Data) -> Array:
    """Whether every tree of every world sleeps and goes on, one bool for all worlds."""

    def undisturbed() -> Array:
        moved = kinematics(m, d)
        woken = wake_by_equalities(m, moved)
        tied = jnp.any(woken.tree_asleep < 0)
        return ~(disturbed(m, d, moved) | tied | jnp.any(_near_mocap(m, moved)))

    return lax.cond(jnp.all(tree_asleep(d) >= 0), undisturbed, lambda: jnp.zeros((), bool))


def _near_mocap(m: Model, d: Data) -> Array:
    """Which geoms may touch one of a mocap body: bool `[n, *W]`; without contacts, they may not.

    Also what is fixed, where a file pairs it with one: it wakes nothing, but there is a contact.
    A flex is not woken by one.
    """
    plan, always = layout(m), surfaces(m).always
    pairs = plan.pairs
    moves = always[pairs.geom1] | always[pairs.geom2]
    asked = np.flatnonzero(moves & (pairs.geom2 < m.ngeom))
    if not len(asked):
        return jnp.zeros((0, *d.qpos.shape[1:]), bool)
    reach = contact_params(m, pairs).reach
    geoms = placed_geoms(m, d, plan)._replace(box=placed_boxes(m, d))
    types = m.geom_type[np.stack([pairs.geom1, pairs.geom2])[:, asked]]
    parts = []
    for kind in np.unique(types, axis=1).T:
        ids = asked[(types == kind[:, None]).all(axis=0)]
        known = tuple(kind) if kind[0] == GeomType.PLANE or {*kind.tolist()} <= {*EXTENT} else None
        parts.append(near(known, geoms, pairs.geom1[ids], pairs.geom2[ids], take(reach, ids)))
    worlds = d.qpos.shape[1:]
    return jnp.concatenate([jnp.broadcast_to(a, (len(a), *worlds)) for a in parts])
