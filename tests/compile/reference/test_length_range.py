"""Settings of `<lengthrange>` select the length ranges that are simulated."""

import pytest

from jaxsim.compile import compile_string

TEXT = """
<mujoco>
  <compiler><lengthrange {settings}/></compiler>
  <worldbody><body><joint name="j" range="-1 1"/><geom size=".1"/></body></worldbody>
  <actuator>
    <muscle joint="j" lengthrange="0 1"/>
    <muscle joint="j"/>
    <motor joint="j"/>
    <general joint="j" biastype="user"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize(
    ("settings", "outputs"),
    [
        ("", [1]),
        ('mode="none"', None),
        ('mode="muscleuser"', [1, 3]),
        ('mode="all"', [1, 2, 3]),
        ('useexisting="false"', [0, 1]),
        ('uselimit="true"', None),
    ],
)
def test_settings_select_outputs_to_simulate(settings, outputs):
    found = compile_string(TEXT.format(settings=settings)).length_ranges
    assert (found and [p.output for p in found.pullers]) == outputs


def test_settings_of_the_simulation_are_read():
    text = TEXT.format(settings='accel="1" maxforce="2" timeconst="3" inttotal="4" tolrange="5"')
    found = compile_string(text).length_ranges
    assert (found.accel, found.maxforce, found.timeconst) == (1, 2, 3)
    assert (found.timestep, found.inttotal, found.interval, found.tolrange) == (
        0.01,
        4,
        2,
        5,
    )
    (puller,) = found.pullers
    assert (puller.label, puller.place.line) == ("<muscle>", 7)
