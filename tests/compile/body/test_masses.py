"""Masses and inertias of bodies equal MuJoCo's, however they are given."""

import mujoco
import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused, refusal

from jaxsim.compile import compile_string
from jaxsim.compile.geometry.principal import principal_axes
from jaxsim.errors import ModelError
from jaxsim.math.quaternion import quat_to_matrix

BODIES = [
    '<geom size=".1"/><geom size=".1 .2 .3" type="box" pos="1 2 3"/>',
    '<geom size=".1 .2 .3" type="box" pos="1 2 3" euler="10 20 30"/>',
    '<geom size=".3 .2 .1" type="box" quat="2 1 0 0"/><geom size=".1" mass="0" pos="1 1 1"/>',
    '<geom size=".3 .2 .1" type="box"/><geom size=".1" group="6" pos="1 1 1"/>',
    '<geom size=".1" pos="-1 0 0"/><geom size=".1" pos="1 0 0"/>',
    '<geom size=".1" mass="0"/>',
    '<geom size=".1" mass="1e-14"/>',
    '<geom size=".1" mass="1.01e-14"/><geom size=".1" mass="9e-15" pos="1 1 1"/>',
    "<site/>",
    '<inertial pos="0 0 1" mass="1" diaginertia="3 2 2"/><geom size=".3 .2 .1" type="box"/>',
    '<inertial pos="0 0 1" mass="1" diaginertia="3 2 2" euler="10 20 30"/>',
    '<inertial pos="1 0 1" mass="1" fullinertia="3 2 2 .1 .2 .5"/>',
    '<inertial pos="0 0 1" mass="1" fullinertia="1 2 2.5 0 0 0"/>',
    '<inertial pos="0 0 1" mass="1"/>',
    '<frame pos="1 0 0" euler="90 0 0">'
    '<inertial pos="0 0 1" mass="1" diaginertia="1 2 2.5"/></frame>',
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    "compiler",
    [
        "",
        'inertiafromgeom="true"',
        'inertiafromgeom="false"',
        'inertiagrouprange="6 7"',
        'boundmass=".5" boundinertia=".1"',
    ],
)
def test_bodies(body, compiler):
    assert_agrees(f"""
        <mujoco>
          <compiler {compiler}/>
          <worldbody><body pos="1 2 3" euler="30 20 10">{body}</body></worldbody>
        </mujoco>""")


@pytest.mark.parametrize(
    "compiler", ['balanceinertia="true"', 'balanceinertia="true" boundmass="3"']
)
def test_balanced_inertia(compiler):
    assert_agrees(f"""
        <mujoco>
          <compiler {compiler}/>
          <worldbody>
            <body><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>
          </worldbody>
        </mujoco>""")


def test_total_mass(capfd):
    assert_agrees("""
        <mujoco>
          <compiler settotalmass="10"/>
          <worldbody>
            <body><geom size=".3 .2 .1" type="box"/><body><geom size=".1"/></body></body>
            <body><inertial pos="0 0 0" mass="1" diaginertia="1 1 2"/></body>
          </worldbody>
        </mujoco>""")
    capfd.readouterr()  # MuJoCo warns that the attribute is deprecated


@pytest.mark.parametrize("scale", [1.0, 1e-7])
def test_principal_axes_rebuild_the_tensor(scale):
    rng = np.random.default_rng(0)
    for _ in range(50):
        a = rng.normal(size=(3, 4))
        tensor = scale * (np.trace(a @ a.T) * np.eye(3) - a @ a.T)
        moments, quat = principal_axes(tensor)
        R = quat_to_matrix(quat)
        np.testing.assert_allclose(R @ np.diag(moments) @ R.T, tensor, atol=1e-13 * scale)
        assert np.all(np.diff(moments) <= 0)


@pytest.mark.parametrize("align", ["", 'align="true"', 'align="false"'])
@pytest.mark.parametrize("alignfree", ["true", "false"])
def test_free_bodies_align_with_their_inertia(align, alignfree):
    assert_agrees(f"""
        <mujoco>
          <compiler alignfree="{alignfree}"/>
          <worldbody>
            <body pos="1 2 3" euler="10 20 30">
              <freejoint {align}/>
              <geom type="box" size=".1 .2 .3" pos="1 0 0" euler="30 0 10"/>
              <geom size=".1" pos="0 1 0"/>
              <site pos="1 1 1" euler="10 0 0"/>
              <camera pos="1 2 1"/>
              <light pos="0 0 1" dir="1 0 1"/>
            </body>
            <body>
              <freejoint {align}/>
              <geom size=".1" pos="1 0 0"/>
              <body pos="1 0 0"><geom size=".1"/></body>
            </body>
          </worldbody>
        </mujoco>""")


def _inertial(tensor: str, compiler: str) -> str:
    return f"""
        <mujoco>
          <compiler {compiler}/>
          <worldbody>
            <body><inertial pos="0 0 0" mass="1" fullinertia="{tensor}"/></body>
          </worldbody>
        </mujoco>"""


# Tensors with a moment that is zero but for rounding, or a little more than that.
FLAT = [
    "1e-6 1e-6 1e-6 1e-6 1e-6 1e-6",
    "1 1 1 1 1 1",
    "0 0 0 0 0 0",
    "1e-15 1e-15 1e-15 0 0 0",
    "2e-14 2e-14 1.1e-14 0 0 0",
    *(f"{m} {m} {s} 0 0 0" for m in (1, 100, 1e-6) for s in (0, 9e-15, -9e-15, -9e-13, -9e-11)),
    "1 1 1 2 0 0",
    "1 2 3.5 0 0 0",
]


@pytest.mark.parametrize("tensor", FLAT)
@pytest.mark.parametrize(
    "compiler",
    [
        "",
        'balanceinertia="true"',
        'boundinertia="1e-5"',
        'balanceinertia="true" boundinertia="1e-5"',
        'balanceinertia="true" boundinertia="1e-20"',
    ],
)
def test_a_bound_repairs_moments_that_are_as_good_as_zero(tensor, compiler):
    text = _inertial(tensor, compiler)
    if refusal(text) is None:
        # the axes of equal moments are anybody's choice
        assert_agrees(text, skip=("body_iquat", "body_inertia", "body_sameframe"))
        theirs = mujoco.MjModel.from_xml_string(text)
        ours = compile_string(text).fields["body_inertia"]
        np.testing.assert_allclose(np.sort(ours), np.sort(theirs.body_inertia), rtol=1e-9)
    else:
        assert_refused(text, "principal moments")


@pytest.mark.parametrize("compiler", ["", 'balanceinertia="true"'])
def test_a_tensor_of_nan_is_refused(compiler):
    with pytest.raises(ModelError, match="fullinertia='nan 1 1 0 0 0' must be finite"):
        compile_string(_inertial("nan 1 1 0 0 0", compiler))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", ['mass="nan"', 'mass="nan" density="5"', 'density="nan"'])
@pytest.mark.parametrize("where", ["geom", "class"])
def test_a_mass_of_nan_is_not_given(given, where):
    default, own = ("", given) if where == "geom" else (f"<default><geom {given}/></default>", "")
    geoms = f'<geom size=".1" {own}/><geom size=".2" mass="1" density="1"/>'
    assert_agrees(f"<mujoco>{default}<worldbody><body>{geoms}</body></worldbody></mujoco>")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("far", ["nan 0 0", "inf 0 0", "5e-1 -INF iNf"])
def test_moments_of_geoms_without_a_place_are_not_judged(far):
    """Nor in MuJoCo: none of them is the largest."""
    geoms = f'<geom size="1" pos="{far}"/>' * 2
    text = f"<mujoco><worldbody><body>{geoms}</body></worldbody></mujoco>"
    assert mujoco.MjModel.from_xml_string(text).nbody == compile_string(text).fields["nbody"]


@pytest.mark.parametrize("ends", ["1 2 3|-3 -2 -1", "1 0 0|0 1 0", "1 2 2|-1 -2 -2|0 0 0"])
def test_axes_of_equal_moments_are_those_of_mujoco(ends):
    """Balls in a row may rotate about it; the last digits decide."""
    geoms = "".join(f'<geom size="1" pos="{end}"/>' for end in ends.split("|"))
    assert_agrees(f"<mujoco><worldbody><body>{geoms}</body></worldbody></mujoco>")
