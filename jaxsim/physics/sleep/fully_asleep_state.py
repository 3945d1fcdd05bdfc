"""Test for fully asleep, undisturbed states, whose step costs next to nothing.

MuJoCo skips sleeping objects one by one. A program shared by all worlds can only branch as a whole:
if all worlds that are stepped together sleep and nothing wakes them. The wake tests are those of
wake.py; contacts with mocap bodies are tested conservatively by bounding volumes.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import EnableBit, GeomType, IntegratorType, SensorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.candidates.broadphase import EXTENT_FUNCTIONS, may_collide
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contacts import place_bounding_boxes, place_collision_geoms
from jaxsim.physics.collision.params import contact_params
from jaxsim.physics.sleep.incidence import surface_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_asleep
from jaxsim.physics.sleep.wake import may_wake_any, wake_by_equalities
from jaxsim.transforms.platform import platform


def may_skip(m: Model) -> bool:
    """Return True if there is a shorter program for states in which every tree sleeps.

    Excluded are models with user functions, which rely on contacts and forces; RK4, whose stages
    wake trees that fell asleep; and the flag fwdinv, which compares values that the short program
    omits.
    """
    # User functions may observe skipped results.
    user_functions = m.callbacks is not None or np.any(m.sensor_type == SensorType.PLUGIN)
    needs_all = m.opt.enableflags & EnableBit.FWDINV or m.opt.integrator == IntegratorType.RK4
    return can_sleep(m) and platform().branches and not user_functions and not needs_all


def stays_fully_asleep(m: Model, d: Data) -> Array:
    """Return True if every tree of every world sleeps and is not disturbed, a bool of shape ()."""

    # Only these tests run for sleeping worlds: no collision detection, no constraint rows.
    def undisturbed() -> Array:
        posed = kinematics(m, d)
        woken = wake_by_equalities(m, posed)
        wakes_by_equality = jnp.any(woken.tree_asleep < 0)
        return ~(may_wake_any(m, d, posed) | wakes_by_equality | jnp.any(_near_mocap(m, posed)))

    return lax.cond(jnp.all(tree_asleep(d) >= 0), undisturbed, lambda: jnp.zeros((), bool))


def _near_mocap(m: Model, d: Data) -> Array:
    """Return the candidate pairs that may touch a mocap body: bool `[n, *W]`.

    Static geoms that a file pairs with a mocap body are included: they wake nothing, but make a
    contact. Flexes are not woken by mocap bodies.
    """
    # Candidate pairs with a mocap body on one side.
    plan, mocap = collision_layout(m), surface_incidence(m).always
    pairs = plan.pairs
    with_mocap = mocap[pairs.geom1] | mocap[pairs.geom2]
    candidates = np.flatnonzero(with_mocap & (pairs.geom2 < m.ngeom))
    if not len(candidates):
        return jnp.zeros((0, *d.qpos.shape[1:]), bool)
    reach = contact_params(m, pairs).reach
    geoms = place_collision_geoms(m, d, plan)._replace(box=place_bounding_boxes(m, d))
    types = m.geom_type[np.stack([pairs.geom1, pairs.geom2])[:, candidates]]
    parts = []
    # Bounding-volume test by pair of geom types; None: test their bounding boxes.
    for kind in np.unique(types, axis=1).T:
        ids = candidates[(types == kind[:, None]).all(axis=0)]
        tested_types = (
            tuple(kind)
            if kind[0] == GeomType.PLANE or {*kind.tolist()} <= {*EXTENT_FUNCTIONS}
            else None
        )
        parts.append(
            may_collide(
                tested_types, geoms, pairs.geom1[ids], pairs.geom2[ids], gather_static(reach, ids)
            )
        )
    worlds = d.qpos.shape[1:]
    return jnp.concatenate([jnp.broadcast_to(a, (len(a), *worlds)) for a in parts])
