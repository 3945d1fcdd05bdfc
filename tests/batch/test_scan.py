"""Many steps: of one world as a function, of many worlds in chunks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING, SAME

from jaxsim.batch.program import BatchProgram, replicate
from jaxsim.batch.scan import rollout
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data

pytestmark = pytest.mark.kernels

XML = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
      <body pos="0.5 0 0">
        <joint name="b" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="3"/>
    <motor joint="b"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return load_model(XML)


@pytest.fixture(scope="module")
def d(m):
    return make_data(m)


@pytest.fixture(scope="module")
def ctrl(m):
    return jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (12, m.nu)))


@pytest.fixture(scope="module")
def motion(m, d, ctrl):
    """The reference: one step after the other."""
    one, states = jax.jit(step), []
    for row in ctrl:
        d = one(m, d.replace(ctrl=row))
        states.append(d)
    return states


def test_a_rollout_is_one_step_after_the_other(m, d, ctrl, motion):
    run = jax.jit(rollout, static_argnames=("steps", "record"))
    end, records = run(m, d, ctrl=ctrl, record=("qpos", "time"))
    np.testing.assert_allclose(end.qpos, motion[-1].qpos, rtol=0, atol=SAME["atol"])
    np.testing.assert_allclose(records["qpos"], [s.qpos for s in motion], rtol=0, atol=SAME["atol"])
    np.testing.assert_allclose(records["time"], 0.01 * np.arange(1, 13), **SAME)


@pytest.mark.slow
def test_without_controls_those_of_the_data_stay(m, d):
    held = d.replace(ctrl=jnp.ones(m.nu))
    same = jnp.ones((5, m.nu))
    a, _ = jax.jit(rollout, static_argnames="steps")(m, held, 5)
    b, _ = jax.jit(rollout, static_argnames="steps")(m, d, ctrl=same)
    np.testing.assert_array_equal(a.qpos, b.qpos)


def test_gradient_of_a_rollout(m, d, ctrl):
    def reach(ctrl):
        return jnp.sum(rollout(m, d, ctrl=ctrl)[0].qpos ** 2)

    both = jax.jit(jax.value_and_grad(reach))  # one program
    gradient = both(ctrl)[1]
    h = 1e-6
    for i in ((0, 0), (5, 1), (11, 0)):
        above, below = (both(ctrl.at[i].add(k * h))[0] for k in (1, -1))
        difference = (above - below) / (2 * h)
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-5, atol=1e-10)


@pytest.mark.slow
def test_a_gradient_keeps_one_state_a_step_or_one_a_part(m, d, ctrl):
    """Nothing that a step computes is stored for reverse mode; `jax.checkpoint` stores no more."""

    def memory(repeats: int, remat: int | None = None) -> int:
        def reach(ctrl):
            return jnp.sum(rollout(m, d, ctrl=ctrl, remat=remat)[0].qpos ** 2)

        long = jnp.tile(ctrl, (repeats, 1))
        compiled = jax.jit(jax.grad(reach)).lower(long).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    steps = 20 * len(ctrl)
    state = sum(a.nbytes for a in jax.tree.leaves(d))
    kept = memory(40) - memory(20)
    assert kept < 1.2 * steps * state
    assert memory(40, remat=20) - memory(20, remat=20) < 0.3 * kept


@pytest.mark.slow
def test_states_that_are_not_kept_change_nothing(m, d, ctrl):
    """Neither the motion nor its gradient; of parts that do not divide the steps, or are longer."""

    @jax.jit
    def slopes(ctrl):
        def reach(ctrl, remat):
            end, records = rollout(m, d, ctrl=ctrl, record=["qpos"], remat=remat)
            return jnp.sum(end.qvel**2) + jnp.sum(records["qpos"] ** 2), records["qpos"]

        return [jax.grad(reach, has_aux=True)(ctrl, remat) for remat in (None, 5, 30)]

    (gradient, qpos), *others = slopes(ctrl)
    for other, motion in others:
        assert motion.shape == qpos.shape
        np.testing.assert_allclose(motion, qpos, **ROUNDING)
        np.testing.assert_allclose(other, gradient, **ROUNDING)
    held = d.replace(ctrl=ctrl[0])
    (a, _), (b, _) = jax.jit(lambda d: [rollout(m, d, 12, remat=n) for n in (None, 4)])(held)
    np.testing.assert_allclose(a.qpos, b.qpos, **ROUNDING)


@pytest.mark.slow
def test_parts_that_divide_the_steps_have_the_step_once(m, d):
    def scans(steps, remat):
        text = str(jax.make_jaxpr(lambda d: rollout(m, d, steps, record=["qpos"], remat=remat))(d))
        return text.count("remat2[")

    assert [scans(steps, 4) for steps in (12, 13, 3)] == [1, 2, 1]
    shapes = jax.eval_shape(lambda d: rollout(m, d, 0, record=["qpos"], remat=4)[1], d)
    assert shapes["qpos"].shape == (0, m.nq)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give the number of steps, or ctrl with one row per step"),
        ({"ctrl": np.zeros((3, 5))}, r"ctrl: expected shape \(3, 2\), got \(3, 5\)"),
        ({"steps": 4, "ctrl": np.zeros((3, 2))}, r"ctrl: expected shape \(4, 2\), got \(3, 2\)"),
        ({"steps": -1}, "steps: expected a whole number, at least 0, got -1"),
        ({"steps": 2.5}, "steps: expected a whole number, got 2.5"),
        ({"steps": 4, "remat": 0}, "remat: expected at least one step, or None"),
        ({"steps": 4, "remat": True}, "remat: expected a whole number, got True"),
        ({"ctrl": np.zeros(())}, r"ctrl: expected shape \(None, 2\), got \(\)"),
        ({"steps": 4, "record": ["speed"]}, "this Data does not carry 'speed'$"),
        ({"steps": 4, "record": ["M"]}, "does not carry 'M'; keep it: make_data"),
        ({"steps": 4, "record": ["solver"]}, "'solver' is a nested record, not an array"),
    ],
)
def test_arguments_that_do_not_fit(m, d, arguments, message):
    with pytest.raises(ValueError, match=message):
        rollout(m, d, **arguments)


@jax.tree_util.register_static
class Same:
    """The recorded controls for three worlds, the third mirrored."""

    def at(self, i):
        rows = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (12, 2)))
        return rows[i][None] * jnp.array([[1.0], [1.0], [-1.0]])


@pytest.mark.short("5")
@pytest.mark.parametrize("size", [5, 12])
def test_chunks_are_the_same_motion(m, d, motion, size):
    program = BatchProgram(m, replicate(d, 3), Same(), size=size, record=("qpos",))
    chunks = list(program.run(replicate(d, 3), 12))
    assert sum(c.steps for c in chunks) == 12
    assert [c.start for c in chunks] == list(range(0, 12, size))
    records = np.concatenate([c.records["qpos"] for c in chunks])
    assert records.shape == (12, 3, 2)
    for world in (0, 1):
        np.testing.assert_allclose(
            records[:, world], [s.qpos for s in motion], rtol=0, atol=ROUNDING["atol"]
        )
    assert np.abs(records[-1, 2] - records[-1, 0]).max() > 1e-3
    assert program.trace_seconds > 0
    assert program.compile_seconds > 0


def test_the_second_step_does_not_compile_again(m, d):
    traces = []

    @jax.jit
    def counted(m, d):
        traces.append(1)
        return step(m, d)

    counted(m, counted(m, d))
    assert len(traces) == 1


def test_batches_that_do_not_fit(m, d):
    many = replicate(d, 3)
    with pytest.raises(ValueError, match=r"rollout: d\.time: .*; for many worlds use jax\.vmap"):
        rollout(m, many, 2)
    with pytest.raises(ValueError, match=r"d: expected many worlds, got one; .* jaxsim\.replicate"):
        BatchProgram(m, d)
    with pytest.raises(
        ValueError, match=r"m\.body_mass: expected shape \(3,\), got float64\[3, 3\]"
    ):
        BatchProgram(m.replace(body_mass=jnp.ones((3, 3))), many)
    with pytest.raises(ValueError, match=r"d\.ctrl: expected shape \(3, 2\), got float64\[2\]"):
        BatchProgram(m, many.replace(ctrl=jnp.zeros(2)))
    with pytest.raises(ValueError, match="size: a chunk has at least one step"):
        BatchProgram(m, many, size=0)
    with pytest.raises(ValueError, match="worlds: expected a whole number"):
        replicate(d, -1)
