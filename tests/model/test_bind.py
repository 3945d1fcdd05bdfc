"""Fields of named objects, compared with MJX's binding and with slices."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

import jaxsim

XML = """
<mujoco><worldbody>
  <body name="mo" mocap="true" pos="3 0 0"/>
  <body name="a" pos="0 0 1"><freejoint name="f"/><geom name="g" size=".1"/>
    <body name="b" pos="1 0 0"><joint name="h" damping=".2"/>
      <geom name="g2" size=".1 .2" type="capsule" rgba="1 0 0 1"/><site name="s" pos="0 1 0"/>
      <camera name="c"/><light name="l"/>
      <body name="w" pos="1 0 0"><joint name="v" type="ball"/><geom size=".1" pos=".3 0 0"/></body>
    </body></body></worldbody>
  <actuator><general name="k" joint="h" dyntype="filter" dynprm="1"/><motor name="m" joint="h"/>
  </actuator>
  <sensor><jointpos name="jp" joint="h"/><framepos name="fp" objtype="body" objname="b"/></sensor>
  <tendon><fixed name="t"><joint joint="h" coef="2"/></fixed></tendon>
  <equality><joint name="e" joint1="h" active="false"/></equality></mujoco>
"""
SPEC = mujoco.MjSpec.from_string(XML)
MJ = SPEC.compile()
LISTS = {
    "body": SPEC.bodies, "joint": SPEC.joints, "geom": SPEC.geoms, "site": SPEC.sites,
    "actuator": SPEC.actuators, "sensor": SPEC.sensors, "tendon": SPEC.tendons,
}  # fmt: skip
OF_DATA = {
    "body": "xpos xquat xmat cvel xfrc_applied",
    "joint": "qpos qvel qacc qfrc_bias",
    "geom": "xpos xmat",
    "site": "xpos xmat",
    "actuator": "ctrl force length",
    "sensor": "sensordata",
    "tendon": "length",
}
OF_MODEL = {
    "body": "mass pos inertia parentid",
    "joint": "range stiffness type qposadr",
    "geom": "size rgba type",
    "site": "pos",
    "actuator": "gainprm",
}


@pytest.fixture(scope="module")
def ours():
    m = jaxsim.put_model(MJ)
    return m, jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))


@pytest.fixture(scope="module")
def theirs():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        m = mjx.put_model(MJ)
        return m, mjx.put_data(MJ, _forward())


def _forward() -> mujoco.MjData:
    d = mujoco.MjData(MJ)
    mujoco.mj_forward(MJ, d)
    return d


def _equal(mine, expected) -> None:
    expected = np.asarray(expected)
    assert mine.size == expected.size
    np.testing.assert_allclose(mine.reshape(expected.shape), expected, atol=1e-6)


@pytest.mark.parametrize("kind", LISTS)
def test_fields_equal_those_of_mjx(kind, ours, theirs):
    (m, d), (mx, dx) = ours, theirs
    for chosen in (*LISTS[kind], LISTS[kind][::-1]):
        for name in OF_DATA[kind].split():
            with jax.numpy_dtype_promotion("standard"):
                expected = getattr(dx.bind(mx, chosen), name)
            found = getattr(d.bind(m, chosen), name)
            # MJX drops the axis of a list of one.
            if not isinstance(chosen, list) or len(chosen) > 1:
                assert found.shape == expected.shape
            _equal(found, expected)
        for name in OF_MODEL.get(kind, "").split():
            _equal(getattr(m.bind(chosen), name), getattr(mx.bind(chosen), name))


def test_elements_of_a_spec_and_names_select_the_same_objects(ours):
    m, d = ours
    spec = jaxsim.Spec.from_string(XML)
    for element, name in ((spec["joint", "v"], "joint:v"), (spec["body", "b"], "body:b")):
        np.testing.assert_array_equal(m.bind(element).pos, m.bind(name).pos)
    both = d.bind(m, ["joint:v", "joint:f"]).qpos
    np.testing.assert_array_equal(both, d.qpos[np.r_[8:12, 0:7]])


@pytest.mark.parametrize(
    ("what", "name", "value", "field", "places"),
    [
        ("joint:h", "qpos", 2.0, "qpos", [7]),
        ("joint:v", "qvel", [1.0, 2.0, 3.0], "qvel", [7, 8, 9]),
        (["actuator:m", "actuator:k"], "ctrl", [1.0, 2.0], "ctrl", [1, 0]),
        ("actuator:k", "act", 3.0, "act", [0]),
        ("body:mo", "mocap_pos", [1.0, 2.0, 3.0], "mocap_pos", [0]),
        ("body:b", "xfrc_applied", 1.0, "xfrc_applied", [3]),
        ("equality:e", "active", True, "eq_active", [0]),
    ],
)
def test_fields_are_set(what, name, value, field, places, ours):
    m, d = ours
    many = jax.tree.map(lambda a: jnp.stack([a, a]), d)
    for record, batch in ((d, ()), (many, (2,))):
        new = record.bind(m, what).set(name, value)
        expected = np.array(getattr(record, field))
        expected[
            (..., places, slice(None)) if expected.ndim - len(batch) == 2 else (..., places)
        ] = value
        np.testing.assert_array_equal(getattr(new, field), expected)
        got = getattr(new.bind(m, what), name)
        np.testing.assert_array_equal(got, np.broadcast_to(np.array(value), got.shape))


def test_fields_of_the_model_are_set_and_differentiated(ours):
    m, _ = ours
    assert float(m.bind("joint:h").set("damping", 0.7).dof_damping[6]) == 0.7

    def place(mass):
        return m.bind("body:b").set("mass", mass).body_mass.sum()

    assert float(jax.grad(place)(1.0)) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda m, d: d.bind(m, "joint:hh"),
            ValueError,
            "no joint is named 'hh'; did you mean 'h'",
        ),
        (
            lambda m, d: d.bind(m, ["joint:h", "body:a"]),
            ValueError,
            "one kind .* got .'body', 'joint'",
        ),
        (lambda m, d: d.bind(m, []), ValueError, "one kind"),
        (lambda m, d: d.bind(m, "joint:h").foo, AttributeError, "joint: Data has no field 'foo'"),
        (lambda m, d: d.bind(m, "joint:h").qfrc_spring, AttributeError, "keep=.'qfrc_spring'"),
        (lambda m, d: d.bind(m, "body:a").mocap_pos, AttributeError, "not mocap bodies"),
        (lambda m, d: m.bind("joint:h").set("type", 1), ValueError, "jnt_type: is static"),
        (
            lambda m, d: d.bind(m, "joint:v").set("qvel", jnp.zeros(2)),
            ValueError,
            "expected .3,., got .2,.",
        ),
    ],
)
def test_invalid_names_fields_and_shapes_are_rejected(call, error, message, ours):
    with pytest.raises(error, match=message):
        call(*ours)


def test_elements_without_a_name(ours):
    """MuJoCo numbers them; those of our Spec are refused."""
    text = XML.replace('name="g2"', "")
    mj_spec = mujoco.MjSpec.from_string(text)
    m = jaxsim.put_model(mj_spec.compile())
    for k in (1, 2):
        np.testing.assert_array_equal(m.bind(mj_spec.geoms[k]).pos, m.geom_pos[k])
        assert m.bind(mj_spec.geoms[k]).id == k
    np.testing.assert_array_equal(m.bind(mj_spec.geoms).size, m.geom_size)
    np.testing.assert_array_equal(m.bind(mj_spec.geoms).id, [0, 1, 2])
    geom = next(e for e in jaxsim.Spec.from_string(text)["body", "b"].children if e.tag == "geom")
    with pytest.raises(ValueError, match="this geom has no name"):
        m.bind(geom)
