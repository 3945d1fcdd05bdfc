"""Replicated trees equal MuJoCo's in place, order and name."""

import pytest
from compile.oracle import assert_agrees

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

PARTS = [
    '<replicate count="4" offset="1 0 0" euler="0 0 90"><body name="a"><geom size=".1"/></body></replicate>',
    '<body name="x"/><replicate count="10" offset="1 0 0"><body name="a"/></replicate><body name="y"/>',
    '<replicate count="2" sep="-"><replicate count="2" offset="0 1 0"><site name="s"/></replicate></replicate>',
    '<body><replicate count="3" euler="10 20 30"><geom size=".1" pos="1 0 0" name="g"/></replicate></body>',
    '<replicate count="1"><body name="a"/></replicate>',
    '<frame pos="1 0 0"><replicate count="2"><body><freejoint/><geom size="1"/></body></replicate></frame>',
]


@pytest.mark.parametrize("parts", PARTS)
def test_parts(parts):
    assert_agrees(f"<mujoco><worldbody>{parts}</worldbody></mujoco>")


def test_absurd_counts_are_refused_before_memory_is_spent():
    nested = '<replicate count="1000">' * 5 + '<site name="s"/>' + "</replicate>" * 5
    with pytest.raises(ModelError, match="lower their counts"):
        compile_string(f"<mujoco><worldbody>{nested}</worldbody></mujoco>")


def test_joints_cannot_be_replicated_alone():
    text = '<mujoco><worldbody><body><replicate count="2"><joint/></replicate></body></worldbody></mujoco>'
    with pytest.raises(ModelError, match="joint cannot be a direct child of replicate"):
        compile_string(text)
