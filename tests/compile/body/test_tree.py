"""Ids, addresses and the pattern of M equal MuJoCo's on trees of every shape."""

import pytest
from compile.oracle import assert_agrees

BALL = '<geom size=".1"/>'

TREES = [
    "",
    f"<body>{BALL}</body>",
    f"<body>{BALL}<freejoint/></body><body>{BALL}<freejoint/></body>",
    f'<body>{BALL}<joint type="slide"/><joint type="slide" axis="1 0 0"/></body>',
    f'<body>{BALL}<joint type="slide" axis="1 0 1"/></body>',
    f'<body>{BALL}<joint axis="1 0 0"/><joint axis="0 1 0"/></body>',
    f'<body>{BALL}<joint pos="0 0 1"/></body><body simple="false">{BALL}<joint/></body>',
    f'<body>{BALL}<joint type="ball"/><joint type="slide"/></body>',
    f'<body>{BALL}<joint type="slide"/><joint type="ball"/></body>',
    f'<body>{BALL}<joint/><body pos="0 0 1">{BALL}<joint/><joint type="slide"/></body></body>',
    f"<body>{BALL}<body>{BALL}<joint/></body><body>{BALL}<joint/><body>{BALL}</body></body></body>",
    f'<body mocap="true">{BALL}<body>{BALL}<joint/></body></body><body mocap="true"/>',
    f"<body><joint/><body>{BALL}</body></body>",
    '<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1" quat="1 1 0 0"/><joint/>'
    '<geom size="1" quat="1 1 0 0"/><site quat="1 1 0 0" pos="1 0 0"/>'
    '<site quat="1 0 1 0"/></body>',
    f'<body sleep="never">{BALL}<freejoint/></body><body sleep="init">{BALL}<joint/></body>',
]


@pytest.mark.parametrize("tree", TREES)
def test_trees(tree):
    assert_agrees(f"<mujoco><worldbody>{tree}</worldbody></mujoco>")


def test_repeated_sections_make_one_tree():
    assert_agrees(f"""
        <mujoco>
          <worldbody><body name="a">{BALL}</body></worldbody>
          <worldbody><geom size="1"/><body name="b">{BALL}<joint/></body></worldbody>
        </mujoco>""")


def test_a_long_chain():
    links = 200
    opening = f'<body pos="0 0 .1">{BALL}<joint/>' * links
    assert_agrees(f"<mujoco><worldbody>{opening}{'</body>' * links}</worldbody></mujoco>")
