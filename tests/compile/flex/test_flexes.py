"""Flexes, their material and their constraints equal MuJoCo's."""

import mujoco
import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused, refusal

from jaxsim.compile import compile_string

pytestmark = pytest.mark.filterwarnings("ignore")

SLIDES = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
PLACES = ("0 0 0", "1 .1 0", "0 1 .2", "1.1 1 .5", ".3 .2 1")
POINTS = "".join(
    f'<body name="p{i}" pos="{pos}">{SLIDES}<geom size=".1" mass="{i + 1}"/></body>'
    for i, pos in enumerate(PLACES)
)
OTHERS = """
    <body name="free" pos="2 0 0"><freejoint/><geom size=".1"/></body>
    <body name="hinge" pos="0 2 0"><joint pos=".5 0 0"/><geom size=".1"/></body>
    <body name="still" pos="2 2 2"/>"""
SHEET = 'body="p0 p1 p2 p3" element="0 1 2 2 1 3"'
SOLID = 'body="p0 p1 p2 p3 p4" dim="3" element="0 1 2 3 0 1 2 4"'


def model(attrs, children="", *, option='integrator="Euler"', sections=""):
    return f"""
        <mujoco>
          <option {option}/>
          <asset><material name="m"/></asset>
          <worldbody>{POINTS}{OTHERS}</worldbody>
          <deformable><flex name="F" {attrs}>{children}</flex></deformable>
          {sections}
        </mujoco>"""


@pytest.mark.parametrize(
    "attrs",
    [
        SHEET,
        SOLID,
        'body="p0 p1 p2" dim="1" element="0 1 1 2"',
        SHEET + ' vertex="0 0 .1 0 0 0 0 .2 0 0 0 0" group="3" radius=".02" flatskin="true"',
        SHEET + ' material="m" rgba="1 0 0 .5" texcoord="0 0 1 1 2 2 3 3"',
        SHEET + ' texcoord="0 0 1 1" elemtexcoord="0 1 0 1 1 0"',
        'body="free" vertex="0 0 0 1 0 0 0 1 0" element="0 1 2"',
        'body="still" vertex="0 0 0 1 0 0 0 1 0 0 0 1" element="0 1 2 0 1 3"',
        'body="world free hinge still" element="0 1 2 1 3 2"',
        'body="p0 p1 p2" element="0 1 2" cellcount="2 2 2"',
    ],
)
def test_flex(attrs):
    compiled = assert_agrees(model(attrs))
    held = '<equality><flex name="e" flex="F" solref=".1 1" active="false"/></equality>'
    if compiled.fields["flex_rigid"][0]:
        assert_refused(model(attrs, sections=held), "rigid")
    else:
        assert_agrees(model(attrs, sections=held))


def test_edges_of_turning_bodies_are_weighed_by_their_jacobian():
    held = '<equality><flex flex="F"/></equality>'
    attrs = 'body="p0 free hinge still" element="0 1 2 1 2 3"'
    compiled = assert_agrees(model(attrs, sections=held))
    assert np.count_nonzero(compiled.fields["flexedge_invweight0"]) == 4


@pytest.mark.parametrize(
    "children",
    [
        '<contact contype="2" conaffinity="4" condim="4" priority="1" solmix=".5" solref=".1 2"'
        ' solimp=".1 .2" friction="2 .1" margin=".1" gap=".2" selfcollide="sap" activelayers="2"/>',
        '<contact friction="2" selfcollide="none"/>',
        '<edge damping="2"/>',
        '<elasticity young="10" damping=".1"/>',
        '<elasticity damping=".1"/>',
    ],
)
def test_parameters(children):
    assert_agrees(model(SHEET, children))
    assert_agrees(model(SOLID, children))


@pytest.mark.parametrize("elastic2d", ["none", "bend", "stretch", "both"])
@pytest.mark.parametrize("yields", ["", 'yield=".1"', 'yield="0 .1"', 'yield=".1 0"'])
def test_elastic_shells(elastic2d, yields):
    material = f'young="10" poisson=".3" thickness=".1" elastic2d="{elastic2d}" {yields}'
    assert_agrees(model(SHEET, f"<elasticity {material}/>"))


@pytest.mark.parametrize("yields", ["", 'yield=".1"'])
def test_elastic_solids(yields):
    assert_agrees(model(SOLID, f'<elasticity young="10" poisson=".3" {yields}/>'))


LATTICES = [
    'type="grid" dim="3" count="3 2 2" spacing=".1 .2 .3" euler="0 0 20"',
    'type="direct" dim="3" point="0 0 0 1 0 0 0 1 0 0 0 1" element="0 1 2 3"',
    'type="direct" dim="2" point="0 0 0 1 0 0 0 1 0 0 0 1" element="0 2 1 0 1 3 0 3 2 1 2 3"',
]


@pytest.mark.parametrize("shape", LATTICES)
@pytest.mark.parametrize("dof", ["trilinear", "quadratic"])
@pytest.mark.parametrize("cells", ["1 1 1", "2 1 2"])
def test_elastic_lattices(shape, dof, cells):
    comp = f'<flexcomp name="G" radius=".01" {shape} dof="{dof}" cellcount="{cells}">'
    comp += '<elasticity young="3" poisson=".3" damping=".1" yield=".1"/></flexcomp>'
    body = f'<body name="b" pos="1 2 3" euler="30 20 10">{comp}</body>'
    # Which cell a vertex on a wall counts to is decided by the last digit.
    assert_agrees(f"<mujoco><worldbody>{body}</worldbody></mujoco>", skip=("flex_vertcell",))


def _interpolated(children, *, cells="1 1 1", dof="trilinear", spacing=".1 .2 .3"):
    return f"""<mujoco><option integrator="Euler"/><worldbody>
      <flexcomp name="G" type="grid" dim="3" count="3 3 3" spacing="{spacing}" radius=".01"
        dof="{dof}" cellcount="{cells}">{children}</flexcomp></worldbody></mujoco>"""


@pytest.mark.parametrize("elastic2d", ["stretch", "bend", "both"])
@pytest.mark.parametrize("dof", ["trilinear", "quadratic"])
@pytest.mark.parametrize("cells", ["1 1 1", "2 1 3"])
def test_walls_of_interpolated_shells(elastic2d, dof, cells):
    material = f'<elasticity young="9" poisson=".2" thickness=".01" elastic2d="{elastic2d}"/>'
    assert_agrees(_interpolated(material, cells=cells, dof=dof))


STRAINED = (
    '<edge equality="strain"/>',
    '<edge equality="strain"/><elasticity young="0" thickness=".01" elastic2d="both"/>',
)


@pytest.mark.parametrize("children", STRAINED, ids=["solid", "shell"])
@pytest.mark.parametrize(("dof", "cells"), [("trilinear", "2 1 2"), ("quadratic", "1 1 2")])
def test_modes_of_strain_constraints(children, dof, cells):
    assert_agrees(_interpolated(children, cells=cells, dof=dof))


def test_modes_of_a_cube_span_what_those_of_mujoco_span():
    """Modes of equal stiffness have no unique direction: rounding decides between them."""
    text = _interpolated(STRAINED[0], spacing=".1 .1 .1")
    ours = assert_agrees(text, skip=("flex_stiffness",)).fields["flex_stiffness"]
    theirs = mujoco.MjModel.from_xml_string(text).flex_stiffness
    forms = [modes[1 : 1 + 18 * 24].reshape(18, 24) for modes in (ours, theirs)]
    assert ours[0] == theirs[0] == 18
    np.testing.assert_allclose(forms[0].T @ forms[0], forms[1].T @ forms[1], atol=1e-12)


RODS = {
    "straight": "0 0 0 1 0 0 3 0 0 4 0 0",
    "curved": "0 0 0 1 0 0 2 1 0 2 2 1",
}


@pytest.mark.parametrize("rod", RODS)
@pytest.mark.parametrize(
    "element", ["0 1 1 2 2 3", "3 2 2 1 1 0", "2 3 1 2 0 1", "0 1 1 2 2 3 3 0"]
)
@pytest.mark.parametrize(
    "material",
    [
        "",
        'poisson=".3" damping=".1"',
        'shear="7"',
        'section="box" sectionsize=".01 .02"',
        'section="box" sectionsize=".02 .01"',
    ],
)
def test_rods(rod, element, material):
    closed = len(element.split()) == 8
    if closed and ("box" in material or rod == "straight"):
        pytest.skip("no closed rod has a box section, or folds back on itself")
    shape = f'type="direct" dim="1" point="{RODS[rod]}" element="{element}"'
    comp = f'<flexcomp name="R" {shape}><elasticity young="1e4" {material}/></flexcomp>'
    assert_agrees(f"<mujoco><worldbody>{comp}</worldbody></mujoco>")


def test_rods_without_twist():
    attrs = 'body="p0 p1 p2 p3 p4" dim="1" element="0 1 1 2 2 3 3 4"'
    assert_agrees(model(attrs, '<elasticity young="1e4" poisson=".2"/>'))


def test_flexes_come_before_those_of_flexcomps():
    comp = '<flexcomp name="C" dim="2" count="2 2 1"><edge equality="true"/></flexcomp>'
    text = model(SHEET, sections='<equality><flex flex="F"/></equality>')
    compiled = assert_agrees(text.replace("<worldbody>", "<worldbody>" + comp))
    assert compiled.names["flex"] == ("F", "C")
    assert compiled.fields["eq_obj1id"].tolist() == [0, 1]


def test_nodes():
    nodes = [f"{i} {j} {k}" for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    bodies = "".join(
        f'<body name="n{i}" pos="{pos}">{SLIDES}<geom size=".1"/></body>'
        for i, pos in enumerate(nodes)
    )
    names = " ".join(f"n{i}" for i in range(8))
    flex = f"""
        <flex name="N" dim="3" body="world world world world" node="{names}" dof="trilinear"
          vertex=".1 .1 .1 .9 .1 .1 .1 .9 .1 .1 .1 .9" element="0 1 2 3"/>"""
    text = model(SHEET).replace("<worldbody>", "<worldbody>" + bodies)
    assert_agrees(text.replace("<deformable>", "<deformable>" + flex))


ROD = 'body="p0 p1 p2" dim="1" element="0 1 1 2"'
BAD_RATIOS = ("0.5", "0.6", "-0.1", "-1", "1e308", "inf")


@pytest.mark.parametrize("poisson", ["0", ".49", *BAD_RATIOS])
def test_poisson_ratio_is_ignored_or_checked(poisson):
    young = float(poisson in ("0", ".49"))
    assert_agrees(model(SOLID, f'<elasticity young="{young}" poisson="{poisson}"/>'))


@pytest.mark.parametrize("thickness", ["1e200", "1e308"])
def test_a_thickness_whose_power_overflows(thickness):
    elasticity = f'<elasticity young="1" elastic2d="both" thickness="{thickness}"/>'
    assert_agrees(model(SHEET, elasticity), skip=("flex_bending", "flex_stiffness"))


@pytest.mark.parametrize("active", ["true", "false"])
@pytest.mark.parametrize("young", [0, 1])
@pytest.mark.parametrize("flex", [SHEET, SOLID, ROD])
@pytest.mark.parametrize("elastic2d", ["none", "bend", "stretch", "both"])
def test_edges_are_elastic_or_constrained(flex, elastic2d, young, active):
    elasticity = f'<elasticity young="{young}" elastic2d="{elastic2d}" thickness=".1"/>'
    held = f'<equality><flex flex="F" active="{active}"/></equality>'
    text = model(flex, elasticity, sections=held)
    if refusal(text) is None:
        assert_agrees(text)
    else:
        assert_refused(text, "<flex")


@pytest.mark.parametrize(
    ("attrs", "children", "word"),
    [
        (SHEET + ' dim="4"', "", "must be 1"),
        ('body="p0 p1 p2" element="0 1 2 0"', "", "element needs 3 numbers"),
        ('body="p0 p1 p2" element="0 1 3"', "", "not there"),
        ('body="p0 p1 p2" element="0 1 1"', "", "twice"),
        ('body="p0 p1 q" element="0 1 2"', "", "names no body"),
        ('body="p0" element="0 1 2"', "", "1 vertices"),
        ('body="p0 p1 p2" element="0 1 2" vertex="0 0 0 1 0 0"', "", "one for each of 2"),
        ('body="p0 p1 p2" element="0 1 2" vertex="0 0 0 1"', "", "vertex needs 3"),
        (SHEET + ' texcoord="0 0 1 1"', "", "2 numbers for each of 4"),
        (SHEET + ' texcoord="0 0 1"', "", "texcoord needs 2"),
        (SHEET + ' elemtexcoord="0 1 2 0 1 2"', "", "needs texcoord"),
        (SHEET + ' texcoord="0 0 1 1" elemtexcoord="0 1 2 0 1 2"', "", "texture coordinates"),
        (SHEET + ' material="n"', "", "names no material"),
        (SHEET + ' node="p0 p1"', "", "needs dof"),
        (SHEET + ' dof="trilinear"', "", "need 8 nodes"),
        (SHEET, '<edge stiffness="1"/>', "is for dim='1'"),
        (SHEET, '<elasticity elastic2d="bend"/>', "positive thickness"),
        (SOLID, '<elasticity elastic2d="bend" thickness=".1"/>', "elastic2d is for dim='2'"),
        (SHEET, '<elasticity yield="-1"/>', "must not be negative"),
        (SOLID, '<elasticity yield="0 1"/>', "yields in bending"),
        (SHEET, '<elasticity shear="-1"/>', "shear"),
        (SHEET, '<contact passive="true"/>', "integrator='discrete'"),
        (ROD, '<elasticity young="1" section="box" sectionsize="0 1"/>', "sectionsize"),
        *((SHEET, f'<elasticity young="1" poisson="{p}"/>', "poisson") for p in BAD_RATIOS),
        *((SOLID, f'<elasticity young="1" poisson="{p}"/>', "poisson") for p in BAD_RATIOS),
        *((ROD, f'<elasticity young="1" poisson="{p}"/>', "poisson") for p in BAD_RATIOS),
    ],
)
def test_refused(attrs, children, word):
    assert_refused(model(attrs, children), word)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_elasticity_needs_an_integrator_that_takes_it(integrator):
    text = model(SOLID, '<elasticity young="1"/>', option=f'integrator="{integrator}"')
    assert_refused(text, "integrator='discrete'")
    compile_string(text.replace(f'"{integrator}"', '"discrete"'))


def test_damped_points_are_refused():
    default = '<default><joint damping="1"/></default>'
    comp = '<flexcomp name="G" dim="2" count="2 2 1"/>'
    assert_refused(f"<mujoco>{default}<worldbody>\n{comp}</worldbody></mujoco>", "damping", "G_0")


def test_rods_that_fold_back_are_refused():
    shape = 'type="direct" dim="1" point="0 0 0 1 0 0 0 0 0" element="0 1 1 2"'
    comp = f'<flexcomp name="R" {shape}><elasticity young="1"/></flexcomp>'
    assert_refused(f"<mujoco><worldbody>\n{comp}</worldbody></mujoco>", "folds back")


@pytest.mark.parametrize(
    ("equality", "word"),
    [
        ('<flex flex="G"/>', "names no flex"),
        ('<flexstrain flex="F"/>', "only an interpolated flex"),
    ],
)
def test_constraints_refused(equality, word):
    assert_refused(model(SHEET, sections=f"<equality>{equality}</equality>"), word)
