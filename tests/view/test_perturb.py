"""A body that is held with a mouse, against MuJoCo's `mjvPerturb`."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack
from tolerance import DYNAMICS, STAGE, STORED_SINGLE
from view.scene import BODIES, camera, model, scene_of, state

import jaxsim
from jaxsim.functions import neg_quat, rot_vec_quat, sub_quat
from jaxsim.view import (
    Mouse,
    PertBit,
    Perturb,
    apply_perturb_force,
    apply_perturb_pose,
    init_perturb,
    move_perturb,
)

LOCAL = np.array([0.05, 0.03, -0.02])
INPUTS = ("qpos", "qvel", "mocap_pos", "mocap_quat", "xfrc_applied")


def data_of(d: mujoco.MjData):
    return jaxsim.make_data(model()[1]).replace(**{name: getattr(d, name) for name in INPUTS})


def mine_of(pert: mujoco.MjvPerturb) -> Perturb:
    numbers = ("select", "active", "refpos", "refquat", "refselpos", "localpos", "localmass")
    dtypes = {"select": np.int32, "active": np.int32}
    found = {n: jnp.asarray(getattr(pert, n), dtypes.get(n, float)) for n in numbers}
    return Perturb(**found, scale=jnp.asarray(pert.scale))


def held(d: mujoco.MjData, scene: mujoco.MjvScene, body: int, seed: int) -> mujoco.MjvPerturb:
    """A body that is held, and its reference elsewhere."""
    pert, rng = mujoco.MjvPerturb(), np.random.default_rng(seed)
    pert.select, pert.localpos[:] = body, LOCAL
    mujoco.mjv_initPerturb(model()[0], d, scene, pert)
    pert.refpos[:] += rng.normal(size=3)
    pert.refselpos[:] += rng.normal(size=3)
    quat = pert.refquat.copy()
    mujoco.mju_quatIntegrate(quat, 0.4 * rng.normal(size=3), 1.0)
    pert.refquat[:] = quat
    return pert


def numbers(pert) -> np.ndarray:
    names = ("refpos", "refquat", "refselpos", "localpos", "localmass", "scale")
    return np.concatenate([np.ravel(getattr(pert, name)) for name in names])


begin = jax.jit(lambda d, camera, body: init_perturb(model()[1], d, camera, body, LOCAL))
force = jax.jit(lambda d, pert: apply_perturb_force(model()[1], d, pert).xfrc_applied)


@jax.jit
def posed(d, pert):
    """Running, and paused."""
    both = [apply_perturb_pose(model()[1], d, pert, paused) for paused in (False, True)]
    return [(x.qpos, x.mocap_pos, x.mocap_quat) for x in both]


@jax.jit
def moved(d, camera, pert, x, y):
    """Apply each action."""
    return [move_perturb(model()[1], d, camera, pert, action, x, y) for action in Mouse]


@pytest.mark.short("free")
@pytest.mark.parametrize("kind", ["free", "fixed flat"])
def test_what_is_held_is_where_it_is(kind):
    mj, d = model()[0], state(1)
    theirs, mine = camera(kind, 1)
    scene = scene_of(d, theirs)
    for body in BODIES:
        pert = mujoco.MjvPerturb()
        pert.select, pert.localpos[:] = body, LOCAL
        mujoco.mjv_initPerturb(mj, d, scene, pert)
        found = begin(data_of(d), mine, body)
        assert found.select == body
        assert found.active == 0
        # the scale is from the camera of the scene, which is in single precision
        np.testing.assert_allclose(numbers(found)[:-1], numbers(pert)[:-1], **DYNAMICS)
        np.testing.assert_allclose(found.scale, pert.scale, **STORED_SINGLE)


def test_the_mouse_moves_the_reference():
    mj, d = model()[0], state(2)
    theirs, mine = camera("free", 2)
    scene = scene_of(d, theirs)
    for body, size in ((1, 0.05), (2, 0.3), (1, 2.0)):
        pert = held(d, scene, body, 3)
        x, y = size * np.random.default_rng(body).normal(size=2)
        each = moved(data_of(d), mine, mine_of(pert), x, y)
        for action, found in zip(Mouse, each, strict=True):
            pert = held(d, scene, body, 3)
            if action in (Mouse.TURN_V, Mouse.TURN_H):  # MuJoCo stops with an error
                np.testing.assert_array_equal(numbers(found), numbers(pert))
                continue
            before = numbers(pert)
            mujoco.mjv_movePerturb(mj, d, action, x, y, scene, pert)
            expected = numbers(pert)
            np.testing.assert_allclose(numbers(found), expected, **STORED_SINGLE)
            assert (np.abs(expected - before).max() > 1e-3) == (action != Mouse.ZOOM)


def test_forces_equal_those_of_mujoco():
    """Each kind of body, pulled, rotated, both and neither."""
    mj = model()[0]
    for seed in range(2):
        d = state(seed)
        scene = scene_of(d, camera("free", seed)[0])
        for body in (0, *BODIES):
            for active in range(4):
                pert = held(d, scene, body, seed) if body else mujoco.MjvPerturb()
                pert.active = active
                mine = force(data_of(d), mine_of(pert))
                other = state(seed)
                mujoco.mjv_applyPerturbForce(mj, other, pert)
                np.testing.assert_allclose(mine, other.xfrc_applied, **DYNAMICS)
                changed = np.any(mine != d.xfrc_applied)
                assert changed == (active > 0 and body > 0)


def test_poses_equal_those_of_mujoco():
    """Mocap bodies always, others where the root of their tree is free and the world stands."""
    mj = model()[0]
    d = state(3)
    scene = scene_of(d, camera("free", 3)[0])
    for body in (0, *BODIES):
        for active in (0, 1, 2, 3):
            pert = held(d, scene, body, 3) if body else mujoco.MjvPerturb()
            pert.active = active
            for paused, mine in enumerate(posed(data_of(d), mine_of(pert))):
                other = state(3)
                mujoco.mjv_applyPerturbPose(mj, other, pert, paused)
                theirs = other.qpos, other.mocap_pos, other.mocap_quat
                for found, expected in zip(mine, theirs, strict=True):
                    np.testing.assert_allclose(found, expected, **STAGE)


@pytest.mark.slow
def test_worlds_in_which_other_bodies_are_held():
    """And the derivative of the force by the reference is the stiffness."""
    d = state(0)
    scene = scene_of(d, camera("free", 0)[0])
    perts = []
    for body in BODIES:
        pert = held(d, scene, body, body)
        pert.active = PertBit.TRANSLATE | PertBit.ROTATE
        perts.append(mine_of(pert))
    every = stack(perts)
    each = jax.vmap(force, (None, 0))(data_of(d), every)
    for k, pert in enumerate(perts):
        np.testing.assert_allclose(each[k], force(data_of(d), pert), **STAGE)
    one = perts[0]
    slope = jax.jacfwd(lambda r: force(data_of(d), one._replace(refselpos=r))[1, :3])(one.refselpos)
    np.testing.assert_allclose(slope, 100 * one.localmass * np.eye(3), **STAGE)


def test_the_reference_turns_smoothly_from_rest():
    """The drag rotates by 360 degrees across the window; the derivative at no movement exists."""
    d = data_of(state(0))
    mine = camera("free", 0)[1]
    pert = begin(d, mine, 1)

    def turn(x):
        moved = move_perturb(model()[1], d, mine, pert, Mouse.ROTATE_V, x, jnp.zeros(()))
        return sub_quat(moved.refquat, pert.refquat)

    slope = jax.jit(jax.jacfwd(turn))(jnp.zeros(()))
    vertical = rot_vec_quat(jnp.array([0.0, 0, 2 * np.pi]), neg_quat(pert.refquat))
    np.testing.assert_allclose(slope, vertical, **STAGE)
