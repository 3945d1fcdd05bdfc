"""Contacts of geoms that would meet before the step ends, against MuJoCo's."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.physics.collision.candidates.plan import collision_layout

COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
jit = partial(jax.jit, compiler_options=COMPILER)

TEXT = """<mujoco><option timestep=".01" {option}><flag speculative="enable" {flag}/></option>
<asset><mesh name="prism" vertex="{prism}"/><mesh name="plate" vertex="{plate}"/></asset>
<default><geom {default}/></default><worldbody>{scene}</worldbody>{more}</mujoco>"""
PRISM = [
    (0.05 * x, 0.04 * y, z)
    for x, y in ((1, 0), (0.3, 1), (-1, 0.2), (0, -1))
    for z in (-0.04, 0.05)
]
PLATE = [(x, y, z) for x in (-0.4, 0.4) for y in (-0.4, 0.4) for z in (-0.01, 0.01)]
LYING = 'quat=".7071 .7071 0 0"'


def moving(geom, more=""):
    return f"<body><freejoint/><geom {geom}/>{more}</body>"


# what moves does not touch each other
ONE_SIDED = 'contype="2" conaffinity="1"'
FLAT = (
    moving('type="box" size=".04 .05 .06" solref="-1000 -20"')
    + moving('type="mesh" mesh="prism" margin=".01"')
    + moving(f'type="capsule" size=".04 .06" {LYING} solref=".03 .7"')
    + moving(f'type="cylinder" size=".05 .06" {LYING}')
)
# name: scene, more of the model, option, flag, default
SCENES = {
    "floor": ('<geom type="plane" size="3 3 .1" contype="1"/>' + FLAT, "", "", "", ONE_SIDED),
    "plate": (
        '<geom type="mesh" mesh="plate" contype="1"/>' + FLAT,
        "",
        'integrator="discrete" cone="elliptic"',
        "",
        ONE_SIDED,
    ),
    # round ones that meet each other, walls before walls, thin ones on the way
    "crowd": (
        '<geom name="far" type="box" size=".4 .4 .01"/>'
        '<geom type="cylinder" size=".2 .01" pos=".1 0 .1" rgba="0 0 0 0"/>'
        + moving('type="sphere" size=".05" margin=".01" gap=".02"')
        + moving('name="egg" type="ellipsoid" size=".03 .06 .1"', '<geom size=".02" pos="0 0 .2"/>')
        + moving('type="capsule" size=".01 .1" contype="2" conaffinity="2"'),
        '<contact><pair geom1="egg" geom2="far" solref=".01 .5" margin=".005"/></contact>',
        "",
        'multiccd="disable"',
        "",
    ),
}
FIELDS = (
    "dist",
    "pos",
    "frame",
    "geom",
    "dim",
    "includemargin",
    "efc_address",
    "solref",
    "exclude",
)


def loaded(name):
    scene, more, option, flag, default = SCENES[name]
    return described(scene, more, option, flag, default)


def described(scene, more="", option="", flag="", default=""):
    words = {"scene": scene, "more": more, "option": option, "flag": flag, "default": default}
    prism, plate = (" ".join(f"{x:.3f}" for p in mesh for x in p) for mesh in (PRISM, PLATE))
    xml = TEXT.format(prism=prism, plate=plate, **words)
    return mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)


def states(native, number):
    """Fast bodies above what does not move, more or less level."""
    rng, bodies = np.random.default_rng(2), native.nv // 6
    for _ in range(number):
        quat = np.array([1, 0, 0, 0]) + rng.choice([0.02, 0.2]) * rng.normal(size=(bodies, 4))
        quat /= np.linalg.norm(quat, axis=1, keepdims=True)
        pos = rng.uniform((-0.3, -0.3, 0.2), (0.3, 0.3, 0.5), (bodies, 3))
        lin = rng.uniform((-20, -20, -60), (20, 20, 0), (bodies, 3))
        rot = rng.choice([2, 20]) * rng.normal(size=(bodies, 3))
        yield np.hstack([pos, quat]).ravel(), np.hstack([lin, rot]).ravel()


def on_cap(native, geoms):
    """Return the contacts at corners of a cap, where rounding selects four of 16 corners."""
    same = (geoms[:, None] == geoms[None]).all(axis=2).sum(axis=1)
    cylinder = native.geom_type == mujoco.mjtGeom.mjGEOM_CYLINDER
    return (same > 2) & cylinder[geoms].any(axis=1)


def in_order(geoms, pos):
    """The order of contacts by their geoms, and those of the same two by where they are.

    Rounding decides which end of an edge comes first.
    """
    return np.lexsort((*np.round(pos.T, 5), geoms[:, 1], geoms[:, 0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_contacts_and_accelerations_are_those_of_mujoco(name):
    native, m = loaded(name)
    start, every = jaxsim.make_data(m), list(states(native, 24))

    def after(qpos, qvel):
        d = jaxsim.forward(m, start.replace(qpos=qpos, qvel=qvel))
        return d.ncon, d.nefc, d.contact, d.qacc

    ncon, nefc, contact, qacc = jit(jax.vmap(after))(*map(jnp.array, zip(*every, strict=True)))
    ahead = several = 0
    for i, (qpos, qvel) in enumerate(every):
        known = mujoco.MjData(native)
        known.qpos[:], known.qvel[:] = qpos, qvel
        mujoco.mj_forward(native, known)
        n = known.ncon
        assert (int(ncon[i].ravel()[0]), int(nefc[i].ravel()[0])) == (n, known.nefc), i
        ahead += int(np.sum(known.contact.dist > 0.05))
        several += len(known.contact.geom) - len({tuple(g) for g in known.contact.geom})
        certain = ~on_cap(native, known.contact.geom)
        for field in FIELDS:
            expected = getattr(known.contact, field)
            ours = np.asarray(getattr(contact, field))[i, :n].reshape(expected.shape)
            if field == "pos":
                geoms = known.contact.geom[certain]
                ours, expected = (x[certain][in_order(geoms, x[certain])] for x in (ours, expected))
            scale = 1 + np.abs(expected).max(initial=0)
            np.testing.assert_allclose(ours, expected, atol=1e-4 * scale, err_msg=f"{i} {field}")
        if certain.all():  # MuJoCo's normals of a cylinder are exact to 1e-4
            np.testing.assert_allclose(qacc[i], known.qacc, atol=1e-3 * (1 + abs(known.qacc).max()))
    assert ahead > 20
    assert several > 20 or name == "crowd"


BULLET = """<geom type="box" size=".4 .4 .005"/>
<body pos="0 0 1.03"><freejoint/><geom type="sphere" size=".02"/></body>"""


def test_a_bullet_does_not_go_through_a_thin_wall():
    native, m = described(BULLET)
    known = mujoco.MjData(native)
    known.qvel[:3] = 0.3, 0.2, -60
    d = jaxsim.make_data(m).replace(qvel=jnp.asarray(known.qvel))
    step = jit(jaxsim.step)
    for _ in range(30):
        mujoco.mj_step(native, known)
        d = step(m, d)
        np.testing.assert_allclose(d.qpos, known.qpos, atol=1e-8)
    assert known.qpos[2] > 0


@pytest.mark.slow
def test_worlds_and_gradients():
    _, m = described(BULLET)
    start = jaxsim.make_data(m)

    def after(speed):
        d = start.replace(qpos=start.qpos.at[2].set(0.3), qvel=start.qvel.at[2].set(-speed))
        return jaxsim.step(m, d).qvel[2]

    speeds = jnp.array([1.0, 40.0, 60.0])
    slopes, together = jit(jax.vmap(jax.grad(after))), jit(jax.vmap(after))
    alone = jit(after)
    np.testing.assert_allclose(together(speeds), [alone(v) for v in speeds], atol=1e-12)
    h = 1e-5
    known = (together(speeds + h) - together(speeds - h)) / (2 * h)
    np.testing.assert_allclose(slopes(speeds), known, atol=1e-5)


def test_without_the_flag_nothing_is_followed():
    _, m = described(BULLET)
    flags = m.opt.replace(enableflags=0)
    assert collision_layout(m).speculative
    assert not collision_layout(m.replace(opt=flags)).speculative


SLEEPERS = """<mujoco><option timestep="0.01"><flag sleep="enable" speculative="enable"/></option>
<worldbody>
  <body pos="0 0 .1" gravcomp="1"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 .1" sleep="init" gravcomp="1"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 .2999" sleep="init" gravcomp="1"><freejoint/><geom size=".1"/></body>
  <body pos="3 0 .13"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


@pytest.mark.slow
def test_a_contact_ahead_wakes_what_sleeps():
    """Two balls sleep, touching; a bullet wakes both in the step before it hits one."""
    mj = mujoco.MjModel.from_xml_string(SLEEPERS)
    mj.opt.tolerance, mj.opt.iterations = 1e-14, 100
    mjd = mujoco.MjData(mj)
    mjd.qvel[18] = -60
    m = jaxsim.put_model(mj)
    d = jaxsim.make_data(m)
    d = d.replace(qvel=jnp.asarray(mjd.qvel))
    step, history = jit(jaxsim.step), []
    for i in range(7):
        mujoco.mj_step(mj, mjd)
        d = step(m, d)
        np.testing.assert_array_equal(d.tree_asleep, mjd.tree_asleep, str(i))
        assert int(d.ncon) == mjd.ncon
        for name in ("geom", "dist", "pos", "efc_address"):
            ours = np.asarray(getattr(d.contact, name))[: mjd.ncon]
            np.testing.assert_allclose(ours, getattr(mjd.contact, name), atol=1e-9, err_msg=name)
        for name in ("qpos", "qvel"):
            np.testing.assert_allclose(getattr(d, name), getattr(mjd, name), atol=1e-8)
        history.append((int(d.tree_asleep[1]) < 0, bool((d.contact.dist[: mjd.ncon] > 0.1).any())))
    assert (False, False) in history
    assert (True, True) in history  # woken from afar


BESIDE_CLOTH = """<mujoco>
<option timestep="0.01" gravity="0 0 0"><flag speculative="enable"/></option>
<worldbody>
  <flexcomp name="f" type="grid" dim="2" count="3 3 1" mass="1" spacing=".1 .1 .1" radius=".01"
    pos="0 0 {}"><contact selfcollide="none"/><edge equality="true"/></flexcomp>
  <body pos="0 0 1"><freejoint/><geom size=".05"/></body>
  <body pos=".05 .05 .41"><freejoint/><geom size=".05"/></body>
  <geom size=".04" pos="0 0 .65"/>
</worldbody></mujoco>"""


@pytest.mark.slow
def test_flexes_are_not_followed_and_hide_nothing():
    """A bullet meets a ball from afar, before a cloth or through it; another ball lies on it."""
    step, touches, m = jit(jaxsim.step), [], None
    for height in (0.36, 0.8):
        mj = mujoco.MjModel.from_xml_string(BESIDE_CLOTH.format(height))
        mj.opt.tolerance, mj.opt.iterations = 1e-14, 100
        mjd = mujoco.MjData(mj)
        mjd.qvel[mj.nv - 10] = -60
        other = jaxsim.put_model(mj)
        m = (
            other
            if m is None
            else m.replace(**{n: getattr(other, n) for n in ("body_pos", "qpos0")})
        )
        d = jaxsim.make_data(m).replace(qpos=jnp.asarray(mjd.qpos), qvel=jnp.asarray(mjd.qvel))
        for i in range(3):
            mujoco.mj_step(mj, mjd)
            d = step(m, d)
            assert int(d.ncon) == mjd.ncon
            for name in ("geom", "flex", "elem", "dist", "pos", "efc_address"):
                ours = np.asarray(getattr(d.contact, name))[: mjd.ncon]
                theirs = getattr(mjd.contact, name)
                np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=f"{name} {i}")
            np.testing.assert_allclose(d.qvel, mjd.qvel, atol=1e-7)
            touches += [
                (k[0] >= 0, bool(x > 0.1))
                for k, x in zip(mjd.contact.flex[:, ::-1], mjd.contact.dist, strict=True)
            ]
    assert {(True, False), (False, True)} <= set(touches)
