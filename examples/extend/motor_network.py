"""A neural network as the motors of a robot, trained through the simulation to imitate others.

One instance of the plugin serves all motors: their torques are computed in one pass. The weights
are parameters of the model, so the error of a simulated motion can be differentiated by them.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import jaxsim

STEPS, WORLDS = 100, 8


class Net(nn.Module):
    """Torque of a motor from its error and its speed; the same network for all motors."""

    width: int

    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.tanh(nn.Dense(self.width)(x))
        return nn.Dense(1)(x)[..., 0]


@jaxsim.extend.register_plugin
class MotorNetwork(jaxsim.extend.Plugin):
    """Torques of all motors that the plugin serves, by a network."""

    name = "lab.motor_network"
    settings = {"width": "16", "seed": "0"}

    def params(self, config):
        net = Net(int(config["width"]))
        return net.init(jax.random.key(int(config["seed"])), jnp.zeros((1, 2)))

    def actuator(self, m, d, at, given):
        error = given - d.actuator_length[at.id]
        seen = jnp.stack([error, d.actuator_velocity[at.id]], axis=-1)
        return Net(int(at.config["width"])).apply(at.params, seen)


@jaxsim.extend.register_plugin
class RealMotor(jaxsim.extend.Plugin):
    """The motor that is imitated: a servo with saturation and friction."""

    name = "lab.real_motor"

    def actuator(self, m, d, at, given):
        error = given - d.actuator_length[at.id]
        return 2 * jnp.tanh(3 * error) - 0.3 * jnp.tanh(5 * d.actuator_velocity[at.id])


MODEL = """
<mujoco>
  <option timestep=".01"/>
  <extension><plugin plugin="{plugin}"><instance name="motors"/></plugin></extension>
  <worldbody>
    <body><joint name="a" axis="0 0 1" armature=".05"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body pos=".3 0 0"><joint name="b" axis="0 0 1" armature=".05"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body>
  </worldbody>
  <actuator><plugin instance="motors" joint="a"/><plugin instance="motors" joint="b"/></actuator>
</mujoco>
"""


def motions(m, goals):
    """Return angles (worlds, steps, 2) of a robot with given joint targets."""

    def one(goal):
        d = jaxsim.make_data(m).replace(ctrl=goal)
        return jaxsim.rollout(m, d, steps=STEPS, record=["qpos"])[1]["qpos"]

    return jax.vmap(one)(goals)


def main(turns=300):
    goals = jax.random.uniform(jax.random.key(1), (WORLDS, 2), minval=-1, maxval=1)
    measured = motions(jaxsim.load_model(MODEL.format(plugin="lab.real_motor")), goals)
    m = jaxsim.load_model(MODEL.format(plugin="lab.motor_network"))

    def error(weights):
        moved = motions(jaxsim.support.set_plugin_params(m, "motors", weights), goals)
        return jnp.mean((moved - measured) ** 2)

    weights = jaxsim.support.get_plugin_params(m, "motors")
    optimizer = optax.adam(1e-2)

    @jax.jit
    def turn(carry, _):
        weights, state = carry
        value, slope = jax.value_and_grad(error)(weights)
        change, state = optimizer.update(slope, state)
        return (optax.apply_updates(weights, change), state), value

    _, errors = jax.lax.scan(turn, (weights, optimizer.init(weights)), length=turns)
    first, last = (float(jnp.sqrt(errors[k])) for k in (0, -1))
    print(f"error of the angles: {first:.3f} rad at first, {last:.4f} rad after {turns} turns")
    return errors


if __name__ == "__main__":
    main()
