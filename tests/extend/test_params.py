"""Parameters of plugins are leaves of the model: batched, derived, replaced by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

MODEL = """
<mujoco>
<extension><plugin plugin="lab.gain"><instance name="one"/>
  <instance name="two"><config key="gain" value="3"/></instance></plugin></extension>
<worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<actuator><plugin instance="two" joint="a"/><plugin instance="one" joint="a" gear=".5"/></actuator>
</mujoco>
"""


class Gain(jaxsim.extend.Plugin):
    name = "lab.gain"
    settings = {"gain": "2"}

    def params(self, config):
        return {"gain": float(config["gain"]), "bias": np.array([0.1, -0.2])}

    def actuator(self, m, d, at, given):
        return at.params["gain"] * given + jnp.sum(at.params["bias"]) * d.actuator_length[at.id]


@pytest.fixture(autouse=True)
def gain():
    jaxsim.extend.register_plugin(Gain)
    yield
    jaxsim.extend.unregister_plugin("lab.gain")


def test_parameters_by_name():
    m = jaxsim.load_model(MODEL)
    two = jaxsim.support.get_plugin_params(m, "two")
    assert two["gain"] == 3
    changed = jaxsim.support.set_plugin_params(
        m, "two", {"gain": 5.0, "bias": jnp.array([1.0, 2.0])}
    )
    assert jaxsim.support.get_plugin_params(changed, "two")["gain"] == 5
    np.testing.assert_array_equal(jaxsim.support.get_plugin_params(changed, 1)["bias"], [1, 2])
    one = jaxsim.support.get_plugin_params(changed, "one")
    assert (one["gain"], one["bias"].tolist()) == (2, [0.1, -0.2])
    d = jaxsim.make_data(m).replace(ctrl=jnp.array([1.0, 1.0]))
    forward = jax.jit(jaxsim.forward)
    np.testing.assert_allclose(forward(m, d).actuator_force, [3, 2])
    np.testing.assert_allclose(forward(changed, d).actuator_force, [5, 2])


def test_what_does_not_fit_is_refused():
    m = jaxsim.load_model(MODEL)
    with pytest.raises(ValueError, match=r"expected .*'bias'.*, got .*'base'"):
        jaxsim.support.set_plugin_params(m, "two", {"gain": 1.0, "base": jnp.zeros(2)})
    with pytest.raises(ValueError, match=r"expected an array of shape \(2,\), got \(3,\)"):
        jaxsim.support.set_plugin_params(m, "two", {"gain": 1.0, "bias": jnp.zeros(3)})
    with pytest.raises(ValueError, match="has 2 plugins, no number 2"):
        jaxsim.support.get_plugin_params(m, 2)
    with pytest.raises(ValueError, match="did you mean 'two'"):
        jaxsim.support.get_plugin_params(m, "tow")
    with pytest.raises(jaxsim.ModelError, match=r"<string>:4: .*could not convert .* 'much'"):
        jaxsim.load_model(MODEL.replace('value="3"', 'value="much"'))
    jaxsim.extend.unregister_plugin("lab.gain")
    words = type("Words", (Gain,), {"params": lambda self, config: {"gain": np.array(["x"])}})
    jaxsim.extend.register_plugin(words)
    with pytest.raises(ValueError, match=r"'lab\.gain': params: expected real numbers"):
        jaxsim.load_model(MODEL)


@pytest.mark.slow
def test_worlds_with_parameters_of_their_own_and_derivatives():
    m = jaxsim.load_model(MODEL)
    d = jaxsim.make_data(m).replace(ctrl=jnp.array([0.4, 1.0]), qpos=jnp.array([0.3]))

    def speed(params):
        return jaxsim.step(jaxsim.support.set_plugin_params(m, "two", params), d).qvel[0]

    params = jaxsim.support.get_plugin_params(m, "two")
    gains = jnp.array([1.0, 2.0, 4.0, 5.0, 7.0])
    many = jax.vmap(lambda g: {**params, "gain": g})(gains)
    speeds, slopes = jax.jit(jax.vmap(jax.value_and_grad(speed)))(many)
    one = jax.jit(speed)
    for k in (0, 4):
        alone = {**params, "gain": gains[k]}
        np.testing.assert_allclose(speeds[k], one(alone), rtol=1e-12)
        for name, change in (("gain", 1e-4), ("bias", jnp.array([1e-4, 0.0]))):
            ends = [one({**alone, name: alone[name] + s * change}) for s in (1, -1)]
            slope = jnp.ravel(slopes[name][k])[0]
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, rtol=1e-7)
    assert np.ptp(speeds) > 1e-3


def test_parameters_stay_with_a_saved_model(tmp_path):
    m = jaxsim.load_model(MODEL)
    m = jaxsim.support.set_plugin_params(m, "one", {"gain": 9.0, "bias": jnp.zeros(2)})
    jaxsim.save_model(m, tmp_path / "m.jxm")
    again = jaxsim.load_model(tmp_path / "m.jxm")
    assert jaxsim.support.get_plugin_params(again, "one")["gain"] == 9
