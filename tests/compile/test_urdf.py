"""URDF models compile to what MuJoCo makes of them, under its defaults and without them."""

import mujoco
import pytest
from compile.oracle import _compare, assert_agrees, assert_refused
from mjcf.urdf.test_urdf import BOX, KEEP, joint, link, robot

from jaxsim.compile import compile_string

LIMIT = '<limit lower="{}" upper="{}" effort="{}" velocity="1"/>'
DYNAMICS = '<dynamics damping=".1" friction=".2"/>'
ORIGIN = '<origin xyz="1 2 3" rpy=".1 .2 .3"/>'
SKEWED = (
    '<link name="{}"><inertial><origin xyz=".1 .2 .3" rpy="1 2 3"/><mass value="2"/>'
    '<inertia ixx="1" iyy="1.2" izz="1.1" ixy=".01" ixz=".02" iyz=".03"/></inertial></link>'
)


def shapes(*kinds: str) -> str:
    sizes = {
        "box": 'size="1 2 3"',
        "sphere": 'radius=".3"',
        "cylinder": 'radius=".3" length="2"',
        "capsule": 'radius=".3" length="2"',
    }
    return "".join(
        f'<{use} name="{use}_{kind}">{ORIGIN}<geometry><{kind} {sizes[kind]}/></geometry></{use}>'
        for kind in kinds
        for use in ("visual", "collision")
    )


def colored(name: str, rgba: str = "") -> str:
    color = f'<color rgba="{rgba}"/>' if rgba else ""
    return f'<visual>{BOX}<material name="{name}">{color}</material></visual>'


TWO = (link("a"), link("b", shapes("box")))
THREE = (*TWO, link("c"))

MODELS = {
    "nothing": (),
    "one link": (link("a"),),
    "no inertial": (f'<link name="a"><collision>{BOX}</collision></link>',),
    "revolute": (*TWO, joint("a", "b", ORIGIN + LIMIT.format(-1, 1, 10) + DYNAMICS)),
    "continuous": (*TWO, joint("a", "b", LIMIT.format(-1, 1, 10), kind="continuous")),
    "prismatic": (*TWO, joint("a", "b", LIMIT.format(0, 1, -3), kind="prismatic")),
    "fixed": (*TWO, joint("a", "b", ORIGIN, kind="fixed")),
    "planar": (*TWO, joint("a", "b", LIMIT.format(-1, 1, 3) + DYNAMICS, kind="planar")),
    "planar, skewed": (*TWO, joint("a", "b", '<axis xyz="1 1 1"/>', kind="planar")),
    "planar, down": (*TWO, joint("a", "b", '<axis xyz="0 0 -2"/>', kind="planar")),
    "spherical": (*TWO, joint("a", "b", LIMIT.format(0, 1, 3) + DYNAMICS, kind="spherical")),
    "floating": (
        '<link name="world"/>',
        *TWO,
        joint("world", "a", ORIGIN + LIMIT.format(-1, 1, 3) + DYNAMICS, kind="floating"),
    ),
    "a pose of the world": (
        *TWO,
        '<link name="world"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"'
        f' ixz="0" iyz="0"/></inertial>{shapes("box")}</link>'.replace("visual_", "w"),
        joint("a", "world", ORIGIN, kind="fixed"),
        joint("world", "b", ORIGIN),
    ),
    "equal limits": (*TWO, joint("a", "b", LIMIT.format(5, 5, 0))),
    "falling limits": (*TWO, joint("a", "b", LIMIT.format(1, -1, 1))),
    "half a limit": (*TWO, joint("a", "b", '<limit lower="-1" effort="5"/>')),
    "no limits": (*TWO, joint("a", "b", '<axis xyz="0 3 4"/>')),
    "several trees": (link("a"), '<link name="world"/>', link("b"), link("c"), joint("world", "c")),
    "order": (link("d"), link("c"), link("b"), link("a"), joint("a", "b"), joint("a", "d")),
    "one joint name": (*THREE, joint("a", "b", name="j"), joint("a", "c", name="j")),
    "world of weight": (link("world", shapes("box")), link("a"), joint("world", "a")),
    "mimic": (
        *THREE,
        joint("a", "b"),
        joint("a", "c", '<mimic joint="ab" multiplier="2" offset=".1"/>', kind="prismatic"),
    ),
    "mimic of a fixed joint": (
        *THREE,
        joint("a", "b", kind="fixed"),
        joint("a", "c", '<mimic joint="ab"/>'),
    ),
    "skewed inertia": (SKEWED.format("a"), SKEWED.format("b"), joint("a", "b", ORIGIN)),
    "skewed and fixed": (
        '<link name="world"/>',
        SKEWED.format("a"),
        SKEWED.format("b"),
        joint("world", "a"),
        joint("a", "b", ORIGIN, kind="fixed"),
    ),
    "nested fixed links": (
        link("a"),
        link("b", shapes("box", "sphere")),
        link("c", shapes("cylinder")),
        '<link name="d"/>',
        link("e", shapes("capsule")),
        joint("a", "b", ORIGIN),
        joint("b", "c", ORIGIN, kind="fixed"),
        joint("c", "d", ORIGIN, kind="fixed"),
        joint("d", "e", ORIGIN, kind="continuous"),
    ),
    "shapes": (link("a", shapes("box", "sphere", "cylinder", "capsule")),),
    "two shapes": (
        link(
            "a",
            '<collision><geometry><sphere radius="1"/><box size="1 1 1"/></geometry></collision>',
        ),
    ),
    "one geom name": (
        link(
            "a", f'<visual name="g">{BOX}</visual>' + 2 * f'<collision name="g">{BOX}</collision>'
        ),
    ),
    "colors": (
        link("a", colored("x", "1 0 0 1") + f"<collision>{BOX}</collision>" + colored("zz")),
        link("b", colored("x", "0 1 0 1") + colored("x")),
        link("c", f"<visual>{BOX}</visual>" + colored("later") + f"<collision>{BOX}</collision>"),
        '<material name="later"><color rgba="0 0 1 .5"/></material>',
        '<material name="later"><color rgba="1 1 1 1"/></material>',
        '<material name="picture"><texture filename="a.png"/></material>',
    ),
    "massless": ('<link name="a"><inertial><mass value="0"/>'
                 '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>',),
    "other tools": (link("a", "<contact/>"), "<gazebo/>", "<transmission/>"),
}  # fmt: skip


@pytest.mark.parametrize("settings", [KEEP, ""], ids=["kept", "simplified"])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, settings):
    assert_agrees(robot(*MODELS[name], settings=settings))


@pytest.mark.parametrize(
    "settings",
    [
        '<compiler angle="degree" eulerseq="zyx"/>',
        '<compiler boundmass="3" boundinertia="4" settotalmass="100"/>',
        '<compiler inertiafromgeom="true" discardvisual="false"/>',
        '<compiler discardvisual="false"/>',
        '<compiler fusestatic="false"/>',
        '<compiler balanceinertia="true"/><option timestep=".1"><flag gravity="disable"/></option>',
        '<size nuserdata="3"/><visual/>',
    ],
)
def test_settings(settings):
    assert_agrees(
        robot(*MODELS["nested fixed links"], settings=f"<mujoco>{settings}</mujoco>"),
        skip=("convexhull",),
    )


def test_free_joint_of_a_link_that_is_fused_with_the_world():
    parts = (link("a"), link("b"), joint("a", "b", kind="floating"))
    assert_agrees(robot(*parts, settings=""))
    assert_refused(robot(*parts), "a free joint is for children of the world only")


def test_attached():
    part = robot(*MODELS["nested fixed links"], settings="")
    text = (
        '<mujoco><asset><model name="r" file="r.urdf"/></asset><worldbody><frame pos="1 0 0">'
        '<attach model="r" prefix="q_"/></frame></worldbody></mujoco>'
    )
    files = {"r.urdf": part.encode()}
    theirs = mujoco.MjModel.from_xml_string(text, files)
    _compare(compile_string(text, files), theirs, ())


def test_a_flat_tensor_is_repaired():
    """Robots in the wild give inertias whose entries are all the same, of rank one."""
    entries = "".join(f' i{ij}="1e-6"' for ij in "xx yy zz xy xz yz".split())
    part = '<link name="a"><inertial><mass value="1"/><inertia{}/></inertial></link>'
    settings = '<mujoco><compiler balanceinertia="true" boundinertia="{}"/></mujoco>'
    assert_agrees(robot(part.format(entries), settings=settings.format("1e-8")))
    assert_refused(robot(part.format(entries), settings=settings.format("0")), "principal moments")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((link("a"), link("b"), joint("a", "b", '<axis xyz="0 0 0"/>')), "axis has no direction"),
        ((link("a").replace('izz="1"', 'izz="5"'),), "physically impossible"),
        ((link("a").replace('ixy="0"', 'ixy="2"'),), "positive"),
        (('<link name="world"/>', '<link name="b"/>', joint("world", "b")), "mass"),
        (
            (link("a", '<collision><geometry><sphere radius="-1"/></geometry></collision>'),),
            "positive",
        ),
        (("<joint/>", link("a")), "name"),
        ((link("a"), link("b"), joint("a", "b", LIMIT.format(1, 2, 3), kind="spherical")), "begin"),
    ],
)
def test_refusals(parts, words):
    assert_refused(robot(*parts), words)
