"""Models drawn in physical parameters: what belongs together stays together, and is what is run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.envs import Delayed, Env, Pushed, VectorEnv, factor, randomize, shift
from jaxsim.identify import linear, log, pseudo_inertia, scale

XML = """<mujoco><option timestep=".01"/><worldbody>
<body name="torso"><joint name="hip" axis="0 1 0" damping=".1"/>
<geom name="box" type="box" size=".1 .2 .3" pos=".1 0 0" mass="2" friction=".8 .01 .001"/>
<body name="leg" pos=".3 0 0"><joint name="knee" axis="0 1 0" damping=".2"/>
<geom size=".05" pos=".1 0 0" mass="1"/>
<body name="foot" pos=".3 0 0"><joint name="ankle" axis="0 1 0"/><geom size=".05" pos=".1 0 0"/>
</body></body></body></worldbody>
<actuator><position name="hip" joint="hip" kp="200" kv="9"/><velocity name="knee" joint="knee"
kv="3"/><motor name="ankle" joint="ankle" gear="2"/>
<position name="late" joint="ankle" kp="5" delay=".02" nsample="4"/></actuator></mujoco>"""
WORLDS = 6
KEYS = jax.random.split(jax.random.key(1), WORLDS)


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


def ratios(m, models, field):
    """Drawn numbers by those of the model, where these are not zero."""
    old, new = np.asarray(getattr(m, field)), np.asarray(getattr(models, field))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(old == 0, np.nan, new / old)


def one_factor(x):
    """The factor of all of some numbers of each world, which are equal, (worlds,)."""
    x = x.reshape(len(x), -1)
    x = x[:, ~np.isnan(x[0])]
    np.testing.assert_allclose(x, np.broadcast_to(x[:, :1], x.shape), rtol=1e-6)
    return x[:, 0]


# name, the numbers that change by one factor: field and index
COUPLED = {
    "body:torso/mass": [("body_mass", 1), ("body_inertia", 1)],
    "body:torso/inertia": [("body_inertia", 1)],
    "actuator:hip/kp": [("actuator_gainprm", (0, 0)), ("actuator_biasprm", (0, 1))],
    "actuator:hip/kv": [("actuator_biasprm", (0, 2))],
    "actuator:knee/kv": [("actuator_gainprm", (1, 0)), ("actuator_biasprm", (1, 2))],
    "actuator:ankle/gain": [("actuator_gainprm", (2, 0))],
    "geom:box/friction": [("geom_friction", 0)],
    "joint:knee/damping": [("dof_damping", 1)],
    "body_inertia": [("body_inertia", 2)],
}


@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("form", [(0.5, 1.5), scale(0.5, 1.5)], ids=["uniform", "logarithmic"])
def test_all_numbers_of_an_object_have_one_factor(m, name, form):
    models, _ = randomize(m, KEYS, {name: form}, derive=False)
    found = []
    for field, index in COUPLED[name]:
        index = index if isinstance(index, tuple) else (index,)
        found.append(ratios(m, models, field)[(slice(None), *index)].reshape(WORLDS, -1))
    drawn = one_factor(np.concatenate(found, axis=1))
    assert len(np.unique(drawn)) == WORLDS
    assert drawn.min() >= 0.5 - 1e-9
    assert drawn.max() <= 1.5 + 1e-9
    # nothing else has moved
    moved = {f for f, _ in COUPLED[name]}
    for field in ("body_mass", "body_inertia", "actuator_gainprm", "actuator_biasprm",
                  "geom_friction", "dof_damping"):  # fmt: skip
        if field not in moved:
            assert getattr(models, field).shape == getattr(m, field).shape


def test_objects_of_a_wildcard_have_factors_of_their_own_unless_shared(m):
    for form, equal in (((0.5, 1.5), False), (factor(0.5, 1.5, share=True), True)):
        models, _ = randomize(m, KEYS, {"body:*/mass": form}, derive=False)
        drawn = ratios(m, models, "body_mass")[:, 1:]
        assert (np.abs(drawn[:, 0] - drawn[:, 1]) < 1e-9).all() == equal
        np.testing.assert_allclose(ratios(m, models, "body_inertia")[:, 1:, 0], drawn, rtol=1e-9)


@pytest.mark.parametrize(
    ("form", "low", "high"),
    [
        (linear(100.0, 300.0), 100, 300),
        (log(100.0, 300.0), 100, 300),
        (shift(-50, 50), 150, 250),
        (log(sd=0.1), 100, 400),
        (linear(150.0, 250.0, mean=200.0, sd=30.0), 150, 250),
    ],
)
def test_a_servo_stays_one_whatever_its_gain_is_drawn_from(m, form, low, high):
    models, _ = randomize(m, KEYS, {"actuator:hip/kp": form}, derive=False)
    kp = np.asarray(models.actuator_gainprm[:, 0, 0])
    np.testing.assert_allclose(models.actuator_biasprm[:, 0, 1], -kp)
    assert len(np.unique(kp)) == WORLDS
    assert low <= kp.min() < kp.max() <= high


def test_a_payload_takes_its_inertia_along(m):
    models, _ = randomize(m, KEYS, {"body:torso/mass": shift(0.5, 3)}, derive=False)
    added = np.asarray(models.body_mass[:, 1]) - 2
    assert (added >= 0.5).all()
    expected = np.asarray(m.body_inertia[1]) * (1 + added / 2)[:, None]
    np.testing.assert_allclose(models.body_inertia[:, 1], expected, rtol=1e-9)


def test_bodies_of_a_pseudo_inertia_are_possible(m):
    models, axes = randomize(m, KEYS, {"body:*/inertia": pseudo_inertia(sd=0.5)}, derive=False)
    moments = np.sort(np.asarray(models.body_inertia[:, 1:]), axis=-1)
    assert (moments[..., 2] < moments[..., 0] + moments[..., 1]).all()
    assert axes.body_ipos == 0
    np.testing.assert_allclose(np.linalg.norm(models.body_iquat, axis=-1), 1, rtol=1e-9)


def test_a_rotation_turns_by_no_more_than_its_range(m):
    models, _ = randomize(m, KEYS, {"body:leg/rotation": shift(-0.1, 0.1)}, derive=False)
    turned = 2 * np.arccos(np.clip(np.abs(np.asarray(models.body_quat[:, 2, 0])), 0, 1))
    assert (turned > 0).all()
    assert (turned < 0.1 * np.sqrt(3)).all()


@pytest.mark.slow
def test_options_have_one_factor_and_derived_constants_follow(m):
    models, axes = randomize(m, KEYS, {"opt.gravity": (0.5, 1), "body:leg/mass": (1, 2)})
    np.testing.assert_allclose(one_factor(np.asarray(models.opt.gravity)[:, 2:] / -9.81) <= 1, True)
    own = jax.jit(jaxsim.set_const)(
        m.replace(body_mass=models.body_mass[2], body_inertia=models.body_inertia[2])
    )
    np.testing.assert_allclose(models.dof_invweight0[2], own.dof_invweight0, rtol=1e-9)
    np.testing.assert_allclose(models.body_subtreemass[2], own.body_subtreemass, rtol=1e-9)
    assert axes.geom_rbound is None


SERVO = """<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body>
<joint name="hip" axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="1"/></body></worldbody>
<actuator><position name="hip" joint="hip" kp="20" kv="3"/></actuator></mujoco>"""


@pytest.mark.slow
def test_a_servo_comes_to_rest_where_it_is_told():
    """Whatever its gain: without gravity the control is the angle."""
    m = jaxsim.load_model(SERVO)
    models, axes = randomize(m, KEYS, {"actuator:hip/kp": (0.5, 1.5)}, derive=False)
    worlds = VectorEnv(Env(m, repeat=50), model=models, axes=axes)
    state, step = jax.jit(worlds.reset)(KEYS), jax.jit(worlds.step)
    for _ in range(10):
        state = step(state, jnp.full((WORLDS, 1), 0.5))
    np.testing.assert_allclose(state.data.qpos[:, 0], 0.5, atol=1e-3)


BAD = {
    "body:torsi/mass": ((1, 2), "did you mean 'torso'"),
    "body:torso/mas": ((1, 2), "did you mean 'mass'"),
    "bod:torso/mass": ((1, 2), "did you mean 'body'"),
    "body_mas": ((1, 2), "did you mean 'body_mass'"),
    "body:torso/mass": ((2, 1), r"expected \[lowest, highest\] factor, got \[2, 1\]"),
    "body:leg/mass": (shift(-1, 1), "expected above 0, and the least that may be drawn is 0"),
    "body:foot/mass": (linear(sd=0.1), "above 0; give bounds"),
    "body:leg/inertia": (shift(0, 1), "moments change by a factor"),
    "body:leg/inertia[0]": ((1, 2), "its numbers change together"),
    "body_inertia[1]": ((1, 2), "moments change together"),
    "body_inertia": (linear(0.1, 1), "moments change by a factor"),
    "joint:hip/damping": (shift(-1, 0), "expected at least 0"),
    "joint:*/frictionloss": ((0.5, 1), "has 0 there, of which a factor changes nothing"),
    "joint:hip/springyield": (linear(1, 2), "write it in the model before it is loaded"),
    "actuator:ankle/kp": ((1, 2), "actuator 'ankle' has no 'kp'; it has 'gain'"),
    "actuator:hip/gain": ((1, 2), "it has 'kp' and 'kv'"),
    "actuator:hip/delay": (linear(0, 0.01), "write nsample in the model"),
    "actuator:late/delay": (linear(0, 1), "the history holds 0.04 s"),
    "ctrl:hip/delay": (linear(0, 0.1), "actions are delayed by Delayed"),
    "geom:box/friction": (linear(0.5, 1), r"choose one: 'geom:box/friction\[0\]'"),
    "dof_invweight0": ((1, 2), "follows from other numbers"),
    "body_quat": ((1, 2), "use '/rotation'"),
    "jnt_axis": ((1, 2), "use '/rotation'"),
    "body:leg/rotation": ((1, 2), "drawn by shift"),
    "geom:box/size": (3, r"expected \[lowest, highest\] factor, shift"),
    "geom:box/margin": (scale(0.5, 2, frozen=True), "frozen"),
    "geom:box/solmix": (linear(), "expected bounds, or sd"),
    "joint:hip/range": (shift(0, 1), "nothing is limited there"),
    "actuator:*/forcerange": (shift(-1, 1), "nothing is limited there"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_drawn_is_told(m, name):
    form, message = BAD[name]
    with pytest.raises(ValueError, match=message) as caught:
        randomize(m, KEYS, {name: form})
    assert str(caught.value).startswith(name)


def test_the_place_of_a_free_body_is_no_number_of_the_model():
    free = '<body name="b"><freejoint/><geom size=".1"/></body><body name="f"/>'
    m = jaxsim.load_model(f"<mujoco><worldbody>{free}</worldbody></mujoco>")
    for name in ("body:b/pos", "body:b/rotation"):
        with pytest.raises(ValueError, match=f"{name}: a body with a free joint is placed by qpos"):
            randomize(m, KEYS, {name: shift(-1, 1)})
    models, _ = randomize(m, KEYS, {"body:f/pos": shift(-1, 1)})
    assert len(set(np.asarray(models.body_pos[:, 2, 0]).tolist())) == WORLDS


def test_a_list_of_ranges_may_name_a_parameter_twice(m):
    both = [("joint:knee/damping", (2, 2)), ("joint:knee/damping", shift(0.5, 0.5))]
    models, _ = randomize(m, KEYS, both)
    np.testing.assert_allclose(models.dof_damping[:, 1], 2 * m.dof_damping[1] + 0.5, rtol=1e-6)


def test_functions_that_make_impossible_bodies_or_return_no_leaves_are_told(m):
    def entries(m, key):
        return {"body_inertia": m.body_inertia * jax.random.uniform(key, m.body_inertia.shape)}

    with pytest.raises(
        ValueError, match=r"would have moments .* not physical; draw 'body:NAME/mass'"
    ):
        randomize(m, KEYS, entries, derive=False)
    with pytest.raises(ValueError, match=r"got a Model; return {'body_mass': new.body_mass"):
        randomize(m, KEYS, lambda m, key: m)
    with pytest.raises(ValueError, match=r"got one key; jax.random.split"):
        randomize(m, KEYS[0], {"body:leg/mass": (1, 2)})
    with pytest.raises(ValueError, match="sets the same number as 'body:leg/mass'"):
        randomize(m, KEYS, {"body:leg/mass": (1, 2), "body:*/inertia": pseudo_inertia(sd=0.1)})


@pytest.mark.parametrize("name", ["body_mass", "actuator_gainprm", "actuator_biasprm", "geom_size"])
def test_a_bare_field_that_leaves_others_behind_warns(m, name):
    with pytest.warns(UserWarning, match=f"{name}: changes alone: .*; use 'a|'b"):
        randomize(m, KEYS, {name: (0.9, 1.1)}, derive=False)


class Seen(Env):
    """Sees the numbers of its own model."""

    def observe(self, m, d):
        return jnp.concatenate([d.qpos, m.body_mass[1:2], m.body_subtreemass[1:2]])


RANGES = {"body:torso/mass": (0.5, 1.5), "actuator:hip/kp": (0.5, 1.5)}


@pytest.mark.short("next")
@pytest.mark.parametrize("mode", ["next", pytest.param("same", marks=pytest.mark.slow), None])
def test_each_episode_may_draw_its_model(m, mode):
    """New numbers when an episode begins, the same within it, and the physics is theirs."""
    worlds = VectorEnv(Seen(m), length=3, autoreset=mode, randomize=RANGES)
    step, state = jax.jit(worlds.step), jax.jit(worlds.reset)(KEYS)
    actions = jnp.full((WORLDS, 4), 0.3)
    masses, states = [state.obs[:, 3]], [state]
    for _ in range(9):
        state = step(state, actions)
        masses.append(state.obs[:, 3])
        states.append(state)
    masses = np.asarray(masses)
    period = {"next": 4, "same": 3, None: 100}[mode]
    for k in range(1, 10):
        assert (masses[k] != masses[k - 1]).all() == (k % period == 0)
        assert (masses[k] == masses[k - 1]).all() == (k % period != 0)
    # an episode is that of a model with its numbers
    k = 0 if mode is None else period
    leaves = worlds._drawing.model([x[2] for x in states[k].info["drawn"]])
    one = jax.jit(jaxsim.step)(leaves, jaxsim.make_data(leaves).replace(ctrl=actions[2]))
    np.testing.assert_allclose(states[k + 1].data.qpos[2], one.qpos, atol=1e-12)
    np.testing.assert_allclose(leaves.actuator_gainprm[0, 0], -leaves.actuator_biasprm[0, 1])
    np.testing.assert_allclose(states[k].obs[2, 4], leaves.body_mass.sum(), rtol=1e-9)


def test_models_of_worlds_or_of_episodes_not_both(m):
    models, axes = randomize(m, KEYS, {"body:leg/mass": (1, 2)}, derive=False)
    with pytest.raises(ValueError, match="at each episode, or have model="):
        VectorEnv(Env(m), model=models, axes=axes, randomize=RANGES)


def test_a_drawn_delay_takes_the_mean_of_two_actions(m):
    """Each episode has its own delay; compared with a loop over the commanded actions."""
    worlds = Delayed(VectorEnv(Env(m), length=50), (0.5, 2.5))
    step, state = jax.jit(worlds.step), jax.jit(worlds.reset)(KEYS)
    delay = np.asarray(state.info["delay"])
    assert 0.5 <= delay.min() < delay.max() <= 2.5
    said = [np.zeros((WORLDS, 4))] * 4
    for k in range(6):
        said.append(np.full((WORLDS, 4), 0.1 * (k + 1)))
        state = step(state, jnp.asarray(said[-1]))
        whole = np.floor(delay).astype(int)
        part = delay - whole
        for w in range(WORLDS):
            late, later = said[-1 - whole[w]][w], said[-2 - whole[w]][w]
            expected = (1 - part[w]) * late + part[w] * later
            np.testing.assert_allclose(state.data.ctrl[w], expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"expected \(least, most\)"):
        Delayed(VectorEnv(Env(m)), (2, 1))


FREE = """<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body name="ball">
<freejoint/><geom size=".1" mass="2"/></body></worldbody></mujoco>"""


def test_a_push_changes_the_momentum_by_its_impulse():
    """Horizontally, in one action; no push lasts, and new episodes begin without one."""
    env = Env(jaxsim.load_model(FREE), repeat=3)
    worlds = Pushed(VectorEnv(env, length=4), {"body:ball": (3.0, 3.0)}, every=0.06)
    step, state = jax.jit(worlds.step), jax.jit(worlds.reset)(KEYS)
    sizes = []
    for _ in range(8):
        before, state = state, step(state, jnp.zeros((WORLDS, 0)))
        same = np.asarray(state.info["steps"] > 0)
        change = 2 * np.asarray(state.data.qvel - before.data.qvel)[same]
        np.testing.assert_allclose(change[:, 2:], 0, atol=1e-9)
        sizes += np.linalg.norm(change[:, :2], axis=1).tolist()
        np.testing.assert_allclose(state.data.qvel[~same], 0)
    sizes = np.array(sizes)
    pushed = sizes > 1e-9
    np.testing.assert_allclose(sizes[pushed], 3, rtol=1e-9)
    assert 0.2 < pushed.mean() < 0.8
    with pytest.raises(ValueError, match="did you mean 'ball'"):
        Pushed(VectorEnv(env), {"body:bal": (1, 2)})
