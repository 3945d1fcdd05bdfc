"""Height fields against the oracle: all shapes over a bumpy field that is tilted and moved."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics.collision.two_geoms import random_quat
from tolerance import ROUNDING

from jaxsim.enums import GeomType
from jaxsim.io.bridge import put_model
from jaxsim.math import Quat, Rot, Vec
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.native import unpack
from jaxsim.physics.collision.convex.hfield import hfield_convex
from jaxsim.physics.collision.convex.prisms import fields
from jaxsim.physics.collision.shape import Placed

ROWS, COLS = 12, 9
SIZE = np.array([0.9, 0.5, 0.2, 0.1])  # the cells are not square
GEOMS = {
    "sphere": 'type="sphere" size=".12"',
    "capsule": 'type="capsule" size=".06 .12"',
    "ellipsoid": 'type="ellipsoid" size=".16 .1 .07"',
    "cylinder": 'type="cylinder" size=".09 .08"',
    "box": 'type="box" size=".12 .08 .06"',
    "mesh": 'type="mesh" mesh="hull"',
}
POLYHEDRA = ("box", "mesh")
STATES = 60


@functools.cache
def _model(margin: float) -> mujoco.MjModel:
    """A field, and one free body of each shape that collides with nothing else.

    Against boxes and meshes the oracle stops early where margins are exactly zero.
    """
    rng = np.random.default_rng(0)

    def numbers(a):
        return " ".join(f"{x:.6f}" for x in np.ravel(a))

    def body(name):
        own = margin or 1e-9 * (name in POLYHEDRA)
        return f"""<body><freejoint/><geom name="{name}" {GEOMS[name]} margin="{own}" contype="0"
          mass="1"/></body>"""

    hull = rng.normal(size=(24, 3))
    hull *= 0.14 / np.linalg.norm(hull, axis=1, keepdims=True)
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="1000"/><asset>
        <mesh name="hull" vertex="{numbers(hull)}"/>
        <hfield name="field" nrow="{ROWS}" ncol="{COLS}" size="{numbers(SIZE)}"
          elevation="{numbers(rng.uniform(size=(ROWS, COLS)))}"/></asset><worldbody>
        <geom type="hfield" hfield="field" pos=".3 -.2 .5" quat=".9 .3 -.2 .1" conaffinity="0"/>
        {"".join(body(name) for name in GEOMS)}</worldbody></mujoco>"""
    )


@functools.cache
def _states(margin: float) -> tuple[mujoco.MjData, ...]:
    """Shapes in all orientations: over the field, in it, and over its edges."""
    mj, rng, states = _model(margin), np.random.default_rng(1), []
    for _ in range(STATES):
        d = mujoco.MjData(mj)
        mujoco.mj_kinematics(mj, d)
        turn = d.geom_xmat[0].reshape(3, 3)
        for k in range(len(GEOMS)):
            local = rng.uniform(-1, 1, 3) * [1, 0.55, 0.16] + [0, 0, 0.16]
            d.qpos[7 * k : 7 * k + 7] = np.r_[d.geom_xpos[0] + turn @ local, random_quat(rng)]
        mujoco.mj_forward(mj, d)
        states.append(d)
    return tuple(states)


def _placed(mj, states) -> tuple[Placed, Placed]:
    """The field and the shapes, `[shapes, states]`."""
    pos, mat = (np.stack([getattr(d, f"geom_x{x}") for d in states], -1) for x in ("pos", "mat"))
    shape = (len(GEOMS), len(states))
    geoms = Placed(
        Vec(*(jnp.asarray(pos[1:, k]) for k in range(3))),
        Rot(*(jnp.asarray(mat[1:, k]) for k in range(9))),
        Vec(*(jnp.asarray(np.broadcast_to(mj.geom_size[1:, k, None], shape)) for k in range(3))),
        jnp.arange(1, mj.ngeom, dtype=jnp.int32)[:, None],
    )
    field = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], shape), geoms)._replace(
        pos=Vec(*(jnp.asarray(np.broadcast_to(pos[:1, k], shape)) for k in range(3))),
        rot=Rot(*(jnp.asarray(np.broadcast_to(mat[:1, k], shape)) for k in range(9))),
        id=jnp.zeros(shape, jnp.int32),
    )
    return field, geoms


collide = jax.jit(hfield_convex, compiler_options=OPTIMIZED)


@functools.cache
def _fields():
    """Of the model without margins: with them it is the same program as long as slots are."""
    m = put_model(_model(0.05))
    return fields(unpack(jax.tree.map(lambda x: x[..., None], m), 1))


@functools.cache
def _found(margin: float):
    """Contacts `[slots, shapes, states]`: dist, pos and normal."""
    mj = _model(margin)
    field, geoms = _placed(mj, _states(margin))
    reach = jnp.asarray(np.broadcast_to(mj.geom_margin[1:, None], (len(GEOMS), STATES)))
    touch = collide(field, geoms, _fields(), reach)
    assert not np.any(touch.lost)
    return [np.asarray(x) for x in (touch.dist, *touch.pos.parts, *touch.normal.parts)]


@pytest.mark.parametrize("margin", [0.0, 0.05])
@pytest.mark.parametrize("name", GEOMS)
def test_contacts_equal_the_oracle(name, margin):
    """The same number in the same order, each at the same place, depth and normal."""
    k = list(GEOMS).index(name)
    found = np.stack(_found(margin))[:, :, k]
    import sys
    E=[]; cnt=0; bad=0
    for i, d in enumerate(_states(margin)):
        c = d.contact
        of_geom = c.geom[:, 1] == k + 1
        expected = np.c_[c.dist, c.pos, c.frame[:, :3]][of_geom]
        mine = found[:, found[0, :, i] < FAR, i].T
        cnt += len(expected)
        if len(mine) != len(expected):
            bad += 1; print("COUNT", i, len(mine), len(expected), mine[:,0], expected[:,0]); continue
        E += list(np.c_[np.abs(mine-expected)[:,0], np.abs(mine-expected)[:,1:4].max(1), np.abs(mine-expected)[:,4:].max(1), expected[:,0]])
    E=np.array(E)
    print(name, margin, cnt, "bad", bad, "max", E[:,:3].max(0), "99%", np.percentile(E[:,:3],99,axis=0), "90%", np.percentile(E[:,:3],90,axis=0))
