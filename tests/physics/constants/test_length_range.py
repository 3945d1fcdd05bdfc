"""Ranges of actuator lengths that are found by simulation, against MuJoCo's."""

import jax
import mujoco
import numpy as np
import pytest
from tolerance import STIFF

import jaxsim
from jaxsim.errors import ModelError

ARM = """
<mujoco>
  <compiler angle="radian">{compiler}</compiler>
  <option gravity="0 0 -50" integrator="RK4"><flag limit="disable"/></option>
  <worldbody>
    <site name="w" pos=".1 0 .3"/>
    <geom name="round" type="cylinder" size=".05 .1" pos="0 0 .1" euler="1.57 0 0"/>
    <body>
      <joint name="a" axis="0 1 0" {limit} stiffness="100" damping="3" frictionloss="2"/>
      <geom size=".1" pos=".3 0 0"/><site name="s" pos=".2 0 0"/>
      <body pos=".4 0 0">
        <joint name="b" axis="0 1 0" range="-.5 .5"/><geom size=".1" pos=".1 0 0"/>
        <site name="t" pos=".1 0 .1"/>
        <body pos=".2 0 0">
          <joint name="c" axis="1 0 0"/><geom size=".05" pos="0 .1 .1"/>
          <site name="u" pos="0 .1 0"/>
        </body>
      </body>
    </body>
    <body pos="0 2 0">
      <joint name="d" type="ball" range="0 .4"/><geom size=".05" pos=".2 0 0"/>
      <site name="v" pos=".2 0 0"/>
    </body>
  </worldbody>
  <equality><joint joint1="c" joint2="b" polycoef=".1 2 0 0 0"/></equality>
  <tendon>
    <fixed name="f"><joint joint="a" coef="2"/><joint joint="b" coef="-1"/></fixed>
    <spatial name="p" range="0 .7"><site site="w"/><geom geom="round"/><site site="t"/></spatial>
    <spatial name="q"><site site="w"/><site site="v"/></spatial>
  </tendon>
  <actuator>{actuators}</actuator>
</mujoco>
"""
LIMIT = 'range="-1 1"'


def both(compiler: str, actuators: str) -> tuple[np.ndarray, np.ndarray]:
    xml = ARM.format(compiler=compiler, actuators=actuators, limit=LIMIT)
    m = jaxsim.load_model(xml)
    return np.asarray(m.actuator_lengthrange), mujoco.MjModel.from_xml_string(
        xml
    ).actuator_lengthrange


def test_muscles():
    """On joints, over fixed and wrapping tendons, with limits and an equality on their way."""
    ours, theirs = both(
        "",
        """
        <muscle joint="a" gear="-2"/>
        <muscle joint="c"/>
        <motor joint="b"/>
        <muscle tendon="f"/>
        <muscle tendon="p"/>
        <muscle tendon="q"/>
        <muscle joint="a" lengthrange="3 4"/>
        """,
    )
    np.testing.assert_allclose(ours, theirs, **STIFF)
    assert not ours[2].any()


def test_settings():
    """Another actuator kind, a bounded force and other times."""
    ours, theirs = both(
        '<lengthrange mode="all" timestep="0" maxforce="2" accel="10" timeconst=".5"'
        ' inttotal="4" interval="1" useexisting="false"/>',
        """
        <general joint="b" lengthrange="3 4" gear="2"/>
        <general cranksite="s" slidersite="w" cranklength="1"/>
        """,
    )
    np.testing.assert_allclose(ours, theirs, rtol=STIFF["rtol"])


@pytest.mark.slow
def test_in_single_precision():
    """The simulation itself is in double: only the model and the result are rounded."""
    with jax.enable_x64(False):
        ours, theirs = both("", '<muscle joint="c"/> <muscle tendon="q"/>')
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)  # the model and the result are rounded


def test_lengths_without_range_are_refused_together():
    """One turns on for ever, one cannot change."""
    actuators = '<muscle name="endless" joint="a"/>\n<muscle joint="b" gear="0"/>'
    xml = ARM.format(compiler="", actuators=actuators, limit="").replace('range="0 .7"', "")
    with pytest.raises(ValueError, match=r"did not converge|Invalid lengthrange"):
        mujoco.MjModel.from_xml_string(xml)
    with pytest.raises(ModelError) as refused:
        jaxsim.load_model(xml)
    first, second = map(str, refused.value.problems)
    line = xml[: xml.index("<muscle")].count("\n") + 1
    assert first.startswith(f"<string>:{line}: <muscle name='endless'>: its length does not settle")
    assert "give it a lengthrange" in first
    assert f"<string>:{line + 1}: <muscle>: its length has no range, it stays 0" in second
