"""Hooks of the wrong shape or type are refused when a task is made; arguments with a remedy."""

import dataclasses
import pathlib
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import XML, Hold

import jaxsim
from jaxsim.envs import Delayed, Env, FrameStack, Noisy, Pushed, VectorEnv, randomize

M = jaxsim.load_model(XML)
KEYS = jax.random.split(jax.random.key(0), 3)

# what hooks may return, by the hook
GOOD = {
    "observe": [lambda d: d.qpos, lambda d: {"a": d.qpos, "b": d.time}, lambda d: d.qpos > 0,
                lambda d: jnp.zeros((4, 4, 3), jnp.uint8)],
    "reward": [lambda d: d.qpos[0], lambda d: 1.0, lambda d: 1, lambda d: d.qpos[0] > 0],
    "terminal": [lambda d: d.qpos[0] > 0, lambda d: False],
    "metrics": [lambda d: {}, lambda d: {"x": d.qpos[0], "n": 3}],
    "start": [lambda d: d, lambda d: d.replace(qpos=d.qpos + 1)],
    "control": [lambda d: d],
    "action_range": [lambda d: (-jnp.ones(1), jnp.ones(1)), lambda d: (np.zeros(1), np.ones(1))],
}  # fmt: skip
PAIR, COMPLEX = jnp.ones(2), jnp.ones((), complex)
BAD = {
    "observe": [None, 3.0, PAIR[0], (PAIR, PAIR), [PAIR], {}, {"a": None}, {"a": (PAIR,)},
                PAIR.astype(complex), "seen", jax.random.key(0)],
    "reward": [None, PAIR, jnp.ones(1), jnp.ones((1, 1)), COMPLEX, (1.0, 2.0), {"a": 1.0}, "much"],
    "terminal": [None, PAIR > 0, jnp.zeros(1, bool), jnp.zeros(()), 0.0, 1, COMPLEX, {"a": True}],
    "metrics": [None, PAIR, {"x": PAIR}, {"x": None}, {"x": {"y": 1.0}}, {"x": COMPLEX},
                {1: 2.0}, [1.0]],
    "start": [None, PAIR, "qpos", "dtype"],
    "control": [None, PAIR, "qpos", "dtype"],
    "action_range": [None, PAIR[0], (PAIR, PAIR), (jnp.ones(1),), (1.0, 2.0), (None, None)],
}  # fmt: skip


def task(hook, returned):
    """A class with one hook that returns something of a world."""

    def written(self, *given):
        worlds = [x for x in given if isinstance(x, jaxsim.Data)]
        return returned(worlds[-1] if worlds else None)

    return type("Task", (Env,), {hook: written})


def wrong_world(kind, d):
    if kind == "qpos":
        return d.replace_unchecked({"qpos": jnp.zeros(2)}, False)
    return (
        d.replace_unchecked({"qvel": d.qvel.astype(jnp.float16)}, False)
        if kind == "dtype"
        else kind
    )


@pytest.mark.parametrize("hook", GOOD)
def test_what_hooks_may_return_makes_a_task_that_runs(hook):
    for returned in GOOD[hook]:
        env = task(hook, returned)(M)
        jax.eval_shape(env.step, jax.eval_shape(env.reset, KEYS[0]), jnp.zeros(1))


@pytest.mark.parametrize("hook", BAD)
def test_invalid_hook_results_are_rejected_at_construction(hook):
    for value in BAD[hook]:

        def returned(d, value=value):
            return wrong_world(value, d) if hook in ("start", "control") else value

        with pytest.raises(ValueError, match=rf"^Task\.{hook}.*: expected .*, got "):
            task(hook, returned)(M)


def test_a_task_is_checked_when_it_is_whole():
    """After its own `__init__`; of a subclass of a subclass, and of a dataclass, too."""

    class Late(Env):
        def __init__(self, m):
            super().__init__(m)
            self.weight = PAIR

        def reward(self, m, before, after, action):
            return self.weight

    class Later(Late):
        def __init__(self):
            super().__init__(M)
            self.weight = self.weight[0]

    with pytest.raises(ValueError, match=r"Late.reward: .* got float64 of shape \(2,\); take one"):
        Late(M)
    assert Later().weight.shape == ()

    @dataclasses.dataclass
    class Short(Env):
        gain: float = 2.0

        def __post_init__(self):
            super().__init__(M)

        def reward(self, m, before, after, action):
            return self.gain * PAIR

    with pytest.raises(ValueError, match=r"Short.reward"):
        Short(3.0)


def hopping():
    return VectorEnv(Hold(M))


def models():
    return randomize(M, KEYS, {"body:*/mass": (0.5, 1)}, derive=False)


ARGUMENTS = {
    "a path": (lambda: Env("cartpole.xml"), r"Env\(jaxsim.load_model\('cartpole.xml'\)\)"),
    "a Path": (lambda: Env(pathlib.Path("a.xml")), r"jaxsim.load_model\('a.xml'\)"),
    "one key": (lambda: hopping().reset(KEYS[0]), r"got one key; jax.random.split\(key, worlds\)"),
    "one raw key": (lambda: hopping().reset(jax.random.PRNGKey(0)), "got one key"),
    "a seed": (lambda: hopping().reset(0), "one random key for each world, .* got int 0"),
    "many keys": (lambda: Env(M).reset(KEYS), r"expected one random key, got keys of shape \(3,\)"),
    "a seed of one": (lambda: Env(M).reset(3), "expected one random key, got int 3"),
    "one state": (
        lambda: hopping().step(Env(M).reset(KEYS[0]), jnp.zeros(1)),
        r"expected many worlds, \(worlds,\), got one",
    ),
    "many states": (
        lambda: Env(M).step(hopping().reset(KEYS), jnp.zeros((3, 1))),
        r"expected one world, got 3; many are VectorEnv\(env\).step",
    ),
    "a Data": (lambda: Env(M).step(Env(M).begin, jnp.zeros(1)), "expected the State .* got Data"),
    "actions": (
        lambda: hopping().step(hopping().reset(KEYS), jnp.zeros(3)),
        r"action: expected shape \(3, 1\), got \(3,\)",
    ),
    "a model": (lambda: VectorEnv(M), r"a model is VectorEnv\(Env\(m\)\)"),
    "no axes": (lambda: VectorEnv(Env(M), model=models()[0]), "^axes: body_mass: expected shape"),
    "no models": (lambda: VectorEnv(Env(M), axes=models()[1]), "^axes: given without models"),
    "a pair": (lambda: VectorEnv(Env(M), model=models()), r"^model: expected a Model, got tuple"),
    "all axes": (lambda: VectorEnv(Env(M), model=models()[0], axes=0), "^model: .* axis 0"),
    "few keys": (
        lambda: VectorEnv(Env(M), model=models()[0], axes=models()[1]).reset(KEYS[:2]),
        r"for each world, \(3,\), got keys of shape \(2,\)",
    ),
    "another model": (
        lambda: VectorEnv(Env(M), model=jaxsim.load_model("<mujoco/>")),
        "another structure",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ARGUMENTS)
def test_wrong_arguments_are_told_with_a_remedy(case):
    call, message = ARGUMENTS[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: VectorEnv(Hold(M), length=3), marks=pytest.mark.slow),
        pytest.param(
            lambda: VectorEnv(Hold(M), length=3, autoreset="same"), marks=pytest.mark.slow
        ),
        pytest.param(
            lambda: VectorEnv(Hold(M), length=3, model=models()[0], axes=models()[1]),
            marks=pytest.mark.slow,
        ),
        lambda: VectorEnv(Hold(M), length=3, randomize={"body:*/mass": (0.5, 1)}),
        lambda: FrameStack(Delayed(Noisy(VectorEnv(Hold(M), length=3), 0.1), (0, 2)), 2),
        pytest.param(
            lambda: Pushed(VectorEnv(Hold(M), length=3), {"*": (1, 2)}, every=0.1),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["next", "same", "models", "drawn", "wrapped", "pushed"],
)
def test_worlds_and_their_states_are_pickled_and_go_on_equal(make):
    """Also in the middle of an episode, and of an Env alone."""
    worlds = make()
    state = jax.jit(worlds.reset)(KEYS)
    state = worlds.step(state, jnp.ones((3, 1)))
    other, copied = pickle.loads(pickle.dumps((worlds, state)))
    for _ in range(4):
        state, copied = worlds.step(state, jnp.ones((3, 1))), other.step(copied, jnp.ones((3, 1)))
        for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(copied), strict=True):
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            np.testing.assert_array_equal(a, b)
    alone = pickle.loads(pickle.dumps(Hold(M)))
    np.testing.assert_array_equal(alone.reset(KEYS[0]).obs, Hold(M).reset(KEYS[0]).obs)
