"""Contacts of shells with `sdf` geoms against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.collision.field.fields_of_all import physics
from physics.collision.flex.test_flex_contacts import (
    COMPILER,
    FOUND,
    IDS,
    OF_ROWS,
    REALS,
    dense_rows,
    near,
    placed,
)
from states import random_state
from tolerance import DYNAMICS, FLOAT32, ROUGH_DIFFERENCE

import jaxsim
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.flex.field import sdf_triangle, shell_fields
from jaxsim.physics.collision.flex.item import RoundedHull
from jaxsim.physics.collision.shape import PlacedGeoms

WORLDS = 3
SHEET = (
    '<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" spacing=".06 .07 .06" '
    'pos="{pos}" radius=".02" mass=".5" {more}><edge equality="true"/>{pin}'
    '<contact selfcollide="none" contype="2" margin=".01" gap=".002" friction=".6 .01 .001"/>'
    "</flexcomp>"
)


def sheet(name: str, pos: str, count: str = "6 5 1", dim: int = 2, pin: str = "", more: str = ""):
    return SHEET.format(name=name, pos=pos, count=count, dim=dim, pin=pin, more=more)


# the first body touches nothing; rods and solids meet no sdf geom; a shell is fixed to its geom
TEXT = f"""<mujoco><option tolerance="0" iterations="60" ls_iterations="50"
sdf_initpoints="7" sdf_iterations="8"/>
<extension><plugin plugin="mujoco.sdf.torus"><instance name="t">
<config key="radius1" value=".35"/><config key="radius2" value=".15"/></instance></plugin>
</extension>
<asset><mesh name="ring"><plugin instance="t"/></mesh>
<mesh name="ball" builtin="sphere" params="1" scale=".2 .15 .1"/></asset>
<worldbody><body pos="0 0 4"><freejoint/><geom size=".1"/></body>
{sheet("rope", ".2 0 .12", "4 1 1", 1)}{sheet("high", "0 0 3")}
<body name="base" pos=".02 .01 0" euler="4 3 10"><freejoint/><geom type="sdf" mesh="ring"
margin=".003"><plugin instance="t"/></geom><geom size=".05" pos=".3 .1 .13"/>
{sheet("own", "-.3 0 .14", "4 3 1", pin='<pin id="4 5"/>')}</body>
<geom type="sdf" mesh="ball" pos="2 0 0" euler="10 5 0"/>
{sheet("cloth", ".3 0 .13", "7 6 1")}{sheet("over", "2 0 .08")}
{sheet("block", "2 0 .3", "3 2 2", 3)}
</worldbody></mujoco>"""


@cache
def program_models():
    return mujoco.MjModel.from_xml_string(TEXT), jaxsim.load_model(TEXT)


@cache
def program():
    mj, m = program_models()
    states = [random_state(mj, k, spread=0.003, speed=0.3) for k in range(WORLDS)]
    worlds = placed(m, states)
    run = jax.jit(jax.vmap(jaxsim.forward, (None, 0)), compiler_options=COMPILER)
    return mj, m, states, worlds, run(m, worlds)


def test_order_of_the_search():
    """Triangles are in the order in which MuJoCo traverses its bounding volume hierarchy."""
    mj, m = program_models()
    for f in np.flatnonzero(mj.flex_dim == 2):
        span = slice(mj.flex_bvhadr[f], mj.flex_bvhadr[f] + mj.flex_bvhnum[f])
        child, leaf = mj.bvh_child[span], mj.bvh_nodeid[span]
        waiting, order = [0], []
        while waiting:
            node = waiting.pop()
            if leaf[node] >= 0:
                order.append(leaf[node])
            else:
                waiting += [c for c in child[node] if c >= 0]
        start = m.flex_elemadr[f]
        np.testing.assert_array_equal(m.flex_elemorder[start:][: len(order)], order)


@pytest.mark.slow
def test_every_output():
    mj, _, states, _, found = program()
    for k, state in enumerate(states):
        n, rows = state.ncon, state.nefc
        mujoco.mj_rnePostConstraint(mj, state)
        pairs = {
            tuple(pair) for pair in np.stack([state.contact.geom[:, 0], state.contact.flex[:, 1]]).T
        }
        assert len({pair for pair in pairs if pair[1] >= 0}) >= 3
        assert int(found.ncon[k]) == n > 20
        assert int(found.nefc[k]) == rows
        for name in IDS:
            ours = np.asarray(getattr(found.contact, name))[k][:n]
            theirs = getattr(state.contact, name).reshape(ours.shape)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        for name in REALS:
            near(getattr(found.contact, name)[k][:n], getattr(state.contact, name), DYNAMICS, name)
        for name in OF_ROWS:
            near(getattr(found, name)[k][:rows], getattr(state, name), DYNAMICS, name)
        near(found.efc_J[k][:rows], dense_rows(mj, state), DYNAMICS, "efc_J")
        for name in FOUND:
            near(getattr(found, name)[k], getattr(state, name), DYNAMICS, name)


@cache
def triangles():
    """The ring of the model and triangles about it, at random."""
    mj, n = program_models()[0], 60
    rng = np.random.default_rng(0)
    (ring,) = np.flatnonzero(mj.geom_plugin >= 0)
    zero, one = jnp.zeros(n), jnp.ones(n)
    rot = Rot(one, zero, zero, zero, one, zero, zero, zero, one)
    geom = PlacedGeoms(
        Vec(zero, zero, zero), rot, Vec(zero, zero, zero), jnp.full(n, ring, jnp.int32)
    )
    turn = rng.uniform(0, 2 * np.pi, n)
    middle = np.stack([0.35 * np.cos(turn), 0.35 * np.sin(turn), rng.uniform(0.1, 0.2, n)])
    corner = tuple(Vec(*jnp.asarray(middle + 0.04 * rng.normal(size=(3, n)))) for _ in range(3))
    return geom, RoundedHull(corner, 0.02 * one), shell_fields(physics(mj)), jnp.zeros(n)


@pytest.mark.slow
def test_derivative():
    """Central differences of the contacts: a found point is fixed to its triangle."""
    geom, triangle, fields, reach = triangles()
    way = np.random.default_rng(1).normal(size=(4, 3, len(reach)))

    def of(t):
        there = geom._replace(pos=geom.pos + Vec(*jnp.asarray(way[3])).scale(t))
        corner = (
            c + Vec(*jnp.asarray(w)).scale(t) for c, w in zip(triangle.corner, way, strict=False)
        )
        touch = sdf_triangle(there, triangle._replace(corner=tuple(corner)), fields, reach)
        return jnp.stack([touch.dist, *touch.pos.parts, *touch.normal.parts])[:, 0]

    run = jax.jit(
        lambda t: (of(t), jax.jvp(of, (t,), (jnp.ones_like(t),))[1]), compiler_options=COMPILER
    )
    value, slope = run(jnp.zeros(()))
    numeric = (run(jnp.asarray(1e-7))[0] - run(jnp.asarray(-1e-7))[0]) / 2e-7
    here = np.asarray(value[0] < 0)
    assert here.sum() > 20
    close = np.isclose(slope[:, here], numeric[:, here], **ROUGH_DIFFERENCE)
    assert close.all(axis=0).mean() > 0.9  # the rest: where a step prefers another corner


@pytest.mark.slow
def test_single_precision():
    _, _, _, worlds, found = program()
    with jax.enable_x64(False):
        m = jaxsim.load_model(TEXT)
        d = jaxsim.make_data(m, keep=["contact", "ncon"])
        d = d.replace(qpos=jnp.asarray(worlds.qpos[0], np.float32))
        new = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, d)
    n = int(found.ncon[0])
    assert abs(int(new.ncon) - n) <= 1
    assert new.contact.dist.dtype == np.float32
    deep = np.sort(np.asarray(new.contact.dist))[:10]
    np.testing.assert_allclose(deep, np.sort(found.contact.dist[0])[:10], **FLOAT32)
