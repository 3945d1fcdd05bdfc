"""Options that clash: refused while they do, wherever they come from, and no longer."""

import warnings

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.enums import EnableBit, IntegratorType, SolverType
from jaxsim.errors import UnsupportedError, UnsupportedWarning
from jaxsim.model.switch import clashes

BALL = "<worldbody><body><freejoint/><geom size='.1'/></body></worldbody>"
TIED = """<worldbody><body><joint name="a"/><geom size="1"/></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
<equality><tendon name="e" tendon1="t"/></equality>"""
FLEX = """<worldbody><flexcomp name="f" type="grid" dim="{dim}" count="3 {across} 1" mass="1"
spacing=".1 .1 .1" radius=".01"><contact selfcollide="none" {contact}/>{more}</flexcomp>
</worldbody>"""
APART = 'contype="0" conaffinity="0"'
STIFF = FLEX.format(
    dim=2,
    across=3,
    contact=APART,
    more='<elasticity young="1e3" thickness=".01" elastic2d="both"/>',
)
SPRINGY = FLEX.format(dim=1, across=1, contact=APART, more='<edge stiffness="10"/>')
FWD_INV = int(EnableBit.FWDINV | EnableBit.INVDISCRETE)
IPC_SLEEP = int(EnableBit.IPC | EnableBit.SLEEP)
DISCRETE, IMPLICIT = int(IntegratorType.DISCRETE), int(IntegratorType.IMPLICIT)

# features of a model, its options that conflict, options that resolve it
CASES = {
    "ipc, Euler": (BALL, {"enableflags": int(EnableBit.IPC)}, {"integrator": DISCRETE}),
    "ipc, sleep": (
        *(BALL, {"integrator": DISCRETE, "enableflags": IPC_SLEEP}),
        {"enableflags": int(EnableBit.SLEEP)},
    ),
    "fwdinv, RK4": (
        *(BALL, {"integrator": int(IntegratorType.RK4), "enableflags": FWD_INV}),
        {"integrator": 0},
    ),
    "tendons, sleep": (TIED, {"enableflags": int(EnableBit.SLEEP)}, {"enableflags": 0}),
    "elasticity, implicit": (STIFF, {"integrator": IMPLICIT}, {"integrator": 0}),
    "elasticity, PGS": (
        *(STIFF, {"integrator": DISCRETE, "solver": int(SolverType.PGS)}),
        {"solver": int(SolverType.NEWTON)},
    ),
}


def clashing(world, options):
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{world}</mujoco>")
    for name, value in options.items():
        setattr(mj.opt, name, value)
    with pytest.warns(UnsupportedWarning):
        return jaxsim.put_model(mj)


@pytest.mark.parametrize("case", CASES)
def test_option_clash_is_reported_until_it_is_fixed(case):
    world, options, mend = CASES[case]
    m = clashing(world, options)
    with pytest.raises(UnsupportedError):
        jaxsim.make_data(m)
    mended = m.replace(opt=m.opt.replace(**mend))
    assert not mended.unsupported
    assert jaxsim.make_data(mended).qpos.shape == (m.nq,)
    with pytest.raises(ValueError, match=r"^opt: "):
        mended.replace(opt=m.opt)


def test_another_clash_is_refused_while_there_is_one():
    m = clashing(TIED, {"enableflags": int(EnableBit.SLEEP)})
    kept = m.replace(opt=m.opt.replace(iterations=3))
    assert kept.unsupported == m.unsupported
    with pytest.raises(ValueError, match="opt: the flag ipc needs the integrator 'discrete'"):
        m.replace(opt=m.opt.replace(enableflags=m.opt.enableflags | int(EnableBit.IPC)))


def test_numbers_that_clash_are_mended_too():
    m = clashing(SPRINGY, {"integrator": DISCRETE})
    assert "flex 'f': edge stiffness" in m.unsupported[0][2]
    mended = m.replace(flex_edgestiffness=np.zeros(1))
    assert jaxsim.make_data(mended).qvel.shape == (m.nv,)
    with pytest.raises(ValueError, match="flex_edgestiffness: flex 'f': edge stiffness"):
        mended.replace(flex_edgestiffness=np.ones(1))
    assert jax.eval_shape(lambda k: mended.replace(flex_edgestiffness=k), np.ones(1)).nflex == 1


def test_places_are_kept_while_it_clashes_and_in_a_file(tmp_path):
    text = f"<mujoco>\n<option><flag sleep='enable'/></option>{TIED}</mujoco>"
    with pytest.warns(UnsupportedWarning, match=r"<string>:4: equality 'e'"):
        m = jaxsim.load_model(text)
    assert m.unsupported[0][:2] == ("<string>", 4)
    jaxsim.save_model(m.replace(opt=m.opt.replace(enableflags=0)), tmp_path / "m.jxm")
    assert not jaxsim.load_model(tmp_path / "m.jxm").unsupported


def slides(*axes):
    return "".join(f'<joint type="slide" axis="{axis}"/>' for axis in axes)


def carried(joints, inside="", name=""):
    given = f'name="{name}"' if name else ""
    return (
        f'<body {given} pos=".06 .06 .2">{joints}<geom size=".005" mass=".05" contype="0" '
        f'conaffinity="0"/>{inside}</body>'
    )


SLIDE, XYZ = slides("0 0 1"), slides("1 0 0", "0 1 0", "0 0 1")
HINGE = "<joint/>"
UNDER_IPC = """<mujoco><option integrator="discrete"><flag ipc="enable"/></option><worldbody>{}
</worldbody><deformable><flex name="f" dim="2" radius=".01" body="a b c d" element="0 1 2 1 3 2"
vertex="0 0 0 0 0 0 0 0 0 0 0 0"><contact contype="0" conaffinity="0"/></flex></deformable>
</mujoco>"""
CARRIED = {
    "fixed": carried("", name="a"),
    "a slide": carried(SLIDE, name="a"),
    "on a slide": carried(SLIDE, carried("", name="a")),
    "slides on a slide": carried(SLIDE, carried(slides("1 0 0", "0 1 0"), name="a")),
    "free on a slide": carried(SLIDE, carried(XYZ, name="a")),
    "free on what is fixed on a slide": carried(SLIDE, carried("", carried(XYZ, name="a"))),
    "free on three slides": carried(XYZ, carried(XYZ, name="a")),
    "free on free": carried(XYZ, carried(XYZ, name="b"), name="a"),
    "free on a pinned one": carried(SLIDE, carried(XYZ, name="b"), name="a"),
    "a hinge": carried(HINGE, name="a"),
    "two slides and a hinge": carried(slides("1 0 0", "0 1 0") + HINGE, name="a"),
    "slides on a hinge": carried(HINGE, carried(SLIDE, name="a")),
    "free on a hinge": carried(HINGE, carried(XYZ, name="a")),
    "a ball": carried('<joint type="ball"/>', name="a"),
    "afloat": carried("<freejoint/>", name="a"),
}


@pytest.mark.parametrize("case", CARRIED)
def test_shells_that_are_carried_under_the_flag_ipc(case):
    """Refused are those that MuJoCo refuses."""
    content = CARRIED[case]
    content += "".join(carried(XYZ, name=n) for n in "bcd" if f'name="{n}"' not in content)
    text = UNDER_IPC.format(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedWarning)
        m = jaxsim.load_model(text)
    ours = any("flag ipc what carries" in found.message for found in clashes.find_clashes(m))
    theirs = ""
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        theirs = str(error)
    assert ours == ("IPC mode" in theirs) == bool(theirs)
