"""Length ranges that the compiler computes by simulation, as limits do not determine them."""

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
def test_requests(settings, outputs):
    asked = compile_string(TEXT.format(settings=settings)).length_ranges
    assert (asked and [p.output for p in asked.pullers]) == outputs


def test_settings():
    text = TEXT.format(settings='accel="1" maxforce="2" timeconst="3" inttotal="4" tolrange="5"')
    asked = compile_string(text).length_ranges
    assert (asked.accel, asked.maxforce, asked.timeconst) == (1, 2, 3)
    assert (asked.timestep, asked.inttotal, asked.interval, asked.tolrange) == (0.01, 4, 2, 5)
    (puller,) = asked.pullers
    assert (puller.label, puller.place.line) == ("<muscle>", 7)
