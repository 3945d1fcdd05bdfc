"""Options, flags and sizes equal MuJoCo's."""

import pytest
from compile.oracle import assert_agrees

from jaxsim.enums import DisableBit, EnableBit

OPTIONS = [
    "",
    'timestep=".01" gravity="1 2 3" wind="1 0 0" magnetic="1 1 1" density="1.2" viscosity=".1"',
    'integrator="RK4" cone="elliptic" jacobian="sparse" solver="PGS"',
    'integrator="implicitfast" jacobian="dense" solver="CG"',
    'integrator="implicit"',
    'integrator="discrete"',
    'iterations="1" ls_iterations="2" noslip_iterations="3" ccd_iterations="4"',
    'tolerance="1e-3" ls_tolerance="1e-4" noslip_tolerance="1e-5" ccd_tolerance="1e-7"',
    'impratio="10"',
    'o_margin=".1" o_solref=".1 .2" o_solimp=".8 .9 .01" o_friction="1 2 3 4 5"',
    'sdf_iterations="3" sdf_initpoints="5" sleep_tolerance=".1"',
    'actuatorgroupdisable="0 3 30"',
]


@pytest.mark.parametrize("option", OPTIONS)
def test_options(option):
    assert_agrees(f"<mujoco><option {option}/></mujoco>")


@pytest.mark.parametrize("flag", [bit.name.lower() for bit in (*DisableBit, *EnableBit)])
@pytest.mark.parametrize("keyword", ["enable", "disable"])
def test_flags(flag, keyword):
    assert_agrees(
        f'<mujoco><option integrator="discrete"><flag {flag}="{keyword}"/></option></mujoco>'
    )


def test_the_last_of_repeated_sections_counts():
    assert_agrees("""
        <mujoco>
          <option timestep=".1" gravity="0 0 -1"><flag contact="disable" energy="enable"/></option>
          <option timestep=".2"><flag contact="enable" gravity="disable"/></option>
          <size nuserdata="3" nuser_geom="4"/>
          <size nuserdata="5" nuser_body="2"/>
          <worldbody><geom size="1" user="1 2"/></worldbody>
        </mujoco>""")
