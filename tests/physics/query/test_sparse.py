"""Matrices by rows, with MuJoCo's patterns and numbers."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS

import jaxsim
from jaxsim.io.bridge import put_data, put_model

# a simple body (diagonal rows), a chain, two branches; actuators in another order than joints
XML = """<mujoco><option><flag contact="disable"/></option><worldbody>
  <body><freejoint/><geom size=".1"/></body>
  <body pos="1 0 0"><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint name="b" axis="0 0 1"/><geom size=".1" pos=".1 0 0"/>
      <site name="s" pos=".1 .1 0"/></body>
    <body pos="0 .4 0"><joint name="q" type="ball"/><geom size=".1" pos=".1 0 0"/></body></body>
  <flexcomp name="f" type="grid" count="3 1 1" dim="1" spacing=".1 .1 .1" mass="1" pos="0 3 0">
    <edge equality="true"/></flexcomp>
</worldbody>
<tendon><fixed name="t"><joint joint="b" coef="2"/><joint joint="a" coef="-1"/></fixed></tendon>
<actuator><motor site="s" gear="1 2 3 0 0 1"/><motor tendon="t"/><motor joint="q" gear="1 2 3"/>
  <motor joint="a"/></actuator></mujoco>"""
KEPT = ["M", "ten_J", "actuator_moment", "flexedge_J"]


@pytest.fixture(scope="module")
def both():
    mj = mujoco.MjModel.from_xml_string(XML)
    d = mujoco.MjData(mj)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(mj, d.qpos, rng.normal(size=mj.nv), 0.3)
    mujoco.mj_forward(mj, d)
    m = put_model(mj)
    return mj, d, m, jax.jit(jaxsim.forward)(m, put_data(mj, d, keep=KEPT))


def same(found, values, count, columns) -> None:
    np.testing.assert_array_equal(np.diff(found.indptr), count)
    np.testing.assert_array_equal(found.indices, columns[: len(found.indices)])
    np.testing.assert_allclose(found.data, values[: len(found.data)], **DYNAMICS)


def test_patterns_and_numbers_of_mujoco(both):
    mj, theirs, m, d = both
    same(jaxsim.support.sparse_m(m, d), theirs.M, mj.M_rownnz, mj.M_colind)
    same(jaxsim.support.sparse_ten_j(m, d), theirs.ten_J, mj.ten_J_rownnz, mj.ten_J_colind)
    found = jaxsim.support.sparse_flexedge_j(m, d)
    same(found, theirs.flexedge_J.ravel(), mj.flexedge_J_rownnz, mj.flexedge_J_colind)
    assert found.shape == (mj.nflexedge, mj.nv)
    moment = np.zeros((mj.nout, mj.nv))
    mujoco.mju_sparse2dense(
        moment, theirs.actuator_moment, theirs.moment_rownnz, theirs.moment_rowadr,
        theirs.moment_colind,
    )  # fmt: skip
    found = jaxsim.support.sparse_actuator_moment(m, d)
    np.testing.assert_allclose(found.todense(), moment, **DYNAMICS)
    assert (np.diff(found.indptr)[1:] == theirs.moment_rownnz[1:]).all()  # of joints and tendons
    A = jaxsim.support.sparse_m(m, d).todense()
    np.testing.assert_allclose(A + jnp.tril(A, -1).T, jaxsim.support.full_m(m, d), **DYNAMICS)


def test_flex_without_edge_forces_has_no_entries():
    xml = XML.replace('<edge equality="true"/>', "")
    mj, m = mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)
    found = jaxsim.support.sparse_flexedge_j(m, jaxsim.make_data(m, keep=["flexedge_J"]))
    assert mj.flexedge_J_rownnz.sum() == 0 == found.nse
    assert found.todense().shape == (mj.nflexedge, mj.nv)


def test_products_transformations_and_what_is_not_kept(both):
    _, _, m, d = both
    A = jax.jit(jaxsim.support.sparse_ten_j)(m, d)
    np.testing.assert_allclose(A @ jnp.ones(m.nv), d.ten_J @ jnp.ones(m.nv), **DYNAMICS)
    many = jax.vmap(lambda s: jaxsim.support.sparse_m(m, d.replace(M=s * d.M)).data)(
        jnp.arange(3.0)
    )
    np.testing.assert_allclose(many[2], 2 * jaxsim.support.sparse_m(m, d).data)
    lean = jaxsim.make_data(m)
    assert jaxsim.support.sparse_m(m, lean).shape == (m.nv, m.nv)
    for function in (
        jaxsim.support.sparse_ten_j,
        jaxsim.support.sparse_actuator_moment,
        jaxsim.support.sparse_flexedge_j,
    ):
        with pytest.raises(ValueError, match=r"does not carry '\w+'; keep it: make_data\(m, keep"):
            function(m, lean)
