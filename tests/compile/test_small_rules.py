"""Rules of MuJoCo that stand alone: cameras, sleeping trees, textures, motors."""

import pytest
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile import compile_spec, flatten
from jaxsim.spec import Spec

pytestmark = pytest.mark.filterwarnings("ignore")


def _world(inside: str, rest: str = "") -> str:
    return f"<mujoco><worldbody>{inside}</worldbody>{rest}</mujoco>"


@pytest.mark.parametrize("sensor", ["1 1", "0 1", "1 0"])
@pytest.mark.parametrize("resolution", ["1 1", "7 9"])
def test_a_sensor_has_two_sides(sensor, resolution):
    assert_agrees(_world(f'<camera sensorsize="{sensor}" resolution="{resolution}"/>'))


@pytest.mark.parametrize("resolution", ["0 0", "0 1", "-1 1"])
def test_a_sensor_has_pixels(resolution):
    camera = f'<camera sensorsize="1 1" resolution="{resolution}"/>'
    assert_refused(_world(camera), "must be positive for its sensorsize")


def _trees(*policies: str) -> str:
    return "".join(
        f'<body {policy}><joint name="j{i}" type="slide"/><geom size=".1"/><site name="s{i}"/>'
        "</body>"
        for i, policy in enumerate(policies)
    )


_TWO = '<tendon><spatial {}><site site="s0"/><site site="s1"/></spatial></tendon>'
_THREE = _TWO.replace("</spatial>", '<site site="s2"/></spatial>')
_KINDS = ("stiffness", "damping")
_SLEEPY = ('sleep="allowed"', 'sleep="init"')


@pytest.mark.parametrize("policy", _SLEEPY)
@pytest.mark.parametrize(
    "tendon",
    [
        *(_TWO.format(f'{kind}="{poly}"') for kind in _KINDS for poly in ("1", "0 1", "0 0 -1")),
        _THREE.format(""),
    ],
)
def test_trees_that_a_tendon_ties_do_not_sleep(tendon, policy):
    assert_refused(_world(_trees(policy, "", ""), tendon), "ties it to other trees")
    assert_agrees(_world(_trees('sleep="never"', "", ""), tendon))
    assert_agrees(_world(_trees("", "", ""), tendon))


@pytest.mark.parametrize("policy", _SLEEPY)
def test_trees_that_a_slack_tendon_ties_may(policy):
    assert_agrees(_world(_trees(policy, "", ""), _TWO.format('range="0 1"')))


_LAYERS = '<material><layer role="rgb" texture="a"/><layer role="metallic" texture="a"/></material>'
_TEXTURES = "".join(
    f'<texture name="{name}" type="2d" builtin="flat" width="2" height="2"/>' for name in "ab"
)
_MATERIALS = (
    '<material name="m"/>',
    '<material name="m" texture="b"/>',
    '<material name="m"><layer role="roughness" texture="b"/></material>',
    '<material name="m"><layer role="rgb" texture="b"/></material>',
    '<material name="m" class="k"/>',
)


@pytest.mark.parametrize("material", _MATERIALS)
@pytest.mark.parametrize("under", [_LAYERS, '<material texture="a"/>'])
@pytest.mark.parametrize(
    "nested", ['<material texture="b"/>', '<material><layer role="rgb" texture="b"/></material>']
)
def test_textures_of_classes(material, under, nested):
    classes = f'<default>{under}<default class="k">{nested}</default></default>'
    assert_agrees(f"<mujoco>{classes}<asset>{_TEXTURES}{material}</asset></mujoco>")


def test_textures_of_classes_are_kept_when_a_model_is_attached():
    inner = f"""<mujoco model="i"><default>{_LAYERS}</default><asset>{_TEXTURES}
      <material name="m"/></asset><worldbody><body name="x"><geom size="1" material="m"/></body>
      </worldbody></mujoco>"""
    outer = """<mujoco><asset><model name="i" file="i.xml"/></asset>
      <worldbody><attach model="i" body="x" prefix="p-"/></worldbody></mujoco>"""
    spec = Spec.from_string(outer, files={"i.xml": inner.encode()})
    assert compile_spec(flatten(spec)).fields["mat_texid"].tolist() == [
        [-1, 0, -1, -1, 0, -1, -1, -1, -1, -1]
    ]


_MOTORS = (
    'nominal="12 .6 600" damping="1e-4"',
    'nominal="12 .6 600" damping="1e-4 1e-5 1e-6"',
    'nominal="12 .6 600" damping=".01"',
    'nominal="12 0 600" resistance=".4" damping="1e-4"',
    'nominal="12 0 600" resistance=".4" damping=".01"',
    'nominal="12 .6 600" resistance="1" damping="1e-4"',
    'nominal="12 .6 600" motorconst=".1" damping="1e-4"',
    'nominal="12 .6 600" motorconst="0 .2" damping="1e-4"',
    'nominal="12 .6 600" damping="-1e-4"',
)


@pytest.mark.parametrize("motor", _MOTORS)
def test_the_no_load_speed_of_a_damped_motor(motor):
    body = '<body><geom size="1"/><joint name="j"/></body>'
    assert_agrees(_world(body, f'<actuator><dcmotor joint="j" {motor}/></actuator>'))


_SHEET = (
    '<flexcomp name="f" type="direct" dim="2" radius=".01" point="0 0 0 1 0 0 0 1 0 1 1 0"'
    ' element="0 1 2 1 3 2" material="{}"/>'
)


@pytest.mark.parametrize("material", ["", "a", "a b", "b b"])
def test_elements_of_a_flex_have_their_materials(material):
    assets = '<asset><material name="a"/><material name="b"/></asset>'
    assert_agrees(_world(_SHEET.format(material), assets))


def test_as_many_materials_as_elements():
    assets = '<asset><material name="a"/></asset>'
    assert_refused(_world(_SHEET.format("a a a"), assets), "one for each of 2 elements, got 3")


@pytest.mark.parametrize("kind", ["trilinear", "quadratic"])
@pytest.mark.parametrize("pin", ["", '<pin id="0"/>', '<pin id="15"/>'])
@pytest.mark.parametrize("joint", ["", "<freejoint/>"])
def test_nodes_of_empty_cells_hold_nothing(kind, pin, joint):
    text = _world(f"""<body name="b">{joint}
      <inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>
      <flexcomp name="t" type="direct" dim="3" dof="{kind}" cellcount="3 1 1"
        point="0 0 0 .3 0 0 0 1 0 0 0 1 1 1 1" element="0 1 2 3">{pin}
        <elasticity young="1"/></flexcomp></body>""")
    held = "0" in pin or (kind == "quadratic" and pin)
    if joint and not held:
        assert_refused(text, "no point of the flex is fixed to it")
    else:
        assert_agrees(text, skip=("flex_vertcell",))


def _point(name, inside="", own='<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'):
    slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    return f'<body name="{name}" pos=".1 .1 .1">{own}{slides}{inside}</body>'


_SHELL = (
    """<deformable><flex name="f" dim="2" body="a b c d" element="0 1 2 1 3 2"/></deformable>"""
)
_GEOM = '<geom size=".1"/>'


@pytest.mark.parametrize(
    ("points", "refused"),
    [
        ("".join(map(_point, "abcd")), True),
        (f"<body>{''.join(map(_point, 'abcd'))}</body>", True),
        (_point("a", own=_GEOM) + "".join(map(_point, "bcd")), False),
        (_point("a", "".join(map(_point, "bcd"))), False),
        (_point("a") + _point("b") + f"<body>{_point('c')}{_point('d')}</body>", False),
    ],
)
def test_points_that_hang_on_what_moves(points, refused):
    """Refused are points without geoms that slide freely in one body."""
    carrier = f'<body name="p"><joint type="slide"/>{_GEOM}{points}</body>'
    text = _world(carrier).replace("</mujoco>", f"{_SHELL}</mujoco>")
    if refused:
        assert_refused(text, "no point of the flex is fixed to it")
    else:
        assert_agrees(text)


@pytest.mark.parametrize("young", ["", '<elasticity young="10" poisson=".1"/>'])
def test_interpolated_rods(young):
    text = f"""<flexcomp name="f" dim="1" type="box" dof="trilinear" count="4 3 3"
      spacing=".1 .15 .2" radius=".01">{young}</flexcomp>"""
    assert_agrees(_world(text), skip=("flex_vertcell",))


def test_lists_that_do_not_count_have_whole_rows_too():
    comp = '<flexcomp name="f" type="grid" dim="3" count="2 2 2" spacing="1 1 1" element="0 1 2"/>'
    assert_refused(_world(comp), "element needs 4 points for each element")
