"""A profile has every stage of a step, with a time of each."""

import jax.numpy as jnp
import pytest

import jaxsim

pytestmark = pytest.mark.kernels

MODEL = """<mujoco><option {}><flag energy="enable"/></option><worldbody>
<geom type="plane" size="5 5 1"/><body pos="0 0 .09"><freejoint/><geom size=".1"/><site name="s"/>
</body></worldbody><sensor><accelerometer site="s"/></sensor></mujoco>"""
STAGES = (
    *("kinematics", "com_pos", "crb", "collision", "sensor_pos", "energy_pos", "fwd_velocity"),
    *("make_rows", "sensor_vel", "energy_vel", "control", "fwd_actuation", "smooth_force"),
    *("fwd_constraint", "sensor_acc", "advance"),
)


@pytest.mark.parametrize("worlds", [6, pytest.param(None, marks=pytest.mark.slow)])
def test_every_stage_is_measured(worlds):
    m = jaxsim.load_model(MODEL.format(""))
    law = jaxsim.Callbacks(control=lambda m, d: d.replace(qfrc_applied=-0.1 * d.qvel))
    m, d = m.replace(callbacks=law), jaxsim.make_data(m)
    found = jaxsim.support.profile(
        m, d if worlds is None else jaxsim.replicate(d, worlds), seconds=0
    )
    assert tuple(s.name for s in found.stages) == STAGES
    assert all(s.seconds > 0 for s in found.stages)
    assert sum(s.share for s in found.stages) == pytest.approx(1)
    assert found.step > 0
    assert found.worlds == (1 if worlds is None else 8)  # a tile is filled up
    lines = str(found).splitlines()
    assert lines[1].split() == ["stage", "MuJoCo", "timer", "us", "a", "world", "share"]
    assert any(line.split()[:2] == ["collision", "POS_COLLISION"] for line in lines)
    assert len(lines) == len(STAGES) + 4


def test_what_is_no_world_is_refused():
    m = jaxsim.load_model(MODEL.format(""))
    with pytest.raises(ValueError, match="profile: d: expected a Data"):
        jaxsim.support.profile(m, jnp.zeros(3))
