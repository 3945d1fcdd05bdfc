"""Meshes that `sdf` plugins make equal MuJoCo's in every field, whatever their settings."""

import pytest
from compile.asset.mesh.test_meshes import HULL_ORDER
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

DECLARED = """
    <plugin plugin="mujoco.sdf.bolt"/><plugin plugin="mujoco.sdf.bowl"/>
    <plugin plugin="mujoco.sdf.gear"/><plugin plugin="mujoco.sdf.nut"/>
    <plugin plugin="mujoco.sdf.torus"/><plugin plugin="mujoco.pid"/>"""
SEEN = '<geom type="sdf" mesh="m" contype="0" conaffinity="0" pos="1 2 3" euler="10 20 30"/>'
TORUS = "mujoco.sdf.torus"


def plugin(name: str = TORUS, **config) -> str:
    """A plugin with settings, in XML."""
    settings = "".join(f'<config key="{k}" value="{v}"/>' for k, v in config.items())
    return f'<plugin plugin="{name}">{settings}</plugin>'


def model(
    made: str, *, attrs: str = "", inside: str = SEEN, extension: str = DECLARED, more: str = ""
) -> str:
    """A model with one mesh and one body."""
    return f"""
        <mujoco>
          {more}
          <extension>{extension}</extension>
          <asset><mesh name="m" {attrs}>{made}</mesh></asset>
          <worldbody><body><freejoint/>{inside}</body></worldbody>
        </mujoco>"""


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("bolt", {}),
        ("bolt", {"radius": 0.7}),
        ("bowl", {"thickness": 0.1, "height": -0.5}),
        ("bowl", {"height": -1}),
        ("gear", {}),
        ("gear", {"alpha": 15, "teeth": 12.5, "innerdiameter": 1, "thickness": 0.5}),
        ("gear", {"teeth": 3}),
        ("gear", {"teeth": 200, "diameter": 1, "innerdiameter": 0}),
        ("nut", {"radius": 0.45}),
        ("torus", {"radius1": -0.1}),
        ("torus", {"radius1": 0}),
        ("torus", {"radius2": 100}),
        ("torus", {"radius1": " .2 ", "radius2": ""}),
    ],
)
def test_shapes(kind, config):
    assert_agrees(model(plugin(f"mujoco.sdf.{kind}", **config)))


def test_vertices_among_points():
    """A vertex whose faces are all degenerate has no normal, in any orientation of the mesh."""
    assert_agrees(model(plugin("mujoco.sdf.bolt"), attrs='refquat="1 1 0 .5"'))


SMALL = plugin(radius1=-0.1, radius2=0.15)


@pytest.mark.parametrize(
    "attrs",
    [
        'inertia="convex"',
        'inertia="exact"',
        'inertia="shell"',
        'refpos="1 -1 2" refquat="1 1 0 .5"',
        'smoothnormal="true" maxhullvert="20"',
        'vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 2" normal="0 0 1"',
        'builtin="sphere" params="2"',
        'content_type="model/obj"',
        f'texcoord="{"0 .1 " * 27920}"',
    ],
)
def test_attributes(attrs):
    assert_agrees(model(SMALL, attrs=attrs), skip=HULL_ORDER)


@pytest.mark.parametrize(
    "inside",
    [
        '<geom type="sdf" mesh="m"/>',
        '<geom type="mesh" mesh="m" mass="3"/>',
        '<geom type="box" mesh="m" pos="1 2 3" fitscale="2"/>',
        '<geom size="1"/><site type="mesh" mesh="m" pos="1 2 3"/>',
        f'<geom type="sdf" mesh="m">{SMALL}</geom><geom type="sdf" mesh="m">{SMALL}</geom>',
        f'<geom type="sphere" size="1">{plugin("mujoco.sdf.gear")}</geom>',
        # of several plugins the first counts
        f'<geom type="sdf" mesh="m">{SMALL}{plugin("mujoco.sdf.gear")}</geom>',
    ],
)
@pytest.mark.parametrize("fit", [pytest.param("false", marks=pytest.mark.slow), "true"])
def test_geoms(inside, fit):
    compiler = f'<compiler fitaabb="{fit}" inertiafromgeom="true"/>'
    assert_agrees(
        model(
            SMALL + plugin("mujoco.sdf.gear"),
            attrs='refpos=".1 .2 .3"',
            inside=inside,
            more=compiler,
        ),
        skip=HULL_ORDER,
    )


def test_shared_instance():
    declared = f"""<plugin plugin="{TORUS}"><instance name="ring">
        <config key="radius2" value=".05"/></instance></plugin>"""
    made = '<plugin instance="ring"/>'
    assert_agrees(
        model(
            f"{made}</mesh><mesh name='other'>{made}",
            inside=f'<geom type="sdf" mesh="m">{made}</geom><geom type="mesh" mesh="other"/>',
            extension=declared,
        ),
        skip=HULL_ORDER,
    )


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"made": plugin(radius1="x")}, ("radius1='x' must be a number",)),
        ({"made": plugin(radius1=".2 .3")}, ("radius1='.2 .3' must be a number",)),
        ({"made": plugin(radius2="nan")}, ("radius2='nan' must be finite",)),
        ({"made": plugin(radius1="100")}, ("radius1='100', radius2='0.15'", "make it thicker")),
        ({"made": plugin(radius2="0")}, ("radius2='0'", "make its sizes positive")),
        ({"made": plugin("mujoco.sdf.nut", radius=3)}, ("radius='3'", "make it thicker")),
        (
            {"made": plugin("mujoco.sdf.bowl", height=2)},
            ("radius must not be less than the absolute",),
        ),
        ({"made": plugin("mujoco.sdf.gear", teeth=-5)}, ("teeth must be positive",)),
        ({"made": plugin("mujoco.pid")}, ("mujoco.pid is for actuators",)),
        ({"made": "<plugin/>"}, ("it needs plugin",)),
        ({"made": plugin(radius="1")}, ("no setting", "did you mean 'radius")),
        ({"made": SMALL, "attrs": 'scale="1 1 2"'}, ("scale='1 1 2'", "sizes of the plugin")),
        ({"made": SMALL, "attrs": 'texcoord="0 0 1 0"'}, ("2 texture coordinates",)),
        ({"made": SMALL, "attrs": 'texcoord="0 0 1"'}, ("texcoord needs 2 numbers",)),
        ({"made": SMALL, "attrs": 'refquat="0 0 0 0"'}, ("refquat",)),
        ({"made": SMALL, "attrs": 'maxhullvert="3"'}, ("maxhullvert",)),
        ({"made": SMALL, "inside": '<geom type="sdf">' + SMALL + "</geom>"}, ("needs mesh",)),
        ({"made": SMALL, "inside": f'<geom size="1">{plugin(radius1="x")}</geom>'}, ("radius1",)),
    ],
)
def test_refused(parts, words):
    assert_refused(model(**parts), *words)


@pytest.mark.parametrize(
    ("made", "attrs", "words"),
    [
        # MuJoCo crashes
        (SMALL, 'file="cube.obj"', "both plugin and file"),
        (plugin(radius2=-0.1), "", "make its sizes positive"),
        (plugin("mujoco.sdf.gear", diameter=-1), "", "make its sizes positive"),
        # MuJoCo divides by zero
        (plugin("mujoco.sdf.gear", teeth=0), "", "teeth must be positive"),
    ],
)
def test_refused_here(made, attrs, words):
    with pytest.raises(ModelError, match=words):
        compile_string(model(made, attrs=attrs))
