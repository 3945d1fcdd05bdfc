"""Replicated trees equal MuJoCo's in place, order and name."""

import pytest
from compile.oracle import assert_agrees

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

PARTS = [
    '<replicate count="4" offset="1 0 0" euler="0 0 90">'
    '<body name="a"><geom size=".1"/></body></replicate>',
    '<body name="x"/><replicate count="10" offset="1 0 0"><body name="a"/></replicate>'
    '<body name="y"/>',
    '<replicate count="2" sep="-"><replicate count="2" offset="0 1 0"><site name="s"/>'
    "</replicate></replicate>",
    '<body><replicate count="3" euler="10 20 30" offset="1 .5 .2">'
    '<geom size=".1" pos="1 0 0" name="g"/></replicate></body>',
    '<replicate count="1"><body name="a"/></replicate>',
    '<frame pos="1 0 0"><replicate count="2"><body><freejoint/><geom size="1"/></body>'
    "</replicate></frame>",
]


@pytest.mark.parametrize("parts", PARTS)
def test_parts(parts):
    assert_agrees(f"<mujoco><worldbody>{parts}</worldbody></mujoco>")


def test_absurd_counts_are_refused_before_memory_is_spent():
    nested = '<replicate count="1000">' * 5 + '<site name="s"/>' + "</replicate>" * 5
    with pytest.raises(ModelError, match="lower their counts"):
        compile_string(f"<mujoco><worldbody>{nested}</worldbody></mujoco>")


def test_what_refers_to_the_copies_is_copied_too():
    compiled = assert_agrees("""
        <mujoco>
          <worldbody>
            <site name="t"/>
            <replicate count="2" sep="_">
              <body name="a">
                <joint name="j"/>
                <geom size="1" name="g"/>
                <site name="s"/>
                <body name="b"><site name="q"/><geom size="1" name="h"/><joint name="k"/></body>
              </body>
            </replicate>
          </worldbody>
          <sensor>
            <framepos name="1" objtype="site" objname="t"/>
            <framepos name="2" objtype="site" objname="s" reftype="site" refname="q"/>
            <actuatorpos name="3" actuator="m"/>
          </sensor>
          <actuator><motor name="m" joint="j"/><motor name="n" tendon="f"/></actuator>
          <contact>
            <exclude name="e" body1="world" body2="a"/>
            <pair name="p" geom1="g" geom2="h"/>
          </contact>
          <tendon>
            <fixed name="f"><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed>
            <spatial name="l"><site site="t"/><site site="s"/></spatial>
          </tendon>
        </mujoco>""")
    assert compiled.names["sensor"] == ("1", "2_0", "3_0", "2_1", "3_1")
    assert compiled.names["tendon"] == ("f_0", "l_0", "f_1", "l_1")
