"""Controls of a rollout: random, zero, from a file; and files that are wrong."""

import argparse

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.assets.source.limits import limits
from jaxsim.cli.input import resource_limits
from jaxsim.cli.input.controls import make_control
from jaxsim.cli.user_error import InputProblem
from jaxsim.io.bridge import put_model

XML = """
<mujoco>
  <option timestep="0.02"/>
  <worldbody><body><joint name="a"/><geom size="1"/></body></worldbody>
  <actuator>
    <motor joint="a" ctrllimited="true" ctrlrange="2 3"/>
    <motor joint="a"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return put_model(mujoco.MjModel.from_xml_string(XML))


@pytest.fixture
def file(tmp_path):
    def write(**arrays):
        path = tmp_path / "ctrl.npz"
        np.savez(path, **arrays)
        return str(path)

    return write


def test_random_stays_in_range_and_is_held(m):
    control = make_control("random", m, worlds=100, steps=20, seed=3)
    at = [np.asarray(control.at(jnp.int32(i))) for i in range(10)]
    assert at[0].shape == (100, 2)
    assert (at[0][:, 0] >= 2).all()
    assert (at[0][:, 0] <= 3).all()
    assert (np.abs(at[0][:, 1]) <= 1).all()
    np.testing.assert_array_equal(at[0], at[4])  # 0.1 s are five steps
    assert (at[0] != at[5]).all()
    assert len(np.unique(at[0][:, 1])) == 100


def test_random_knows_the_controls_of_an_actuator_that_has_several():
    actuators = '<motor joint="a"/><pid joint="a" kp="3" input="pos vel" posrange="4 5"/>'
    start, end = XML.index("<actuator>") + len("<actuator>"), XML.index("</actuator>")
    m = jaxsim.load_model(XML[:start] + actuators + XML[end:])
    control = np.asarray(make_control("random", m, 50, 1, 0).at(jnp.int32(0)))
    assert control.shape == (50, 3)
    assert (np.abs(control[:, [0, 2]]) <= 1).all()
    assert (np.abs(control[:, 1] - 4.5) <= 0.5).all()


def test_random_follows_the_seed(m):
    a, b, c = (make_control("random", m, 3, 5, seed).at(jnp.int32(0)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()


def test_zero_controls_need_no_file(m):
    assert make_control("zero", m, 3, 5, 0) is None


def test_file_for_all_worlds(m, file):
    control = make_control(file(ctrl=np.arange(8.0).reshape(4, 2)), m, worlds=3, steps=4, seed=0)
    np.testing.assert_array_equal(jax.jit(control.at)(jnp.int32(1)), [[2, 3]] * 3)


def test_shared_controls_are_stored_once(m, file):
    control = make_control(file(ctrl=np.zeros((4, 2))), m, worlds=1000, steps=4, seed=0)
    assert control.values.nbytes == 4 * 2 * m.qpos0.dtype.itemsize


@pytest.mark.parametrize("memory", [100.0, 1500.0])
def test_controls_that_do_not_fit_in_memory(m, file, monkeypatch, memory):
    monkeypatch.setattr(resource_limits, "memory", lambda: memory)
    path = file(ctrl=np.zeros((50, 2)))
    with pytest.raises(InputProblem, match=r"ctrl\.npz: (it has 1\.06 kB|the controls need)"):
        resource_limits.check_controls_fit(
            argparse.Namespace(ctrl=path), [make_control(path, m, 3, 50, 0), np.zeros(100)]
        )


def test_a_file_that_unpacks_to_too_much(m, tmp_path):
    path = tmp_path / "ctrl.npz"
    np.savez_compressed(path, ctrl=np.zeros((100_000, 2)))
    with limits(archive_bytes=10**6), pytest.raises(InputProblem, match="--limit archive_bytes="):
        make_control(str(path), m, 3, 10, 0)


def test_file_for_each_world(m, file):
    values = np.arange(24.0).reshape(4, 3, 2)
    control = make_control(file(ctrl=values), m, worlds=3, steps=2, seed=0)
    np.testing.assert_array_equal(control.at(jnp.int32(1)), values[1])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"ctrl": np.zeros((4, 3))},
            r"ctrl has shape \(4, 3\), expected \(steps, 2\) or \(steps, 5, 2\)",
        ),
        ({"ctrl": np.zeros((4, 2))}, "ctrl has 4 steps, the rollout 10; use --steps 4"),
        ({"control": np.zeros(2)}, "no array named 'ctrl' in it, only: control"),
        ({"ctrl": np.full((10, 2), np.nan)}, "ctrl is nan at step 0, world 0, control 0; every"),
        ({"ctrl": np.full((10, 2), "x")}, "ctrl has type <U1, expected real numbers"),
    ],
)
def test_a_file_that_does_not_fit(m, file, arrays, message):
    with pytest.raises(InputProblem, match=message):
        make_control(file(**arrays), m, worlds=5, steps=10, seed=0)


def test_no_such_file(m):
    with pytest.raises(InputProblem, match=r"absent\.npz: No such file or directory; give --ctrl"):
        make_control("absent.npz", m, 5, 10, 0)


def test_unknown_kind_of_controls_is_rejected(m):
    with pytest.raises(
        InputProblem, match=r"expected 'random', 'zero' or a file FILE\.npz, got 'rnd'"
    ):
        make_control("rnd", m, 5, 10, 0)
