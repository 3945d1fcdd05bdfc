"""One step as a function: transformations, many worlds, precision, and worlds that go bad."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import FLOAT32, ROUGH_DIFFERENCE, SAME, STAGE, STAGES

from jaxsim.enums import WarningType
from jaxsim.io.bridge import put_model
from jaxsim.model.data import ALWAYS_KEPT, IPC_FIELDS, SINGLE_FIELDS, SLEEP_FIELDS
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data
from jaxsim.transforms.materialize import is_unbatched

pytestmark = pytest.mark.kernels

SCENE = """
<mujoco><option timestep=".005"><flag {flag}/></option><worldbody>
  <geom type="plane" size="2 2 1"/>
  <body pos="0 0 .095"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 1"><joint axis="0 1 0" damping=".1"/><geom size=".05" pos=".3 0 0"/></body>
  <body name="hand" mocap="true" pos="0 1 1"/></worldbody>
<actuator><general joint="" dyntype="filter" dynprm=".1"/></actuator></mujoco>
""".replace('joint=""', 'joint="j"').replace("<joint axis", '<joint name="j" axis')


@cache
def model(flag: str = ""):
    return put_model(mujoco.MjModel.from_xml_string(SCENE.format(flag=flag)))


@cache
def start(worlds: int):
    """Worlds at rest on the floor, with different speeds and controls."""
    m = model()
    rng = np.random.default_rng(0)
    d = jax.tree.map(lambda a: jnp.repeat(a[None], worlds, 0), make_data(m))
    qvel = jnp.asarray(rng.normal(size=(worlds, m.nv)))
    return d.replace(qvel=qvel, ctrl=jnp.asarray(rng.normal(size=(worlds, m.nu))))


@cache
def alone():
    return jax.jit(step)


@cache
def together():
    return jax.jit(jax.vmap(step, (None, 0)))


def one(d, k: int):
    return jax.tree.map(lambda a: a[k], d)


def assert_same(found, expected):
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(
            a, b, err_msg=jax.tree_util.keystr(path), rtol=STAGES["rtol"], atol=STAGE["atol"]
        )


def test_many_worlds_are_worlds():
    """Enough of them for the code of many worlds, which pins values and factors by panels."""
    m, d = model(), start(6)
    assert not is_unbatched(d.qpos.T)
    found = together()(m, d)
    assert found.ncon.tolist() == [1] * 6
    for k in range(6):
        assert_same(one(found, k), alone()(m, one(d, k)))


@pytest.mark.slow
def test_worlds_in_two_axes():
    m, d = model(), start(6)
    folded = jax.tree.map(lambda a: a.reshape(2, 3, *a.shape[1:]), d)
    found = jax.jit(jax.vmap(jax.vmap(step, (None, 0)), (None, 0)))(m, folded)
    flat = jax.tree.map(lambda a: a.reshape(6, *a.shape[2:]), found)
    assert_same(flat, together()(m, d))


def test_worlds_with_models_of_their_own():
    """A mass and the time step differ from world to world; the rest of the model is shared."""
    m, d = model(), start(3)

    def with_numbers(mass, h):
        return m.replace(body_mass=mass, opt=m.opt.replace(timestep=h))

    mass = m.body_mass[None] * jnp.asarray([1.0, 1.5, 2.0])[:, None]
    h = jnp.asarray([0.001, 0.002, 0.004])
    many = jax.jit(jax.vmap(lambda a, b, d: step(with_numbers(a, b), d)))
    found = many(mass, h, d)
    for k in range(3):
        assert_same(one(found, k), alone()(with_numbers(mass[k], h[k]), one(d, k)))


@pytest.mark.slow
def test_gradients_of_many_worlds():
    """vmap(grad) and grad(vmap) agree, and with finite differences."""
    m, d = model(), start(3)

    def height(qvel, d):
        new = step(m, d.replace(qvel=qvel))
        return new.qpos[2] + new.qpos[7] + new.qvel.sum()

    each = jax.jit(jax.vmap(jax.grad(height)))(d.qvel, d)
    every = jax.jit(jax.grad(lambda v: jax.vmap(height)(v, d).sum()))(d.qvel)
    np.testing.assert_allclose(each, every, rtol=STAGES["rtol"], atol=STAGE["atol"])

    direction = jnp.asarray(np.random.default_rng(1).normal(size=d.qvel.shape))
    eps = 1e-6

    def moved(t):
        new = together()(m, d.replace(qvel=d.qvel + t * direction))
        return new.qpos[:, 2] + new.qpos[:, 7] + new.qvel.sum(-1)

    differences = (moved(eps) - moved(-eps)) / (2 * eps)
    np.testing.assert_allclose(
        (each * direction).sum(-1), differences, rtol=ROUGH_DIFFERENCE["rtol"]
    )


@pytest.mark.slow
def test_steps_in_a_scan():
    m, d = model(), one(start(1), 0)
    scanned, _ = jax.jit(lambda m, d: jax.lax.scan(lambda d, _: (step(m, d), None), d, length=5))(
        m, d
    )
    for _ in range(5):
        d = alone()(m, d)
    assert_same(scanned, d)
    np.testing.assert_allclose(d.time, 5 * m.opt.timestep, **SAME)


def test_second_step_is_the_same_program():
    """Results have the types of the inputs, weak types included; so has a lean Data."""
    m = model()
    for keep in ("all", "default", ()):
        d = make_data(m, keep)
        out = jax.eval_shape(step, m, d)
        assert jax.tree.structure(out) == jax.tree.structure(d)
        for a, b in zip(jax.tree.leaves(out), jax.tree.leaves(d), strict=True):
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
    d = make_data(m)
    before = alone()._cache_size()
    for _ in range(3):
        d = alone()(m, d)
    assert alone()._cache_size() <= before + 1


@pytest.mark.slow
def test_single_precision():
    """Every float stays float32, and a short motion is that of float64 to single precision."""

    def single(tree):
        return jax.tree.map(lambda a: a.astype(jnp.float32) if a.dtype == jnp.float64 else a, tree)

    m, d = model(), start(2)
    a, b = together(), d
    few = single(d)
    for _ in range(10):
        few, b = a(single(m), few), a(m, b)
    for x, y in zip(jax.tree.leaves(few), jax.tree.leaves(b), strict=True):
        assert x.dtype == (jnp.float32 if y.dtype == jnp.float64 else y.dtype)
    np.testing.assert_allclose(few.qpos, b.qpos, **FLOAT32)
    np.testing.assert_allclose(few.qvel, b.qvel, rtol=1e-3, atol=1e-3)  # contacts are stiff


@pytest.mark.slow
@pytest.mark.parametrize("autoreset", [True, False])
def test_bad_worlds_are_counted_and_start_again(autoreset):
    """One world for each kind of bad number, between two good ones."""
    m = model("" if autoreset else 'autoreset="disable"')
    d = start(5)
    bad = d.replace(
        qpos=d.qpos.at[1, 0].set(jnp.nan),
        qvel=d.qvel.at[2, 3].set(1e11),
        qfrc_applied=d.qfrc_applied.at[3, 6].set(1e13),
        time=d.time + 1,
    )
    found = together()(m, bad)
    kinds = (WarningType.BADQPOS, WarningType.BADQVEL, WarningType.BADQACC)
    for world, kind in zip((1, 2, 3), kinds, strict=True):
        counts = found.warning[world]
        assert counts[kind] == 1
        if autoreset:
            assert counts.sum() == 1
            assert bool(jnp.isfinite(found.qpos[world]).all())
    assert not found.warning[jnp.array([0, 4])].any()
    good = together()(m, d.replace(time=d.time + 1))
    for world in (0, 4):
        assert_same(one(found, world), one(good, world))
    if not autoreset:
        return
    # the state of two is one step after the start, that of the last is the start
    fresh = alone()(m, make_data(m))
    for world in (1, 2):
        np.testing.assert_allclose(
            found.qpos[world], fresh.qpos, rtol=STAGES["rtol"], atol=STAGE["atol"]
        )
        np.testing.assert_allclose(found.time[world], m.opt.timestep, **SAME)
    np.testing.assert_array_equal(found.qpos[3], m.qpos0)
    assert found.time[3] == 0
    assert not found.qfrc_applied[3].any()
    assert not found.ctrl[1].any()


@pytest.mark.slow
def test_a_world_that_was_put_back_has_no_bad_number():
    """One bad number in each input of one world: it is at the start, or the number had no effect on
    the motion; the other worlds do not notice."""
    m = put_model(mujoco.MjModel.from_xml_string(POISONED))
    d = jax.tree.map(lambda a: jnp.repeat(a[None], 3, 0), make_data(m, "all"))
    d = d.replace(userdata=d.userdata + 1, eq_active=~d.eq_active)
    run = jax.jit(jax.vmap(step, (None, 0)))
    good = run(m, d)
    aside = {
        "warning",
        "warning_lastinfo",
        "solver_niter",
        "eq_active",
        "time",
        "userdata",
    }
    aside |= SLEEP_FIELDS | IPC_FIELDS | SINGLE_FIELDS
    for name in sorted(ALWAYS_KEPT - aside):
        value = np.array(getattr(d, name))
        if not value.size:
            continue
        last = value.reshape(3, -1).shape[1] - 1
        value.reshape(3, -1)[1, last] = np.nan
        found = run(m, d.replace(**{name: jnp.asarray(value)}))
        for world in (0, 2):
            for a, b in zip(*map(jax.tree.leaves, (found, good)), strict=True):
                np.testing.assert_array_equal(a[world], b[world], err_msg=name)
        bad = one(found, 1)
        reset = int(bad.warning[jnp.array([3, 4, 5])].sum()) == 1
        assert reset or name in ("ctrl", "qacc_warmstart"), name
        assert bool(bad.warning[WarningType.BADCTRL]) == (name == "ctrl")
        if bad.warning[WarningType.BADQACC]:
            start = make_data(m, "all")
            for (path, a), b in zip(
                jax.tree.leaves_with_path(
                    bad.replace(warning=start.warning, warning_lastinfo=start.warning_lastinfo)
                ),
                jax.tree.leaves(start),
                strict=True,
            ):
                label = name + jax.tree_util.keystr(path)
                np.testing.assert_array_equal(a, b, err_msg=label)
        for path, a in jax.tree.leaves_with_path(bad if reset else bad.replace(ctrl=d.ctrl[1])):
            assert np.isfinite(a).all(), name + jax.tree_util.keystr(path)


POISONED = """
<mujoco><option><flag energy="enable"/></option><size nuserdata="2"/><worldbody>
  <geom type="plane" size="2 2 1"/>
  <body pos="0 0 2"><freejoint/><geom size=".1"/><site name="s"/></body>
  <body name="b" pos="1 0 .09"><freejoint/><geom size=".1"/><site name="t" size=".2"/></body>
  <body name="hand" mocap="true" pos="0 1 1"/></worldbody>
<equality><weld body1="hand" body2="b"/></equality>
<actuator><general site="s" dyntype="filter" dynprm=".1" gear="1 2 3 0 0 0"/></actuator>
<sensor><touch site="t"/><accelerometer site="s"/><framepos objtype="body" objname="b"/></sensor>
</mujoco>"""
