"""Steps through which everything sleeps: a shorter program that gives what the longer one does."""

from collections.abc import Iterator
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sleepers import Twins, of_text, step
from states import stack, world
from tolerance import STIFF

import jaxsim
from jaxsim.physics import step as step_file
from jaxsim.physics.sleep.fully_asleep_state import may_skip, stays_fully_asleep
from jaxsim.transforms import layout, tuning
from jaxsim.transforms.layout import batched

pytestmark = [pytest.mark.kernels, pytest.mark.long]

ROOM = """
<mujoco>
  <option {option}><flag sleep="enable" energy="enable"/></option>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1"/>
    <site name="nail" pos="3 0 2"/><site name="spot" size=".5"/>
    <geom name="fixed" pos="0 2 .5" size=".1"/>
    <body name="low" pos="0 0 .1005"><joint type="slide" axis="0 0 1"/><geom size=".1"/>
      <site name="low" size=".2"/></body>
    <body name="high" pos="0 0 .301"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body name="arm" pos="2 0 1" sleep="allowed"><joint name="arm" axis="0 1 0" damping=".2"/>
      <geom size=".1" pos="0 0 -.2"/><site name="arm" pos="0 0 -.2"/></body>
    <body name="left" pos="-1 0 1"><joint name="left" axis="0 1 0" damping=".1"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="right" pos="-1 1 1" sleep="init"><joint name="right" axis="0 1 0" damping=".1"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="hand" mocap="true" pos="0 -2 1"><geom name="hand" size=".1"/>
      <site name="hand"/></body>
  </worldbody>
  <contact><pair geom1="fixed" geom2="hand"/></contact>
  <tendon>
    <fixed name="rope" range="-.2 .02" limited="true">
      <joint joint="left" coef="1"/><joint joint="right" coef="1"/></fixed>
    <spatial name="wire" stiffness=".2" damping=".1" springlength=".5">
      <site site="nail"/><site site="arm"/></spatial>
    <spatial name="line" stiffness=".2"><site site="nail"/><site site="hand"/></spatial>
  </tendon>
  <equality>
    <connect name="grip" body1="high" body2="hand" anchor="0 0 0" active="false" solref=".1 1"/>
  </equality>
  <actuator>
    <general name="slow" joint="arm" dyntype="filter" dynprm=".5" gainprm="1e-4"/>
    <position joint="arm" kp=".01" nsample="3" delay=".004"/>
    <general tendon="line" dyntype="integrator" actlimited="true" actrange="0 1"/>
  </actuator>
  <sensor>
    <clock/> <accelerometer site="arm"/> <touch site="low"/> <velocimeter site="arm"/>
    <jointpos joint="left" nsample="4" delay=".006"/> <tendonpos tendon="line"/>
    <actuatorfrc actuator="slow"/> <framepos objtype="body" objname="hand"/>
    <contact geom1="floor" data="found force"/> <contact site="spot" data="found dist normal"/>
    <distance geom1="fixed" geom2="hand" cutoff="9"/> <e_potential/>
    <force site="arm"/> <subtreelinvel body="arm"/>
  </sensor>
</mujoco>
"""
REST = 75  # steps after which everything sleeps


@cache
def engines():
    twins = of_text(ROOM.format(option=""), keep="all")
    return twins.mj, twins.m


longer = batched(step_file._awake_step)  # a step that has no shorter program
run_longer = jax.jit(longer)


@cache
def resting():
    """A world in which everything has fallen asleep."""
    twins = Twins(*engines(), keep="all")
    for _ in range(REST):
        twins.d = step(twins.m, twins.d)
    assert int(twins.d.ntree_awake) == 0
    return twins.d


@jax.jit
def sleeps_on(m, d):
    core = batched(lambda m, d: stays_fully_asleep(m, d).astype(jnp.int32)[None])
    return core(m, d)[0]


# what is done at which step: a field, an index, a value
STORY = {
    70: ("ctrl", 2, 0.5),  # the actuator of what is no part of a tree goes on
    74: ("ctrl", 0, 2.0),  # that of the arm sleeps with it
    78: ("mocap_pos", (0, 0), 0.5),
    80: ("mocap_pos", (0, slice(None)), (0.0, 1.85, 0.5)),  # touches the fixed geom
    84: ("mocap_pos", (0, slice(None)), (0.0, -1.0, 0.302)),
    86: ("ctrl", 1, np.nan),  # a bad control, which is put back
    88: ("ctrl", 1, 0.0),
    90: ("xfrc_applied", (2, 2), 1e-3),
    91: ("xfrc_applied", (2, 2), 0.0),
    108: ("eq_active", 0, True),
    109: ("eq_active", 0, False),
    140: ("mocap_pos", (0, slice(None)), (0.0, 0.15, 0.35)),  # touches "high"
    141: ("mocap_pos", (0, slice(None)), (0.0, -1.0, 0.35)),
}


@pytest.mark.slow
def test_fall_asleep_and_wake_sequence_equals_mujoco():
    """Equal to MuJoCo at every step, and to the longer program in everything that is kept."""
    twins, asleep = Twins(*engines(), keep="all"), []
    assert may_skip(twins.m)
    for i in range(150):
        if i in STORY:
            twins.change(*STORY[i])
        before = twins.d
        asleep.append(bool(sleeps_on(twins.m, before)))
        twins.run(1)
        if i % 4 == 0 or i in STORY or asleep[-1] != asleep[i - 1]:
            same_in_everything(twins.d, run_longer(twins.m, before))
    assert all((*asleep[70:80], *asleep[84:90]))
    assert any(asleep[92:108])
    assert not any(asleep[i] for i in (60, 80, 90, 108, 140))


def same_in_everything(d, other, rtol=0.0, atol=1e-13):
    """Only the longer program runs the solver, which may select once what is solved, and detects
    contacts, whose slots past the last it leaves unchanged."""
    assert int(other.ncon) == int(d.ncon)
    contact = other.contact if int(d.ncon) else d.contact
    other = other.replace(solver_niter=d.solver_niter, contact=contact)
    for path, a in jax.tree_util.tree_leaves_with_path(d):
        b = dict(jax.tree_util.tree_leaves_with_path(other))[path]
        np.testing.assert_allclose(a, b, err_msg=jax.tree_util.keystr(path), rtol=rtol, atol=atol)


@pytest.mark.slow
def test_worlds_that_sleep_together_or_beside_one_that_does_not():
    _, m = engines()
    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)))
    asleep = resting().replace(ctrl=resting().ctrl.at[2].set(0.3))
    pushed = resting().replace(xfrc_applied=resting().xfrc_applied.at[2, 2].set(1e-3))
    for other in (resting(), pushed):
        loop = [asleep, other]
        together = stack(loop)
        for _ in range(4):
            together, loop = many(m, together), [step(m, d) for d in loop]
        for i, d in enumerate(loop):
            np.testing.assert_array_equal(together.tree_asleep[i], d.tree_asleep)
            for name in ("time", "qpos", "qvel", "act", "history", "sensordata", "energy", "qacc"):
                found = getattr(together, name)[i]
                np.testing.assert_allclose(found, getattr(d, name), err_msg=name, **STIFF)


BALLS = """
<mujoco>
  <option><flag sleep="enable"/></option>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body pos="0 0 .1" sleep="init"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body pos="1 0 .1" sleep="init"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
  </worldbody>
  <sensor><clock/></sensor>
</mujoco>
"""


@pytest.fixture
def balls(request) -> Iterator[tuple]:
    """A model, one of its worlds, which sleeps, and many worlds one step later.

    Worlds of a model that counts as large first check whether all are fully asleep.
    """
    large = request.param
    with tuning.override(**{"max_tiled_dofs": 0} if large else {}):
        twins = of_text(BALLS)
        twins.d = step(twins.m, twins.d)
        assert sleeps_on(twins.m, twins.d)
        assert layout.is_large(twins.m) == large
        yield twins.m, twins.d, jax.vmap(jaxsim.step, (None, 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "balls", [pytest.param(False, marks=pytest.mark.slow), True], indirect=True
)
def test_balls_that_sleep_together_or_beside_one_that_does_not(balls):
    m, d, many = balls
    same_in_everything(step(m, d), run_longer(m, d))
    many = jax.jit(many)
    later, pushed = d.replace(time=d.time + 1), d.replace(qvel=d.qvel.at[1].set(-1e-2))
    for loop in ([d, later, d], [d, pushed, later]):
        found = many(m, stack(loop))
        for k, alone in enumerate(loop):
            same_in_everything(step(m, alone), world(found, k), **STIFF)


@pytest.mark.slow
@pytest.mark.parametrize("balls", [True], indirect=True)
def test_derivatives_of_worlds_of_large_models_that_sleep_together(balls):
    m, d, many = balls
    pushed = d.replace(qvel=d.qvel.at[1].set(-1e-2))

    def ends(many, qpos, together):
        new = many(m, together.replace(qpos=qpos))
        return (new.qpos**2).sum() + new.qvel.sum() + (new.xpos**2).sum()

    slopes = jax.jit(jax.grad(partial(ends, many)))
    expected = jax.jit(jax.grad(partial(ends, jax.vmap(longer, (None, 0)))))
    for loop in ([d, d], [d, pushed]):
        together = stack(loop)
        of = together.qpos, together
        np.testing.assert_allclose(slopes(*of), expected(*of), **STIFF)


ARM = """
<mujoco>
  <option><flag sleep="enable" energy="enable"/></option>
  <worldbody>
    <site name="nail" pos="0 0 1"/><body name="hand" mocap="true"><site name="hand"/></body>
    <body sleep="init" pos="2 0 0"><joint axis="0 1 0" damping=".1"/><geom size=".1" pos=".1 0 0"/>
    </body>
  </worldbody>
  <tendon><spatial name="line"><site site="nail"/><site site="hand"/></spatial></tendon>
  <actuator><general tendon="line" dyntype="filter" dynprm=".1"/></actuator>
  <sensor><clock/><tendonpos tendon="line" nsample="3" delay=".004"/></sensor>
</mujoco>
"""


@pytest.mark.slow
def test_derivatives_are_those_of_the_longer_program():
    twins = of_text(ARM)
    m, d = twins.m, twins.d
    names = ("qpos", "act", "ctrl", "history", "qacc_smooth", "mocap_pos", "sensordata")
    rng = np.random.default_rng(0)
    start = {name: getattr(d, name) for name in names}
    change = {name: jnp.asarray(rng.normal(size=a.shape)) for name, a in start.items()}
    assert sleeps_on(m, d)

    def slopes(step):
        def end(start):
            new = step(m, d.replace(**start))
            return {name: getattr(new, name) for name in (*names, "qacc", "xpos", "energy")}

        def both(start, change):
            found, forwards = jax.jvp(end, (start,), (change,))
            return forwards, jax.vjp(end, start)[1](jax.tree.map(jnp.ones_like, found))[0]

        return jax.jit(both)(start, change)

    for a, b in zip(*map(jax.tree.leaves, (slopes(jaxsim.step), slopes(longer))), strict=True):
        np.testing.assert_allclose(a, b, **STIFF)


def test_a_tilted_plane_of_a_mocap_body_is_near():
    """Its box reaches so far that single precision knows its center to half a kilometer."""
    with jax.enable_x64(False):
        m = jaxsim.load_model("""<mujoco>
          <option><flag sleep="enable"/></option>
          <asset><mesh name="cube" vertex="-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1
            -1 -1 1  1 -1 1  -1 1 1  1 1 1" scale=".1 .1 .1"/></asset>
          <worldbody>
            <body mocap="true" pos="0 0 -9"><geom type="plane" size="0 0 1"/></body>
            <body><freejoint/><geom type="mesh" mesh="cube"/></body>
          </worldbody></mujoco>""")
        d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
        d = d.replace(tree_asleep=jnp.zeros_like(d.tree_asleep))
        assert sleeps_on(m, d)
        rng = np.random.default_rng(0)
        for quat in rng.normal(size=(20, 4)).astype(np.float32):
            quat /= np.linalg.norm(quat)
            normal = jaxsim.functions.rot_vec_quat(np.float32([0, 0, 1]), quat)
            reach = 0.1 * np.abs(normal).sum()  # of the cube along the normal
            for depth in (0.01, -0.01):
                pos = -(reach - depth) * normal
                moved = d.replace(mocap_pos=pos[None], mocap_quat=jnp.asarray(quat)[None])
                assert bool(sleeps_on(m, moved)) == (depth < 0)
