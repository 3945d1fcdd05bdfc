"""Searches for near pairs of all worlds together give the contacts of the oracle."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack
from tolerance import CONTACT

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.physics.collision import narrow_phase
from jaxsim.transforms.tuning import override

pytestmark = pytest.mark.kernels

WORLDS = 5
# Hulls, and boxes that have no closed form with them; the floor comes last. Nothing is curved:
# there the oracle iterates to a tolerance of its own.
SHAPES = ("mesh:wedge", "box", "mesh:prism", "mesh:prism", "mesh:wedge", "box")
SCENE = f"""<mujoco><option ccd_tolerance="1e-10"><flag multiccd="disable"/></option><asset>
  <mesh name="wedge" vertex="0 0 0  .2 0 0  0 .2 0  0 0 .2  .15 .15 .1"/>
  <mesh name="prism" vertex="-.1 -.1 -.1  .1 -.1 -.1  0 .1 -.1  -.1 -.1 .1  .1 -.1 .1  0 .1 .1"/>
</asset><worldbody>{
    "".join(
        f'<body name="b{k}"><freejoint/><geom type="{kind.split(":")[0]}" size=".08 .1 .06" '
        + (f'mesh="{kind.split(":")[1]}"' if ":" in kind else "")
        + "/></body>"
        for k, kind in enumerate(SHAPES)
    )
}<geom type="plane" size="5 5 1"/></worldbody></mujoco>"""


def _states(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    """Worlds from bodies that are far from everything to bodies that all touch."""
    rng = np.random.default_rng(3)
    states = []
    for world in range(WORLDS):
        d = mujoco.MjData(mj)
        for k in range(len(SHAPES)):
            spread = 3.0 if world == 0 else 0.5 / world
            place = spread * rng.uniform(-1, 1, 3) + [0, 0, 0.1 + 4 * (world == 0)]
            d.qpos[7 * k : 7 * k + 7] = np.r_[place, rng.normal(size=4)]
        mujoco.mj_normalizeQuat(mj, d.qpos)
        mujoco.mj_forward(mj, d)
        states.append(d)
    return states


@pytest.fixture(scope="module")
def scene() -> tuple[mujoco.MjModel, list[mujoco.MjData]]:
    mj = mujoco.MjModel.from_xml_string(SCENE)
    return mj, _states(mj)


def test_worlds_that_differ_have_the_contacts_of_the_oracle(scene):
    """World 0 has none, the last many; a chunk has fewer lanes than there are near pairs."""
    mj, states = scene
    m = put_model(mj, contacts=64, pairs=30)
    empty = jaxsim.make_data(m)
    many = stack([empty.replace(qpos=jnp.asarray(d.qpos)) for d in states], 0)
    assert states[0].ncon == 0
    assert states[-1].ncon > 10
    with override(pair_lanes=3):
        out = jax.jit(jax.vmap(lambda d: jaxsim.forward(m, d)))(many)
    for world, d in enumerate(states):
        n = int(out.ncon[world])
        assert n == d.ncon
        contact = jax.tree.map(lambda a, w=world, n=n: a[w][:n], out.contact)
        assert contact.geom.tolist() == d.contact.geom.tolist()
        for name in ("dist", "pos", "frame", "friction", "solref"):
            ours = np.asarray(getattr(contact, name)).ravel()
            theirs = getattr(d.contact, name).ravel()
            np.testing.assert_allclose(ours, theirs, **CONTACT, err_msg=name)


@pytest.mark.slow
def test_the_number_of_searches_follows_the_number_of_near_pairs(scene, monkeypatch):
    """Far apart nothing is searched; the floor, whose pairs have no budget, is no exception."""
    mj, states = scene
    m = put_model(mj, contacts=64, pairs=30)
    searched: list[int] = []
    evaluate = narrow_phase.evaluate_active_lanes

    def counted(function, needed, lanes, size):
        jax.debug.callback(lambda number: searched.append(int(number)), jnp.sum(needed))
        return evaluate(function, needed, lanes, size)

    monkeypatch.setattr(narrow_phase, "evaluate_active_lanes", counted)
    run = jax.jit(lambda d: jaxsim.forward(m, d).ncon)
    numbers, touching = [], []
    for d in states:
        searched.clear()
        jax.block_until_ready(run(jaxsim.make_data(m).replace(qpos=jnp.asarray(d.qpos))))
        jax.effects_barrier()
        numbers.append(sum(searched))
        # pairs with a hull are searched; all others have a closed form
        hulls = (mj.geom_type[d.contact.geom] == mujoco.mjtGeom.mjGEOM_MESH).any(axis=1)
        touching.append(len(np.unique(d.contact.geom[hulls], axis=0)))
    meshes = sum(kind.startswith("mesh") for kind in SHAPES)
    every = meshes * (len(SHAPES) + 1 - meshes) + meshes * (meshes - 1) // 2
    assert numbers[0] == 0
    assert all(t <= n <= every for n, t in zip(numbers, touching, strict=True))
    assert touching[-1] > 3
    assert numbers[1] < every
