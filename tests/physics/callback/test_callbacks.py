"""Callbacks against MuJoCo's, which are set to the same laws."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.callback.scene import OURS, THEIRS, installed, model
from states import stack
from tolerance import DIFFERENCE, FLOAT32, STAGES, STIFF

import jaxsim
from jaxsim import Callbacks

RESULTS = (
    *("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied"),
    *("xfrc_applied", "eq_active", "mocap_pos", "userdata", "xpos", "site_xpos", "cvel", "energy"),
    *("ncon", "nefc", "qfrc_bias", "qfrc_passive", "act_dot", "actuator_force", "qfrc_actuator"),
    *("qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc", "sensordata", "actuator_length"),
)
# a user actuator on the second joint, a user sensor after another one
SMALL = """<mujoco><option integrator="{}" timestep=".01"><flag {}/></option><worldbody>
<body><joint name="a" axis="0 1 0" stiffness="1"/><geom size=".1" pos=".1 0 0"/>
  <body pos=".2 0 0"><joint name="b" axis="0 1 0" damping=".1"/><geom size=".1" pos=".1 0 .1"/>
</body></body></worldbody>
<actuator><motor joint="a"/><general joint="b" dyntype="user" gaintype="user" biastype="user"
  actdim="{}"/></actuator>
<sensor><jointvel joint="b"/><user dim="2" needstage="vel"/></sensor></mujoco>"""
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def small(integrator="Euler", flag="", actdim=1):
    mj = mujoco.MjModel.from_xml_string(SMALL.format(integrator, flag, actdim))
    mjd, m = mujoco.MjData(mj), jaxsim.put_model(mj)
    mjd.qpos[:], mjd.qvel[:], mjd.act[:], mjd.ctrl[:] = (0.3, -0.2), (1, -2), 0.4, (0.5, 0.6)
    d = jaxsim.make_data(m)
    d = d.replace(**{n: jnp.array(getattr(mjd, n)) for n in ("qpos", "qvel", "act", "ctrl")})
    return mj, mjd, m, d


def same(d, mjd, names=RESULTS, tolerance=STIFF):
    for name in names:
        theirs = np.asarray(getattr(mjd, name), float)
        scale = 1 + np.abs(theirs).max(initial=0)
        ours = np.asarray(getattr(d, name), float)
        np.testing.assert_allclose(
            ours, theirs.reshape(ours.shape), atol=tolerance["atol"] * scale, err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["RK4", "implicit", "discrete"])
def test_all_of_them_in_a_run(integrator):
    """Called when MuJoCo calls its own, in every stage of RK4; what they set stays."""
    mj = model(integrator)
    m, mjd, rng = jaxsim.put_model(mj), mujoco.MjData(mj), np.random.default_rng(0)
    mjd.qvel[:], mjd.act[:] = rng.normal(size=mj.nv), 0.3 * rng.normal(size=mj.na)
    d = jaxsim.make_data(m).replace(qvel=jnp.array(mjd.qvel), act=jnp.array(mjd.act))
    step, touched = jit(partial(jaxsim.step, callbacks=OURS)), False
    with installed(THEIRS):
        for _ in range(6):
            mujoco.mj_step(mj, mjd)
            d = step(m, d)
            same(d, mjd)
            touched |= mjd.ncon > 0
    assert touched
    assert d.eq_active[0]


def test_control_and_passive_take_part_where_mujoco_has_them():
    """The inverse dynamics knows passive forces and sensors, not controls; `step1` ends with the
    controls, and `step2` begins after them."""
    mj = model("Euler")
    m, mjd = jaxsim.put_model(mj), mujoco.MjData(mj)
    mjd.qvel[:], mjd.qacc[:] = 0.2, np.arange(mj.nv)
    served = m.replace(callbacks=OURS)
    d = jaxsim.make_data(m).replace(qvel=jnp.array(mjd.qvel), qacc=jnp.array(mjd.qacc))
    with installed(THEIRS):
        mujoco.mj_inverse(mj, mjd)
        d = jit(jaxsim.inverse)(served, d)
        same(d, mjd, ("qfrc_inverse", "sensordata", "ctrl"))
        mujoco.mj_step1(mj, mjd)
        d = jit(jaxsim.step1)(served, d)
        same(d, mjd, ("ctrl", "userdata", "xfrc_applied", "sensordata"))
        mujoco.mj_step2(mj, mjd)
        same(jit(jaxsim.step2)(served, d), mjd)


@pytest.mark.short("actuation")
@pytest.mark.parametrize("flag", ["", "actuation", "sensor", "spring"])
def test_without_callbacks_and_with_flags(flag):
    """User types alone: no rate, gain 1, no bias, readings of zero. Flags turn callbacks off."""
    off = f'{flag}="disable"' + (' damper="disable"' if flag == "spring" else "") if flag else ""
    mj, mjd, m, d = small(flag=off)
    forward = jit(jaxsim.forward)
    names = ("act_dot", "actuator_force", "sensordata", "qfrc_passive", "qacc", "ctrl")
    with installed(LAWS if flag else {}):
        mujoco.mj_forward(mj, mjd)
    same(forward(m.replace(callbacks=SAME_LAWS) if flag else m, d), mjd, names, STAGES)


def test_activations_of_higher_order():
    """All rates of an actuator with several activations, which MuJoCo's callback writes itself."""
    mj, mjd, m, d = small(actdim=2)

    def rates(m, d, i):
        d.act_dot[:] = d.act[1], -d.act[0]
        return 0.0

    with installed({"act_dyn": rates}):
        mujoco.mj_step(mj, mjd)
    ours = Callbacks(act_dyn=lambda m, d, id: jnp.stack([d.act[1], -d.act[0]]))
    same(jit(jaxsim.step)(m.replace(callbacks=ours), d), mjd, ("act", "qpos", "qvel"), STAGES)


# of the small model
SAME_LAWS = Callbacks(
    control=lambda m, d: d.replace(ctrl=-d.qvel),
    passive=lambda m, d: 0.5 * jnp.sin(d.qpos),
    act_gain=lambda m, d, id: 2 + d.qpos[id],
    act_bias=lambda m, d, id: -d.qvel[id],
    act_dyn=lambda m, d, id: d.ctrl[id] - d.act,
    sensor=lambda m, d, stage, id: stage * d.qpos,
)


def _control(m, d):
    d.ctrl[:] = -d.qvel


def _passive(m, d):
    d.qfrc_passive[:] += 0.5 * np.sin(d.qpos)


def _sensor(m, d, stage):
    if stage == mujoco.mjtStage.mjSTAGE_VEL:
        d.sensordata[1:] = 2 * d.qpos


LAWS = {
    "control": _control,
    "passive": _passive,
    "act_gain": lambda m, d, i: 2 + d.qpos[i],
    "act_bias": lambda m, d, i: -d.qvel[i],
    "act_dyn": lambda m, d, i: d.ctrl[i] - d.act[0],
    "sensor": _sensor,
}


def feedback(gain, m, d):
    return d.replace(ctrl=-gain["k"] @ d.qvel + gain["b"])


@cache
def trained(dtype=None):
    """After three steps of RK4, by the numbers of a control law."""
    _, _, m, d = small("RK4")
    if dtype is not None:
        cast = partial(jax.tree.map, lambda a: a.astype(dtype) if a.dtype == jnp.float64 else a)
        m, d = cast(m), cast(d)

    def loss(gain):
        law = Callbacks(control=jax.tree_util.Partial(feedback, gain), **SAME_WITHOUT_CONTROL)
        end, _ = jaxsim.rollout(m.replace(callbacks=law), d, 3)
        return jnp.sum(end.qpos**2) + end.sensordata[1]

    return loss


SAME_WITHOUT_CONTROL = {
    n: getattr(SAME_LAWS, n) for n in ("passive", "act_gain", "act_bias", "act_dyn", "sensor")
}


def gain(scale=1.0, dtype=np.float64):
    return {
        "k": jnp.array([[0.3, 0.1], [-0.2, 0.5]], dtype) * dtype(scale),
        "b": jnp.array([0.2, -0.1], dtype),
    }


@pytest.mark.slow
def test_the_numbers_of_a_law_are_differentiated():
    loss, at = trained(), gain()
    both = jit(jax.value_and_grad(loss))  # one program
    found = both(at)[1]
    for name in at:
        for index in np.ndindex(at[name].shape):
            h = 1e-6
            up, down = (both({**at, name: at[name].at[index].add(s)})[0] for s in (h, -h))
            np.testing.assert_allclose(found[name][index], (up - down) / 2 / h, **DIFFERENCE)
    assert np.abs(found["k"]).min() > 1e-4


@pytest.mark.slow
def test_worlds_have_laws_with_numbers_of_their_own():
    """More worlds than count as few, so that the code of many worlds runs."""
    loss = trained()
    scales = np.linspace(0.5, 2, 6)
    laws = stack([gain(s) for s in scales])
    together, alone = jit(jax.vmap(loss))(laws), jit(loss)
    assert np.ptp(together) > 0.001
    for k, s in enumerate(scales):
        np.testing.assert_allclose(together[k], alone(gain(s)), rtol=1e-9)


@pytest.mark.slow
def test_single_precision():
    loss = trained(jnp.float32)
    found = jit(loss)(gain(dtype=np.float32))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, jit(trained())(gain()), **FLOAT32)


FILTER = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<geom name="wall" type="box" size=".1 1 1" contype="2" conaffinity="2"/>
<body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .1 .1" contype="2" conaffinity="4"/>
  <geom size=".1" pos=".05 0 0"/><geom size=".12" contype="0" conaffinity="0"/>
  <body pos=".05 0 0"><joint axis="0 1 0"/><geom name="b" size=".1" contype="8"/></body></body>
<body pos="0 .05 .05"><freejoint/><geom size=".1"/><geom size=".1 .1" type="capsule" pos=".1 0 0"/>
</body>
<body pos="0 .1 .05"><freejoint/><geom size=".1" contype="16" conaffinity="16"/></body>
</worldbody><contact><pair geom1="b" geom2="floor"/></contact></mujoco>"""


def test_a_callback_says_which_geoms_touch():
    """Instead of the bits of geoms, not of bodies; by their ids, the lower body's first, and by
    the state."""
    mj, m = mujoco.MjModel.from_xml_string(FILTER), jaxsim.load_model(FILTER, contacts=40)
    numbers = []
    for law in (lambda a, b, z: a < 0, lambda a, b, z: ((a + 2 * b) % 3 > 0) & (z > 0.02)):
        mjd, d = mujoco.MjData(mj), jaxsim.make_data(m)
        filtered = Callbacks(contactfilter=lambda m, d, a, b, law=law: law(a, b, d.geom_xpos[b, 2]))

        def theirs(m, d, a, b, law=law):
            return int(law(a, b, d.geom_xpos[b, 2]))

        with installed({"contactfilter": theirs}):
            mujoco.mj_forward(mj, mjd)
        d = jit(jaxsim.forward)(m.replace(callbacks=filtered), d)
        assert d.ncon == mjd.ncon
        np.testing.assert_array_equal(d.contact.geom[: mjd.ncon], mjd.contact.geom)
        same(d, mjd, ("qacc",))
        numbers.append(mjd.ncon)
    unfiltered = mujoco.MjData(mj)
    mujoco.mj_forward(mj, unfiltered)
    assert numbers[0] > unfiltered.ncon > numbers[1] > 0


WRONG = {
    "expected a Data": Callbacks(control=lambda m, d: d.qvel),
    "sets 'qpos'; it may set ctrl": Callbacks(control=lambda m, d: d.replace(qpos=2 * d.qpos)),
    r"passive: expected shape \(2,\), got float64\[1\]": Callbacks(passive=lambda m, d: d.qvel[:1]),
    r"act_gain: expected shape \(1,\)": Callbacks(act_gain=lambda m, d, id: d.qvel),
    r"sensor: expected shape \(2,\)": Callbacks(sensor=lambda m, d, stage, id: 0.0),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_a_callback_may_not_do(message):
    _, _, m, d = small()
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(partial(jaxsim.forward, callbacks=WRONG[message]), m, d)


def test_a_callback_is_named():
    _, _, m, d = small()
    with pytest.raises(ValueError, match=r"expected jaxsim.Callbacks\(control=...\)"):
        m.replace(callbacks=lambda m, d: d)
    with pytest.raises(
        ValueError, match=r"expected jaxsim.Callbacks\(control=...\), got {'control'"
    ):
        m.replace(callbacks={"control": None})
    with pytest.raises(ValueError, match="step: callbacks: control: expected a function or None"):
        jaxsim.step(m, d, callbacks=Callbacks(control=5))
    with pytest.raises(TypeError, match="unexpected keyword argument 'controls'"):
        Callbacks(controls=lambda m, d: d)
    assert repr(SAME_LAWS.replace(control=None, sensor=None)) == (
        "Callbacks(passive, act_dyn, act_gain, act_bias)"
    )


def test_a_saved_model_has_none(tmp_path):
    _, _, m, _ = small()
    jaxsim.save_model(m.replace(callbacks=SAME_LAWS), tmp_path / "m.jxm")
    assert jaxsim.load_model(tmp_path / "m.jxm").callbacks is None
    assert "callbacks" not in jaxsim.state_dict(m.replace(callbacks=SAME_LAWS))
