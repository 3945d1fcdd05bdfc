"""Worlds of both engines, stepped side by side, that are equal in what sleeps and in all else."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tolerance import STIFF

import jaxsim

SHOWN = (
    *("qpos", "qvel", "act", "act_dot", "qacc", "qacc_smooth", "qacc_warmstart", "sensordata"),
    *("qfrc_smooth", "qfrc_passive", "qfrc_bias", "qfrc_constraint", "qfrc_actuator", "cvel"),
    *("actuator_force", "actuator_length", "ten_length", "ten_velocity", "xpos", "energy"),
)
COUNTS = ("ncon", "ne", "nf", "nl", "nefc", "nisland", "ntree_awake", "nbody_awake", "nv_awake")

step = jax.jit(jaxsim.step)


class Twins:
    """One world in both engines."""

    def __init__(self, mj: mujoco.MjModel, m: jaxsim.Model, keep="default"):
        self.mj, self.m = mj, m
        self.mjd, self.d = mujoco.MjData(mj), jaxsim.make_data(m, keep=keep)

    def change(self, field: str, index, value) -> None:
        """Changes one input or state in both."""
        array = getattr(self.mjd, field)
        array[index] = value
        self.d = self.d.replace(**{field: jnp.array(array)})

    def run(self, steps: int, tolerance=STIFF) -> list[tuple[int, ...]]:
        """Steps both, equal at every step; which trees were awake after each."""
        history = []
        for i in range(steps):
            mujoco.mj_step(self.mj, self.mjd)
            self.d = step(self.m, self.d)
            np.testing.assert_array_equal(self.d.tree_asleep, self.mjd.tree_asleep, str(i))
            for count in COUNTS:
                assert int(getattr(self.d, count)) == getattr(self.mjd, count), (i, count)
            np.testing.assert_array_equal(self.d.body_awake, self.mjd.body_awake)
            np.testing.assert_array_equal(self.d.tree_awake, self.mjd.tree_awake)
            if self.mjd.nisland:
                np.testing.assert_array_equal(self.d.tree_island, self.mjd.tree_island)
            for field in SHOWN:
                np.testing.assert_allclose(
                    getattr(self.d, field),
                    getattr(self.mjd, field),
                    err_msg=f"{field}, step {i}",
                    **tolerance,
                )
            geoms = np.asarray(self.d.contact.geom)[: self.mjd.ncon]
            np.testing.assert_array_equal(geoms, self.mjd.contact.geom)
            history.append(tuple((np.asarray(self.d.tree_asleep) < 0).tolist()))
        return history

    def awake(self) -> set[int]:
        return set(np.flatnonzero(np.asarray(self.d.tree_asleep) < 0).tolist())


def of_text(text: str, keep="default") -> Twins:
    """A world of a text in both engines."""
    mj = mujoco.MjModel.from_xml_string(text)
    mj.opt.tolerance, mj.opt.iterations = 1e-14, 100
    return Twins(mj, jaxsim.put_model(mj), keep)
