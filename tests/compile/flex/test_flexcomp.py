"""Flexcomps expand into MuJoCo's bodies, joints, constraints and flexes."""

import re

import pytest
from compile.oracle import assert_agrees, assert_file_agrees, assert_refused, refusal

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

pytestmark = pytest.mark.filterwarnings("ignore")


def scene(contents, *, option="", sections="", default=""):
    return f"""
        <mujoco>
          <option {option}/>
          <default>{default}</default>
          <worldbody>{contents}</worldbody>
          {sections}
        </mujoco>"""


def flexcomp(attrs, children=""):
    return f'<flexcomp name="G" radius=".001" {attrs}>{children}</flexcomp>'


SHAPES = [
    'type="grid" dim="1" count="4 1 1"',
    'type="grid" dim="1" count="3 2 4"',
    'type="grid" dim="2" count="3 4 1" spacing=".1 .2 .3"',
    'type="grid" dim="3" count="3 2 4"',
    'type="square" count="4 3 1"',
    'type="disc" dim="2" count="5 4 1"',
    'type="circle" dim="1" count="7 1 1"',
    'type="circle" dim="2" count="4 3 1"',
    'type="box" dim="1" count="3 3 3"',
    'type="box" dim="2" count="3 4 3"',
    'type="box" dim="3" count="4 3 3"',
    'type="cylinder" dim="2" count="4 4 3" spacing=".1 .2 .3"',
    'type="cylinder" dim="3" count="3 3 4"',
    'type="ellipsoid" dim="2" count="4 4 4"',
    'type="ellipsoid" dim="3" count="4 3 3" spacing=".1 .2 .3"',
    'type="direct" dim="1" point="0 0 0 1 0 0 1 2 0" element="0 1 1 2"',
    'type="direct" dim="2" point="0 0 0 1 0 0 0 1 0 9 9 9 1 1 0" element="0 1 2 1 4 2"',
    'type="direct" dim="3" point="0 0 0 1 0 0 0 1 0 0 0 1" element="0 1 2 3" scale="1 2 3"',
]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    assert_agrees(scene(flexcomp(f'{shape} mass="3" pos="1 2 3" euler="10 20 30"')))


@pytest.mark.parametrize("around", ["{}", '<frame pos="1 2 3" quat="4 1 2 3">{}</frame>'])
@pytest.mark.parametrize("attrs", ["", 'rigid="true"', 'dof="trilinear"'])
def test_a_quaternion_of_another_length(attrs, around):
    grid = f'type="grid" dim="2" count="3 4 1" pos="1 2 3" quat=".2 1 .5 -.3" {attrs}'
    assert_agrees(scene(around.format(flexcomp(grid))))


@pytest.mark.parametrize("shape", ["grid", "box", "cylinder", "ellipsoid", "disc"])
def test_texture_coordinates_come_with_a_material(shape):
    solid = '3" count="3 3 4' if shape not in ("grid", "disc") else '2" count="3 4 1'
    material = '<asset><material name="m"/></asset>'
    comp = flexcomp(f'type="{shape}" dim="{solid}" material="m" rgba=".1 .2 .3 1"')
    assert_agrees(scene(comp, sections=material))


@pytest.mark.parametrize("dof", ["full", "radial", "2d"])
@pytest.mark.parametrize("pin", ["", '<pin id="0 3"/>', '<pin range="1 2 5 5"/>'])
def test_pins_of_points(dof, pin):
    comp = flexcomp(f'dim="2" count="3 3 1" dof="{dof}" pos=".3 0 0"', pin)
    assert_agrees(scene(f'<body name="b" pos="1 0 0">{comp}</body>'))


@pytest.mark.parametrize(
    "pin",
    ['<pin grid="0 0 1 2"/>', '<pin gridrange="0 0 1 1"/>', '<pin gridrange="1 1 0 0"/>', "<pin/>"],
)
def test_pins_by_place(pin):
    assert_agrees(scene(flexcomp('dim="2" count="3 3 1"', pin)))


def test_pins_of_a_block():
    pin = '<pin grid="1 0 1"/><pin gridrange="0 0 0 0 1 1"/>'
    assert_agrees(scene(flexcomp('dim="3" count="3 2 2"', pin)))


@pytest.mark.parametrize("attrs", ['rigid="true"', 'rigid="true" dof="trilinear"'])
def test_rigid(attrs):
    comp = flexcomp(f'dim="3" count="2 2 2" {attrs}')
    assert_agrees(scene(f'<body name="b"><joint/><geom size="1"/>{comp}</body>'))


def test_all_points_pinned_is_rigid():
    assert_agrees(scene(flexcomp('dim="2" count="2 2 1"', '<pin id="0 1 2 3"/>')))


INTERPOLATED = [
    'type="grid" dim="3" count="3 3 3"',
    'type="box" dim="3" count="3 3 3" euler="0 0 20"',
    'type="ellipsoid" dim="3" count="4 4 4"',
    'type="direct" dim="3" point="0 0 0 1 0 0 0 1 0 .1 .2 1" element="0 1 2 3"',
    'type="direct" dim="2" point="0 0 0 1 0 0 0 1 0 0 0 1" element="0 2 1 0 1 3 0 3 2 1 2 3"',
]


@pytest.mark.parametrize("shape", INTERPOLATED)
@pytest.mark.parametrize("dof", ["trilinear", "quadratic"])
@pytest.mark.parametrize("cells", ["1 1 1", "2 1 2"])
def test_interpolated(shape, dof, cells):
    assert_agrees(scene(flexcomp(f'{shape} dof="{dof}" cellcount="{cells}" mass="2"')))


def test_interpolated_surface_with_a_hole():
    point, element = "0 0 0 1 0 0 0 1 0 0 0 1", "0 2 1 0 1 3 0 3 2"
    shape = f'type="direct" dim="2" point="{point}" element="{element}"'
    for dof in ("trilinear", "quadratic"):
        assert_agrees(scene(flexcomp(f'{shape} dof="{dof}"')))


@pytest.mark.parametrize("pin", ['<pin id="0 3"/>', '<pin gridrange="0 0 0 0 1 1"/>'])
def test_pins_of_nodes(pin):
    comp = flexcomp('dim="3" count="3 3 3" dof="trilinear" cellcount="2 1 1"', pin)
    assert_agrees(scene(f'<body name="b" pos="0 0 1"><joint/><geom size="1"/>{comp}</body>'))


def test_strain_constraints_are_one_for_each_cell():
    edge = '<edge equality="strain" solref=".1 1"/>'
    comp = flexcomp('dim="3" count="2 2 2" dof="trilinear" cellcount="2 1 2"', edge)
    text = scene(comp, default='<equality solref=".5 1"/>')
    compiled = compile_string(text)
    assert compiled.fields["neq"] == 4
    assert_agrees(text, skip=STRAINED)


# The stiffness of interpolated flexes is not worked out.
STRAINED = ("flex_stiffness", "flex_stiffnessadr", "nflexstiffness")


def test_place_among_others():
    rod = flexcomp('dim="1" count="4 1 1"', '<elasticity young="1e3"/>')
    tree = f"""
        <frame pos="0 0 1" euler="0 30 0">
          <body name="A">{rod}<body name="B"/></body>
          <frame pos="1 0 0">
            <flexcomp name="H" dim="2" count="2 2 1"><pin id="1"/></flexcomp>
          </frame>
          <body name="C"/>
        </frame>
        <body name="D"/>"""
    compiled = assert_agrees(
        scene(tree, sections='<equality><connect body1="A" anchor="0 0 0"/></equality>'),
    )
    assert compiled.names["body"][6:10] == ("B", "G_twist_0", "G_twist_1", "G_twist")


@pytest.mark.parametrize("pin", ["", "0", "0 1", "2 3", "1 2", "0 1 2"])
def test_twist_of_rods(pin):
    pins = f'<pin id="{pin}"/>' if pin else ""
    comp = flexcomp('dim="1" count="4 1 1" mass="3"', f'<elasticity young="1e3"/>{pins}')
    assert_agrees(scene(comp))


def test_defaults_of_joints_reach_the_points():
    default = '<joint armature="1"/><default class="c"><joint armature="2"/></default>'
    comp = flexcomp('dim="1" count="3 1 1"', '<elasticity young="1e3"/>')
    body = f'<body name="b" childclass="c">{comp}</body>'
    assert_agrees(scene(body, default=default))


def test_replicated():
    comp = flexcomp('dim="2" count="2 2 1"', '<edge equality="true"/><pin id="0"/>')
    text = scene(f'<replicate count="2" offset="1 0 0"><body name="b">{comp}</body></replicate>')
    assert_agrees(text)


CUBE = b"""
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 5 5 5\nv 0 0 0
f 1 3 2\nf 1 2 4\nf 6 4 3\nf 2 3 4
"""


@pytest.mark.parametrize(
    "attrs",
    [
        "",
        'dim="1"',
        'dim="3" origin=".1 .1 .1"',
        'dim="3" origin="1 2 3" scale="2 1 1" pos="1 0 0"',
        'scale="2 3 4"',
        'dof="trilinear"',
    ],
)
def test_surface_from_a_file(attrs):
    text = scene(flexcomp(f'type="mesh" file="c.obj" {attrs}'))
    assert_agrees(text, files={"c.obj": CUBE})


def test_surface_of_a_mesh_asset():
    asset = '<asset><mesh name="m" file="c.obj" scale="1 2 3" refpos="1 0 0" refquat="1 1 0 0"/>'
    text = scene(flexcomp('mesh="m" pos="1 1 1"'), sections=f"{asset}</asset>")
    assert_agrees(text, files={"c.obj": CUBE}, skip=("mesh_pathadr",))


def test_lines_of_a_file():
    files = {"l.obj": b"v 0 0 0\nv 2 0 0\nv 1 0 0\nv 3 0 0\nl 1 3 2\nl 2 4\n"}
    assert_agrees(scene(flexcomp('type="mesh" file="l.obj" dim="1"')), files=files)


@pytest.mark.parametrize(
    ("attrs", "children", "word"),
    [
        ('dim="4" count="2 2 1"', "", "must be 1"),
        ('count="0 2 1"', "", "at least 1"),
        ('count="1 3 1"', "", "no elements"),
        ('count="3 3 2"', "", "but there are 9 points"),
        ('count="2 2 1" mass="0"', "", "must be positive"),
        ('count="2 2 1" inertiabox="-1"', "", "must be positive"),
        ('count="2 2 1" spacing="1 1 .001"', "", "twice the radius"),
        ('count="2 2 1" mesh="m"', "", "names no mesh"),
        ('count="2 2 1" type="grid" mesh="m"', "", "takes no mesh"),
        ('type="mesh"', "", "needs a file"),
        ('type="mesh" file="f.obj" mesh="m"', "", "remove one"),
        ('type="direct" point="1 2 3"', "", "needs point and element"),
        ('type="direct" point="1 2 3 4" element="0 1 2"', "", "3 numbers for each point"),
        ('type="direct" point="1 2 3" element="0 1 2 1"', "", "3 points for each element"),
        ('count="2 2 1" texcoord="1 2"', "", "2 numbers for each of 4 points"),
        ('count="2 2 1"', '<pin id="4"/>', "but there are 4 to pin"),
        ('count="2 2 1"', '<pin range="0 1 2"/>', "2 numbers for each range"),
        ('count="2 2 1"', '<pin grid="0 1 0"/>', "2 numbers for each pin"),
        ('count="2 2 1"', '<pin gridrange="0 0 2 1"/>', "leaves the grid"),
        ('count="2 2 1" scale="1 -1 1"', "", "scale must be positive"),
        ('dim="1" count="2 1 1"', '<pin grid="0"/>', "for dim 2 and 3"),
        ('type="box" dim="3" count="2 2 2"', '<pin grid="0 0 0"/>', "for type='grid'"),
        ('dim="3" count="2 2 2" dof="trilinear" cellcount="1 0 1"', "", "cellcount"),
        ('dim="1" count="3 1 1"', '<edge equality="true" stiffness="3"/>', "remove one"),
    ],
)
def test_refused(attrs, children, word):
    comp = f'<flexcomp name="G" radius=".01" {attrs}>{children}</flexcomp>'
    assert_refused(scene(comp), word)


def test_the_body_around_needs_a_name():
    comp = flexcomp('dim="2" count="2 2 1"')
    assert_refused(scene(f"<body>{comp}</body>"), "needs a name")
    assert_refused(scene(f'<replicate count="2">{comp}</replicate>'), "needs a name")


@pytest.mark.parametrize("dof", ["full", "trilinear"])
def test_unpinned_flexcomp_on_a_moving_body_is_rejected(dof):
    comp = flexcomp(f'dim="3" count="2 2 2" dof="{dof}"')
    body = '<body name="a"><joint/><geom size="1"/><body name="b">{}</body></body>'
    assert_refused(scene(body.format(comp)), "pin", "'a'")
    pinned = flexcomp(f'dim="3" count="2 2 2" dof="{dof}"', '<pin id="0"/>')
    assert refusal(scene(body.format(pinned))) is None
    compile_string(scene(body.format(pinned)))


def test_messages_have_the_line():
    text = scene("\n\n" + flexcomp('dim="4"'))
    with pytest.raises(ValueError, match=re.escape("<string>:7: <flexcomp name='G'>")):
        compile_string(text)


def test_attached(tmp_path):
    comp = flexcomp('dim="2" count="3 3 1"', '<edge equality="true"/><pin id="0 4"/>')
    child = f'<mujoco model="c"><worldbody><body name="b">{comp}</body></worldbody></mujoco>'
    (tmp_path / "child.xml").write_text(child)
    (tmp_path / "parent.xml").write_text("""
        <mujoco>
          <asset><model name="c" file="child.xml"/></asset>
          <worldbody>
            <frame pos="1 0 0" euler="0 0 30"><attach model="c" body="b" prefix="L_"/></frame>
            <flexcomp name="own" dim="2" count="2 2 1"/>
            <attach model="c" body="b" prefix="R_"/>
          </worldbody>
        </mujoco>""")
    compiled = assert_file_agrees(str(tmp_path / "parent.xml"))
    assert compiled.names["flex"] == ("L_G", "own", "R_G")


def test_absurd_counts_are_refused_before_memory_is_spent():
    absurd = [
        flexcomp('dim="3" count="100000 100000 100000"'),
        flexcomp('dim="3" count="90 90 90"'),
        flexcomp('dim="3" count="2 2 2" dof="trilinear" cellcount="9999 9999 9999"'),
    ]
    for comp in absurd:
        with pytest.raises(ModelError, match="G"):
            compile_string(scene(comp))
