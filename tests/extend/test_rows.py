"""Rows of users against built-in ones: a sensor, an actuator law, a passive force, a collider.

Each does what a built-in object of the same model does, so that both must agree, in worlds that
differ and with the objects in an unusual order.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from states import world

import jaxsim
from jaxsim.enums import GeomType, ObjType, Stage

WORLDS = 6  # more than count as few, so that the code of many worlds runs

MODEL = """
<mujoco><option><flag eulerdamp="disable"/></option>
<extension><plugin plugin="lab.height"/><plugin plugin="lab.servo"/>
  <plugin plugin="lab.drag"><instance name="oil"><config key="rate" value=".3"/></instance></plugin>
</extension>
<worldbody>
  <geom type="plane" size="3 3 .1"/><site name="low" pos="1 0 .1"/>
  <body name="first" pos="2 0 2"><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>
  <body name="arm" pos="0 0 1"><joint name="a" axis="0 1 .1"/>{drag_a}
    <geom type="capsule" size=".05 .2" pos=".2 0 0" euler="0 90 0"/>
    <body pos=".4 0 0"><joint name="b" axis="0 1 0"/><site name="tip" pos=".1 0 .1"/>
      <geom size=".1"/></body></body>
  <body name="ball" pos="-1 0 .09"><freejoint/><geom name="ball" size=".1"/></body>
</worldbody>
<actuator><position joint="a" kp="3" ctrlrange="-1 1"/>{servo}</actuator>
<sensor>
  <jointpos joint="b"/>{height}<touch site="low"/>
</sensor></mujoco>
"""
OWN = MODEL.format(
    drag_a='<plugin instance="oil"/>',
    servo="""<plugin plugin="lab.servo" joint="b" ctrlrange="-.5 .5" forcerange="-.8 .8">
      <config key="kp" value="4"/></plugin>""",
    height="""<plugin plugin="lab.height" objtype="site" objname="tip" cutoff="1.2">
      <config key="gain" value="2"/></plugin>
      <plugin plugin="lab.height" objtype="site" objname="low"/>""",
)
BUILT_IN = MODEL.format(
    drag_a="",
    servo='<position joint="b" kp="4" ctrlrange="-.5 .5" forcerange="-.8 .8"/>',
    height='<framepos objtype="site" objname="tip"/><framepos objtype="site" objname="low"/>',
).replace('name="a" ', 'name="a" damping=".3" ')


class Height(jaxsim.extend.Plugin):
    name = "lab.height"
    settings = {"gain": "1"}
    stage = Stage.POS
    objtype = ObjType.SITE

    def sensor(self, m, d, at):
        return float(at.config["gain"]) * d.site_xpos[at.objid, 2:]


class Servo(jaxsim.extend.Plugin):
    name = "lab.servo"
    settings = {"kp": "1"}

    def actuator(self, m, d, at, given):
        return float(at.config["kp"]) * (given - d.actuator_length[at.id])


class Drag(jaxsim.extend.Plugin):
    """Slows the joint on which a body hangs."""

    name = "lab.drag"
    settings = {"rate": ""}

    def check(self, config):
        return "" if config["rate"] else "config 'rate' is missing"

    def passive(self, m, d, at):
        adr = m.body_dofadr[at.id]
        return jnp.zeros(m.nv).at[adr].set(-float(at.config["rate"]) * d.qvel[adr])


ROWS = (Height, Servo, Drag)


@pytest.fixture(autouse=True)
def rows():
    for row in ROWS:
        jaxsim.extend.register_plugin(row)
    yield
    for row in ROWS:
        if row.name in [name for name in registered() if name.startswith("lab.")]:
            jaxsim.extend.unregister_plugin(row.name)


def registered() -> list[str]:
    from jaxsim.extend.registry import registered_plugins

    return list(registered_plugins())


def worlds(m):
    """Worlds that differ in state and controls."""
    keys = jax.random.split(jax.random.key(3), WORLDS)

    def one(key):
        a, b, c = jax.random.split(key, 3)
        d = jaxsim.make_data(m, keep=["sensordata", "qfrc_passive", "actuator_force", "qacc"])
        turned = d.qpos.at[:3].add(jax.random.uniform(a, (3,), minval=-1, maxval=1))
        return d.replace(
            qpos=turned,
            qvel=jax.random.normal(b, (m.nv,)),
            ctrl=jax.random.uniform(c, (m.nu,), minval=-1, maxval=1),
        )

    return jax.vmap(one)(keys)


def test_rows_of_a_user_do_what_built_in_ones_do():
    own, built_in = jaxsim.load_model(OWN), jaxsim.load_model(BUILT_IN)
    d = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(own, worlds(own))
    e = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(built_in, worlds(built_in))
    for field in ("qpos", "qvel", "qacc", "actuator_force", "qfrc_passive"):
        np.testing.assert_allclose(getattr(d, field), getattr(e, field), rtol=1e-12, atol=1e-12)
    z = np.asarray(e.sensordata)[:, [3, 6]] * np.array([2.0, 1.0])
    np.testing.assert_allclose(d.sensordata[:, 1:3], np.minimum(z, [1.2, np.inf]), atol=1e-12)


@pytest.mark.slow
def test_one_world_equals_the_same_among_many():
    m = jaxsim.load_model(OWN)
    many = worlds(m)
    forward = jax.jit(jaxsim.forward)
    all_at_once = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, many)
    for k in (0, WORLDS - 1):
        one = forward(m, world(many, k))
        for field in ("sensordata", "qfrc_passive", "actuator_force", "qacc"):
            expected = getattr(all_at_once, field)[k]
            np.testing.assert_allclose(getattr(one, field), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_gradients_go_through_the_functions_of_a_user():
    own, built_in = jaxsim.load_model(OWN), jaxsim.load_model(BUILT_IN)

    def speed(m):
        def of(qpos, qvel):
            d = jaxsim.make_data(m).replace(qpos=qpos, qvel=qvel, ctrl=jnp.array([0.1, 0.05]))
            return jaxsim.step(m, d).qvel[2]

        return jax.jit(jax.grad(of, (0, 1)))

    qpos = own.qpos0.at[2].set(0.02)
    qvel = jnp.linspace(-0.5, 0.5, own.nv)
    for a, b in zip(speed(own)(qpos, qvel), speed(built_in)(qpos, qvel), strict=True):
        assert np.abs(b).max() > 1e-4
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def plane_sphere(size1, pos1, mat1, size2, pos2, mat2):
    normal = mat1[:, 2]
    dist = normal @ (pos2 - pos1) - size2[0]
    return dist[None], (pos2 - normal * (size2[0] + dist / 2))[None], normal[None]


@pytest.mark.slow
def test_a_collider_of_a_user_finds_the_contacts_of_ours():
    ours = jaxsim.load_model(BUILT_IN)
    kind = (GeomType.PLANE, GeomType.SPHERE)
    jaxsim.extend.register_collider(*kind, plane_sphere, slots=1)
    try:
        own = jaxsim.load_model(BUILT_IN)
        assert own.structure != ours.structure
        results = []
        for m in (own, ours):
            d = jax.vmap(lambda k, m=m: jaxsim.make_data(m).replace(qpos=m.qpos0.at[5].add(k)))(
                jnp.linspace(-0.02, 0.02, WORLDS)
            )
            results.append(jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, d))
        for field in ("dist", "pos", "frame", "geom"):
            a, b = (getattr(d.contact, field) for d in results)
            np.testing.assert_allclose(a, b, atol=1e-12, err_msg=field)
        assert 0 < (results[0].ncon > 0).sum() < WORLDS
        np.testing.assert_allclose(results[0].qvel, results[1].qvel, atol=1e-10)
    finally:
        jaxsim.extend.unregister_collider(*kind)
    with pytest.raises(ValueError, match="is not the one that the model was loaded with"):
        jaxsim.step(own, jaxsim.make_data(own).replace(time=1.0))


def test_a_saved_model_finds_its_rows_again(tmp_path):
    path = tmp_path / "own.jxm"
    jaxsim.save_model(jaxsim.load_model(OWN), path)
    jaxsim.extend.unregister_plugin("lab.servo")
    with pytest.raises(jaxsim.ModelError, match=r"needs the plugin 'lab\.servo'; register it"):
        jaxsim.load_model(path)
    jaxsim.extend.register_plugin(ROWS[1])
    m = jaxsim.load_model(path)
    d = jax.eval_shape(jaxsim.forward, m, jaxsim.make_data(m))
    assert d.sensordata.shape == (4,)


def test_a_plugin_registered_anew_is_not_taken_for_the_old_one():
    m = jaxsim.load_model(OWN)
    jaxsim.extend.unregister_plugin("lab.height")
    jaxsim.extend.register_plugin(ROWS[0])
    with pytest.raises(ValueError, match=r"'lab\.height' is not the one that the model was loaded"):
        jaxsim.forward(m, jaxsim.make_data(m))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('key="gain"', 'key="gian"', r"key='gian' is no setting of lab\.height; did you mean"),
        ('objtype="site" objname="low"', "", r"lab\.height is attached to a site"),
        ('<config key="rate" value=".3"/>', "", r"lab\.drag: config 'rate' is missing"),
        ('instance="oil"', 'plugin="lab.servo"', r"lab\.servo is for actuators"),
        ('plugin="lab.drag"', 'plugin="lab.dragg"', r"not known; did you mean 'lab\.drag'"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_with_its_place(old, new, message):
    with pytest.raises(jaxsim.ModelError, match=message) as fault:
        jaxsim.load_model(OWN.replace(old, new, 1))
    assert "<string>:" in str(fault.value)


def test_a_function_that_returns_another_shape_is_refused():
    jaxsim.extend.unregister_plugin("lab.height")

    @jaxsim.extend.register_plugin
    class Wrong(Height):
        def sensor(self, m, d, at):
            return d.qpos

    m = jaxsim.load_model(OWN)
    with pytest.raises(ValueError, match=r"'lab\.height': sensor returned shape \(10,\)"):
        jaxsim.forward(m, jaxsim.make_data(m))


def test_rows_are_refused_that_cannot_be():
    with pytest.raises(ValueError, match=r"'lab\.drag' is registered already"):
        jaxsim.extend.register_plugin(ROWS[2])
    idle = type("Idle", (jaxsim.extend.Plugin,), {"name": "lab.idle"})
    with pytest.raises(
        ValueError, match=r"'lab\.idle' implements no capability; give it one of actuator"
    ):
        jaxsim.extend.register_plugin(idle)
    with pytest.raises(ValueError, match="Nameless has no name"):
        jaxsim.extend.register_plugin(type("Nameless", (Servo,), {"name": ""}))
    with pytest.raises(ValueError, match=r"no plugin 'mujoco\.pid' was registered"):
        jaxsim.extend.unregister_plugin("mujoco.pid")
    with pytest.raises(ValueError, match="PLANE comes before SPHERE"):
        jaxsim.extend.register_collider(GeomType.SPHERE, GeomType.PLANE, plane_sphere, 1)
    with pytest.raises(ValueError, match="none was registered for these types"):
        jaxsim.extend.unregister_collider(GeomType.BOX, GeomType.BOX)
