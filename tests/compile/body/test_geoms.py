"""Geoms and sites equal MuJoCo's: shapes, contact and fluid parameters, what bodies inherit."""

import pytest
from compile.oracle import assert_agrees

SHAPES = [
    'type="plane" size="1 2 .1"',
    'type="plane" size="0 0 1"',
    'type="sphere" size=".3"',
    'type="capsule" size=".2 .5"',
    'type="cylinder" size=".2 .5"',
    'type="box" size=".2 .3 .5"',
    'type="ellipsoid" size=".2 .3 .5"',
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "matter",
    [
        "",
        'density="300"',
        'mass="2"',
        'mass="0"',
        'shellinertia="true"',
        'shellinertia="true" mass="3"',
        'fluidshape="ellipsoid" fluidcoef="1 2 3 4"',
    ],
)
def test_shapes(shape, matter):
    # an ellipsoid without extent has no virtual mass
    skip = ("geom_fluid",) if "fluid" in matter and 'size="0 0 1"' in shape else ()
    assert_agrees(
        f"""
        <mujoco>
          <worldbody>
            <body><geom {shape} {matter} pos="1 2 3" euler="10 20 30"/></body>
          </worldbody>
        </mujoco>""",
        skip=skip,
    )


@pytest.mark.parametrize("shape", [*SHAPES, 'type="ellipsoid" size=".000125 .032 .047"'])
def test_fluid_coefficients(shape):
    import mujoco
    import numpy as np

    from jaxsim.compile import compile_string

    text = f"<mujoco><worldbody><geom {shape} fluidshape='ellipsoid'/></worldbody></mujoco>"
    if 'size="0 0 1"' in shape:
        pytest.skip("an ellipsoid without extent has no virtual mass")
    ours = compile_string(text).fields["geom_fluid"]
    theirs = mujoco.MjModel.from_xml_string(text).geom_fluid
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-30)


def test_contact_parameters():
    assert_agrees("""
        <mujoco>
          <default>
            <geom friction="1 2 3" solimp="0 .99 .01 .4" size=".1 .2 .3" condim="1"/>
            <default class="a"><geom priority="2" margin=".01" gap=".02"/></default>
          </default>
          <worldbody>
            <geom contype="2" conaffinity="4" condim="6"/>
            <body childclass="a">
              <geom friction=".5" solmix=".3" solref="-100 -1"/>
              <geom friction=".5 .6" contype="8" surfacevel="1 2 3 4 5 6" adhesion="2"/>
              <geom class="main" type="box" margin="1" group="2" rgba="1 0 0 .5" user="1 2"/>
              <geom solref=".01" condim="4" castshadow="false"/>
            </body>
            <body gravcomp=".5"/>
          </worldbody>
        </mujoco>""")


def test_sites():
    assert_agrees("""
        <mujoco>
          <default><site size=".1" group="3"/></default>
          <worldbody>
            <site name="a"/>
            <site name="b" type="box" size="1" pos="1 2 3"/>
            <body name="c"><site type="capsule" size=".1 .2" euler="0 0 90" user="1"/></body>
          </worldbody>
        </mujoco>""")


def test_materials_and_textures_do_not_matter():
    compiled = assert_agrees("""
        <mujoco>
          <asset>
            <texture name="t" type="2d" builtin="checker" width="8" height="8"/>
            <material name="m" texture="t"/>
            <material name="n" rgba="1 0 0 1"/>
          </asset>
          <worldbody>
            <geom size="1" material="n"/>
            <site material="m"/>
          </worldbody>
        </mujoco>""")
    assert compiled.names["material"] == ("m", "n")
