"""MJX's inner modules, as programs use them: loops over the tree, records, single functions."""

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jaxsim.mjx._src.dataclasses import PyTreeNode, dataclass
from mjx.relaxed import as_mjx_is_used
from mujoco import mjx as theirs
from mujoco.mjx._src import forward as their_forward
from mujoco.mjx._src import ray as their_ray
from mujoco.mjx._src import scan as their_scan
from mujoco.mjx._src import support as their_support

import jaxsim.mjx as ours
from jaxsim.mjx._src import forward, ray, scan, support

# two trees, every kind of joint, a branch, a body without joints, actuators of several kinds
XML = """
<mujoco>
  <worldbody>
    <body><freejoint/><geom size=".1"/>
      <body pos=".3 0 0"><joint name="a" axis="0 1 0"/><joint type="slide" axis="1 0 0"/>
        <geom size=".1"/>
        <body pos=".3 0 0"><joint type="ball"/><geom size=".1"/><site name="tip"/></body>
        <body pos="0 .3 0"><geom size=".1"/></body>
      </body>
      <body pos="-.3 0 0"><joint name="b" axis="0 1 0"/><geom size=".1"/></body>
    </body>
    <body pos="2 0 0"><joint name="c" type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <camera/><camera mode="track"/>
  </worldbody>
  <actuator>
    <motor joint="a"/><position joint="c" kp="3"/><motor site="tip"/>
    <general joint="b" dyntype="filter" dynprm=".1"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML)


def loops(mjx_scan: Any, m: Any) -> dict:
    """Return the results of functions over the tree and over lists of objects."""
    sizes = {"b": m.nbody, "j": m.njnt, "q": m.nq, "v": m.nv, "u": m.nu, "a": m.na, "c": m.ncam}
    rows = {letter: jnp.arange(1.0, n + 1) for letter, n in sizes.items()}

    def total(carry, own):
        return own if carry is None else carry + own

    def of_body(carry, kind, q, v):
        assert isinstance(kind, np.ndarray)
        own = total(carry and carry[0], q.sum() + 10 * v.sum() + len(kind))
        return own, q * 2, v.sum() + jnp.zeros(v.shape[0])

    def of_joints(b, j, v):
        return b + j.sum(), v * b

    def of_actuator(gain, act, joint, v):
        return gain * 2, act + 1, v + joint

    def loop(f, in_types, out_types, *args, by):
        args = args or [rows[letter] for letter in in_types]
        return mjx_scan.flat(m, f, in_types, out_types, *args, group_by=by)

    qv = rows["q"], rows["v"]
    return {
        "down": mjx_scan.body_tree(m, total, "b", "b", rows["b"]),
        "up": mjx_scan.body_tree(m, total, "b", "b", rows["b"], reverse=True),
        "mixed": mjx_scan.body_tree(m, of_body, "jqv", "bqv", m.jnt_type, *qv),
        "bodies": loop(of_joints, "bjv", "bv", by="j"),
        "actuators": loop(of_actuator, "uajv", "uav", by="u"),
        "cameras": loop(lambda c: c + 1, "c", "c", by="c"),
    }


@pytest.mark.slow
def test_loops_give_what_those_of_mjx_give(model):
    found = loops(scan, ours.put_model(model))
    with as_mjx_is_used():
        expected = loops(their_scan, theirs.put_model(model))
    for name, value in expected.items():
        for a, b in zip(jax.tree.leaves(found[name]), jax.tree.leaves(value), strict=True):
            assert a.shape == b.shape, name
            np.testing.assert_allclose(a, b, err_msg=name)


def test_rows_of_an_argument_are_counted(model):
    m = ours.put_model(model)
    with pytest.raises(IndexError, match=r"argument 0, of type 'b': expected 7 rows, got 2"):
        scan.body_tree(m, lambda c, a: a, "b", "b", jnp.zeros(2))


class Point(PyTreeNode):
    x: jax.Array
    name: str
    table: np.ndarray


class Pair(PyTreeNode):
    first: Point
    others: list[Point]
    d: ours.Data | None = None


def test_records_are_trees_with_an_identity():
    p = Point(jnp.ones(2), "p", np.arange(3))
    assert len(jax.tree.leaves(p)) == 1
    traces = []

    @jax.jit
    def double(p):
        traces.append(p.name)
        return p.replace(x=2 * p.x)

    assert double(p).table.tolist() == [0, 1, 2]
    double(Point(jnp.zeros(2), "p", np.arange(3)))
    double(p.replace(table=np.arange(4)))
    assert len(traces) == 2
    assert [f.name for f in Point.fields()] == ["x", "name", "table"]
    assert pickle.loads(pickle.dumps(p)).name == "p"


def test_records_inside_records_are_changed_by_dotted_names():
    p = Point(jnp.ones(2), "p", np.arange(3))
    pair = Pair(p, [p, p])
    changed = pair.tree_replace({"first.x": jnp.zeros(2), "others.x": jnp.array([[1.0], [2.0]])})
    assert not changed.first.x.any()
    assert [float(q.x[0]) for q in changed.others] == [1, 2]
    assert pair.others[1].x[0] == 1
    assert len(jax.tree.leaves(pair)) == 3


def test_a_record_may_stay_a_leaf():
    class Plain(PyTreeNode, register_as_pytree=False):
        x: jax.Array

    assert len(jax.tree.leaves(Plain(jnp.ones(2)))) == 1

    @dataclass
    class Made:
        x: jax.Array

    assert len(jax.tree.leaves(Made(jnp.ones(2)).replace(x=jnp.zeros(3)))) == 1


def test_single_functions_give_what_those_of_mjx_give(model):
    key = jax.random.PRNGKey(0)
    q, v, u = jax.random.normal(key, (model.nq,)), jnp.ones(model.nv), jax.random.normal(key, (3,))
    quat = jnp.array([0.5, 0.5, 0.5, 0.5])
    lengths = jnp.linspace(0.4, 1.7, 9)
    muscle = jnp.array([0.7, 1.1, -1, 200, 0.5, 1.6, 1.5, 1.3, 1.2, 0])
    timing = jnp.array([0.01, 0.04, 0.3])

    def calls(forward, support, ray):
        return {
            "integrate": forward._integrate_pos(model.jnt_type, q, v, 0.01),
            "global": support.local_to_global(u, quat, 2 * u, quat),
            "pyramid": support._decode_pyramid(jnp.arange(1.0, 9), jnp.ones(5), 4),
            "frictionless": support._decode_pyramid(jnp.arange(1.0, 9), jnp.ones(5), 1),
            "lengths": support.muscle_gain_length(lengths, 0.5, 1.6),
            "gain": support.muscle_gain(0.8, 0.1, jnp.array([0.5, 1.5]), 2.0, muscle),
            "bias": support.muscle_bias(1.4, jnp.array([0.5, 1.5]), 2.0, muscle),
            "rate": support.muscle_dynamics(jnp.array(0.7), jnp.array(0.5), timing),
            "scale": support.muscle_dynamics_timescale(lengths - 1, 0.01, 0.04, 0.2),
            "sphere": ray.ray_geom(jnp.full(1, 0.5), jnp.array([-2.0, 0, 0]), jnp.eye(3)[0], 2),
            "box": ray.ray_geom(jnp.full(3, 0.5), jnp.array([-2.0, 3, 0]), jnp.eye(3)[0], 6),
        }

    with as_mjx_is_used():
        found = calls(forward, support, ray)
        expected = calls(their_forward, their_support, their_ray)
    for name, value in expected.items():
        for a, b in zip(jax.tree.leaves(found[name]), jax.tree.leaves(value), strict=True):
            assert a.shape == b.shape, name
            np.testing.assert_allclose(a, b, atol=1e-6, err_msg=name)


def test_records_of_an_engine_are_the_records(model):
    m = ours.put_model(model)
    d = ours.make_data(m)
    assert isinstance(m._impl, ours.ModelJAX)
    assert isinstance(m.opt._impl, ours._src.types.OptionJAX)
    assert isinstance(d._impl, ours._src.types.DataJAX)
