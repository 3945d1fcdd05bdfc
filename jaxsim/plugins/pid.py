"""`mujoco.pid`: a position servo with an integral term and a rate-limited setpoint.

MuJoCo's documentation of the plugin: force = kp e + ki (integral of e) + kd de/dt, with e =
setpoint - length. `imax` limits the force of the integral term, `slewmax` the rate of the setpoint.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import DynType
from jaxsim.extend.plugin import Attached, Config, Plugin
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.plugins.numbers import setting_number


class Pid(Plugin):
    """PID controller; its activations are the integral of the error with `ki`, and the setpoint
    with `slewmax`."""

    name = "mujoco.pid"
    settings = dict.fromkeys(("kp", "ki", "kd", "imax", "slewmax"), "")
    idle = "no actuator names this instance; remove it, or write <actuator><plugin instance='...'/>"

    def check(self, config: Config) -> str:
        """Check that limits are not negative."""
        if setting_number(config, "slewmax") < 0:
            return "slewmax must not be negative"
        return "imax must not be negative" if setting_number(config, "imax") < 0 else ""

    def activations(self, config: Config) -> int:
        """Return the number of activations: the integral of the error, and the rate-limited
        setpoint."""
        return int(setting_number(config, "ki") != 0) + int(bool(config["slewmax"]))

    def params(self, config: Config) -> dict[str, float]:
        """Return the gains and limits that are given."""
        given = ("kp", "ki", "kd", *(key for key in ("imax", "slewmax") if config[key]))
        return {key: setting_number(config, key) for key in given}

    def actuator(self, m: Model, d: Data, at: Attached, given: jax.Array) -> jax.Array:
        """Return the force of each actuator, (n,)."""
        goal = self._goal(m, d, at, given)
        error = goal - d.actuator_length[m.actuator_outadr[at.id]]
        rate = self._setpoint_rate(m, d, at) - d.actuator_velocity[m.actuator_outadr[at.id]]
        force = at.params["kp"] * error + at.params["kd"] * rate
        if setting_number(at.config, "ki"):
            force += at.params["ki"] * self._integral(m, at, error)
        return force

    def act_dot(self, m: Model, d: Data, at: Attached, given: jax.Array) -> jax.Array:
        """Return rates that give the activations their intended values after one step."""
        goal = self._goal(m, d, at, given)
        next_ = []
        if setting_number(at.config, "ki"):
            error = goal - d.actuator_length[m.actuator_outadr[at.id]]
            next_.append(self._integral(m, at, error))
        if at.config["slewmax"]:
            next_.append(goal)
        return (jnp.stack(next_, axis=1) - at.act) / m.opt.timestep

    def _goal(self, m: Model, d: Data, at: Attached, given: jax.Array) -> jax.Array:
        """Return the setpoint, clamped to the control range and limited in its rate."""
        ctrl_adr = m.actuator_ctrladr[at.id]
        limited = m.actuator_ctrllimited[ctrl_adr] & (m.actuator_dyntype[at.id] == DynType.NONE)
        if limited.any():  # regardless of the flag that clamps controls
            lower, upper = m.actuator_ctrlrange[ctrl_adr, 0], m.actuator_ctrlrange[ctrl_adr, 1]
            given = jnp.where(limited, jnp.clip(given, lower, upper), given)
        if not at.config["slewmax"]:
            return given
        last, most = at.act[:, -1], at.params["slewmax"] * m.opt.timestep
        return jnp.where(d.time > 0, jnp.clip(given, last - most, last + most), given)

    def _integral(self, m: Model, at: Attached, error: jax.Array) -> jax.Array:
        """Return the integral of the error at the end of the step."""
        integral = at.act[:, 0] + error * m.opt.timestep
        if not at.config["imax"]:
            return integral
        most = at.params["imax"] / at.params["ki"]
        return jnp.clip(integral, -most, most)

    def _setpoint_rate(self, m: Model, d: Data, at: Attached) -> jax.Array:
        """Return the rate of the setpoint: that of an activation, 0 for a control."""
        last = m.actuator_actadr[at.id] + m.actuator_actnum[at.id] - 1
        held = m.actuator_dyntype[at.id] != DynType.NONE
        if not held.any():
            return jnp.zeros(len(at.id), d.qpos.dtype)
        return jnp.where(held, d.act_dot[np.where(held, last, 0)], 0)
