"""Visual elements are discarded exactly where MuJoCo does it, and bodies keep their inertia."""

import pytest
from compile.oracle import assert_agrees, assert_refused

_GEOM = '<geom name="v" size=".1" contype="0" conaffinity="0"/>'


def _model(
    geom: str = _GEOM, *, compiler: str = "", rest: str = "", world: str = '<site name="s0"/>'
) -> str:
    return (
        f'<mujoco><compiler discardvisual="true" {compiler}/><worldbody>{world}'
        '<geom name="z" size="1"/><body name="b" pos="0 0 3" euler="10 20 30"><joint name="j"/>'
        f'<geom name="c" type="box" size=".1 .2 .3"/>{geom}<site name="s"/></body></worldbody>'
        f"{rest}</mujoco>"
    )


_GEOMS = {
    "weighing": (_GEOM, "", 2),
    "weightless": ('<geom size=".1" contype="0" conaffinity="0" mass="0"/>', "", 2),
    "light as air": ('<geom size=".1" contype="0" conaffinity="0" density="0"/>', "", 2),
    "ellipsoid": (_GEOM.replace("/>", ' fluidshape="ellipsoid"/>'), "", 3),
    "affine": (_GEOM.replace('conaffinity="0"', ""), "", 3),
    "outside the groups": (_GEOM.replace("/>", ' group="3"/>'), 'inertiagrouprange="0 2"', 2),
    "bounded": (_GEOM, 'boundmass="1" boundinertia="1000" settotalmass="20"', 2),
    "written inertia": (_GEOM + '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>', "", 2),
    "weightless, inferred": (_GEOM.replace("/>", ' mass="0"/>'), 'inertiafromgeom="true"', 2),
    "moving surface": (_GEOM.replace("/>", ' surfacevel="1 0 0"/>'), "", 2),
    "far": (_GEOM.replace("/>", ' pos="1 2 3"/>'), "", 2),
    "in a frame": (f'<frame pos="1 0 0" euler="0 0 30">{_GEOM}</frame>', "", 2),
}


@pytest.mark.parametrize("case", _GEOMS)
def test_geoms(case):
    geom, compiler, left = _GEOMS[case]
    assert assert_agrees(_model(geom, compiler=compiler)).fields["ngeom"] == left


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        ('<contact><pair geom1="v" geom2="z"/></contact>', 3),
        ('<sensor><framepos objtype="geom" objname="v"/></sensor>', 3),
        ('<sensor><distance geom1="v" geom2="z" cutoff="1"/></sensor>', 3),
        ('<sensor><contact geom1="v"/></sensor>', 3),
        ('<sensor><contact body1="b"/></sensor>', 2),
        ('<sensor><rangefinder site="s0"/></sensor>', 2),
        (
            '<tendon><spatial><site site="s"/><geom geom="v"/><site site="s0"/></spatial></tendon>',
            3,
        ),
        ('<custom><tuple name="t"><element objtype="geom" objname="v"/></tuple></custom>', 3),
    ],
)
def test_geoms_with_a_name_that_is_used_stay(rest, left):
    text = _model(rest=rest, world='<site name="s0" pos="0 0 9"/>')
    assert assert_agrees(text).fields["ngeom"] == left


def test_classes_decide():
    rest = (
        '<default><default class="vis"><geom contype="0" conaffinity="0" material="m"/></default>'
        '</default><asset><material name="m"/></asset>'
    )
    assert_agrees(_model('<geom size=".1" class="vis"/>', rest=rest))


def test_both_options():
    text = _model(
        f'<body pos="1 0 0" euler="0 45 0"><geom size=".1"/>{_GEOM}</body>',
        compiler='fusestatic="true"',
    )
    assert assert_agrees(text).fields["nbody"] == 2


def test_inertia_that_only_geoms_may_give():
    assert_refused(_model(compiler='inertiafromgeom="true"'), "<body name='b'>", "mass='0'")


@pytest.mark.parametrize("compiler", ['discardvisual="true"', 'fusestatic="true"', ""])
@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ("<asset>{0}{0}</asset>".format('<mesh name="m" builtin="sphere" params="1"/>'), "mesh"),
        ('<asset><material name="m"/><material name="m"/></asset>', "material"),
        ('<worldbody><body name="m"/><body name="m"/></worldbody>', "body"),
        ('<worldbody><frame name="m"/><frame name="m"/></worldbody>', "frame"),
        (
            '<worldbody><geom name="m" size="1" contype="0" conaffinity="0"/>'
            '<geom name="m" size="1" contype="0" conaffinity="0"/></worldbody>',
            "geom",
        ),
    ],
)
def test_what_goes_must_have_a_name_of_its_own_too(parts, kind, compiler):
    text = f"<mujoco><compiler {compiler}/>{parts}</mujoco>"
    assert_refused(text, f"a {kind} named 'm' exists already (first at <string>:1)")


_TEXTURE = '<texture name="{}" type="2d" builtin="checker" width="8" height="8"/>'
_TETRA = '<mesh name="{}" vertex="0 0 0 1 0 0 0 2 0 0 0 4"/>'
_ASSETS = "".join(
    (
        "<asset>",
        *(_TEXTURE.format(name) for name in ("tx", "ty")),
        '<material name="ma" texture="tx" rgba="1 0 0 1"/><material name="mb" texture="ty"/>',
        *(_TETRA.format(name) for name in ("m1", "m2", "m3", "m4")),
        '<hfield name="hf" nrow="2" ncol="2" size="1 1 1 1"/>',
        "</asset>",
    )
)


def test_materials_of_what_stays():
    rest = (
        _ASSETS
        + '<tendon><spatial material="ma"><site site="s"/><site site="s0"/></spatial></tendon>'
    )
    geom = '<geom size=".1" material="ma"/><site type="box" material="mb"/>'
    ours = assert_agrees(_model(geom, rest=rest, world='<site name="s0"/><light texture="tx"/>'))
    assert (ours.fields["nmat"], ours.fields["ntex"], ours.fields["nmesh"]) == (0, 0, 0)


def test_assets_that_a_tuple_names():
    rest = _ASSETS + (
        '<custom><tuple name="t"><element objtype="material" objname="ma"/>'
        '<element objtype="texture" objname="ty"/></tuple></custom>'
    )
    ours = assert_agrees(_model('<geom size=".1" material="ma"/>', rest=rest))
    assert (ours.names["material"], ours.names["texture"]) == (("ma",), ("ty",))


# The order of the vertices of a convex hull is a matter of the program that makes it.
_HULL = ("mesh_graph", "mesh_extrema")


def test_meshes():
    geom = (
        '<geom name="v" type="mesh" mesh="m1" contype="0" conaffinity="0" material="ma"/>'
        '<geom type="mesh" mesh="m2" material="mb"/><site type="mesh" mesh="m3"/>'
        '<geom type="box" mesh="m4" contype="0" conaffinity="0" density="0"/>'
    )
    text = _model(geom, rest=_ASSETS)
    assert assert_agrees(text, skip=_HULL).names["mesh"] == ("m2", "m3")
