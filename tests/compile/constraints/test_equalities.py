"""Equality constraints and what they measure in the reference pose equal MuJoCo's."""

import pytest
from compile.oracle import assert_agrees, assert_refused


def model(equalities, defaults=""):
    return f"""
        <mujoco>
          <default>{defaults}</default>
          <worldbody>
            <body name="a" pos=".1 .2 .3" euler="10 20 30">
              <joint name="j" ref="20"/><geom size=".1"/><site name="s" pos=".4 .5 .6"/>
              <body name="b" pos="1 1 1" euler="30 0 40">
                <joint name="k" type="slide"/><geom size=".1"/>
              </body>
            </body>
            <body name="c" pos="3 2 1" euler="40 50 60">
              <freejoint name="free"/><geom size=".1"/>
              <site name="s2" pos=".3 .2 .1" euler="0 0 9"/>
            </body>
            <body name="hand" mocap="true" pos="1 2 3"/>
          </worldbody>
          <tendon>
            <fixed name="t1"><joint joint="j" coef="1"/></fixed>
            <fixed name="t2"><joint joint="k" coef="1"/></fixed>
          </tendon>
          <equality>{equalities}</equality>
        </mujoco>"""


@pytest.mark.parametrize(
    "equality",
    [
        '<connect body1="a" body2="b" anchor="1 2 3"/>',
        '<connect body1="a" anchor="1 2 3"/>',
        '<connect body1="world" body2="c" anchor="1 2 3"/>',
        '<connect body1="b" body2="a" anchor="1 2 3" active="false" solref=".1 .2"'
        ' solimp=".3" name="n"/>',
        '<connect site1="s" site2="s2"/>',
        '<weld body1="a" body2="b"/>',
        '<weld body1="a"/>',
        '<weld body1="hand" body2="c"/>',
        '<weld body1="a" body2="b" anchor="1 2 3" torquescale="3"/>',
        '<weld body1="a" body2="c" relpose="1 2 3 1 2 3 4"/>',
        '<weld body1="a" body2="c" relpose="1 2 3 0 0 0 0"/>',
        '<weld body1="a" body2="c" relpose="1 2 3 1 0 0 0" anchor="4 5 6"/>',
        '<weld site1="s" site2="s2" torquescale="2"/>',
        '<joint joint1="j"/>',
        '<joint joint1="j" joint2="k" polycoef="1 2 3 4 5"/>',
        '<joint joint1="j" joint2="k" polycoef="1 2"/>',
        '<tendon tendon1="t1"/>',
        '<tendon tendon1="t1" tendon2="t2" polycoef=".1"/>',
    ],
)
def test_equality(equality):
    assert_agrees(model(equality))
    assert_agrees(model(equality, '<equality active="false" solref=".3 .4"/>'))


@pytest.mark.parametrize(
    ("equality", "word"),
    [
        ('<connect body1="a" body2="a" anchor="1 2 3"/>', "itself"),
        ('<connect body1="q" anchor="1 2 3"/>', "names no body"),
        ('<weld site1="s" site2="s3"/>', "did you mean"),
        ('<joint joint1="free"/>', "hinge or a slide"),
        ('<joint joint1="j" joint2="j"/>', "itself"),
        ('<tendon tendon1="t1" tendon2="t"/>', "did you mean"),
        ('<joint name="x" joint1="j"/><joint name="x" joint1="k"/>', "exists already"),
    ],
)
def test_refused(equality, word):
    assert_refused(model(equality), word)


def test_constraints_of_flexes_are_refused_by_name():
    assert_refused(model('<flex flex="x"/>'), "flex")
