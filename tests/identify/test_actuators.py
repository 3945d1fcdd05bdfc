"""Parameters of actuators by name: setting one is loading the MJCF in which it is written."""

import re

import jax
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS, ROUGH_DIFFERENCE, ROUNDING

import jaxsim
from jaxsim.envs import randomize
from jaxsim.identify import linear, parameters
from jaxsim.identify.parameter import Parameters
from jaxsim.identify.targets import actuators
from jaxsim.mjcf.schema.actuator import SHORTCUTS

XML = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 1 0"/>
<geom size=".1" pos=".3 0 0"/></body></worldbody><actuator>{}</actuator></mujoco>"""
ON = 'name="a" joint="j"'
# the element, the attribute as it is written, and with another number, the name, the number
DC = f"dcmotor {ON} input='pos vel voltage'"
KR = "motorconst='.07' resistance='2'"
SHEET = "nominal='24 2 300' damping='.001'"
THERMAL = [
    *((0, "{} 5 0 .004 25 20"), (0, "{} 0 7 .004 25 20"), (1, "2 {} 0 .004 25 20")),
    *((1, "0 {} 7 .004 25 20"), (2, "2 0 {} .004 25 20"), (2, "0 5 {} .004 25 20")),
    *((3, "2 5 0 {} 25 20"), (4, "2 5 0 .004 {} 20"), (5, "2 5 0 .004 25 {}")),
]
MOTORS = [
    ("motorconst='{}' resistance='2'", 0.05, 0.06, "motorconst"),
    ("motorconst='{} .07' resistance='2'", 0.05, 0.06, "motorconst[0]"),
    ("motorconst='.07 {}' resistance='2'", 0.05, 0.06, "motorconst[1]"),
    ("motorconst='.07 {}' resistance='2'", 0, 0.06, "motorconst[1]"),
    # constants on which others depend
    ("motorconst='{}' resistance='2' saturation='0 3' inductance='.01'", 0.05, 0.06, "motorconst"),
    ("motorconst='.07' resistance='{}' inductance='.01'", 2, 3, "resistance"),
    ("motorconst='.07' resistance='{}' inductance='0 .01'", 2, 3, "resistance"),
    (f"{SHEET} resistance='{{}}'", 2, 3, "resistance"),
    ("nominal='{} 2 300'", 24, 30, "nominal[0]"),
    ("nominal='24 {} 300' inductance='.01'", 2, 3, "nominal[1]"),
    ("nominal='24 2 {}' damping='.001'", 300, 350, "nominal[2]"),
    ("nominal='24 2 {}' damping='.001' resistance='3'", 300, 350, "nominal[2]"),
    ("nominal='24 2 300' damping='{}'", 0.001, 0.002, "damping"),
    (f"{SHEET} motorconst='{{}}'", 0.05, 0.06, "motorconst"),
    (f"{KR} inductance='{{}}'", 0.1, 0.2, "inductance[0]"),
    (f"{KR} inductance='0 {{}}'", 0.1, 0.2, "inductance[1]"),
    (f"{KR} saturation='{{}}'", 3, 4, "saturation[0]"),
    (f"{KR} saturation='0 {{}}'", 3, 4, "saturation[1]"),
    (f"{KR} inductance='.1' saturation='0 1 {{}}'", 30, 40, "saturation[2]"),
    *(
        (
            f"{KR} {attr}='{' '.join(['1'] * k + ['{}'] + ['1'] * (n - k - 1))}'",
            2,
            3,
            f"{attr}[{k}]",
        )
        for attr, n in (("cogging", 3), ("lugre", 5), ("controller", 6))
        for k in range(n)
    ),
    *((f"{KR} thermal='{text}'", 0.3, 0.4, f"thermal[{k}]") for k, text in THERMAL),
]
MOTOR_CASES = [
    (f"dcmotor-{text}-{old}", f"<{DC} {text}/>", old, new, name, new)
    for text, old, new, name in MOTORS
]
CASES = [
    ("motor", f"<general {ON} gainprm='{{}}'/>", 3, 7, "gain", 7),
    ("position-kp", f"<position {ON} kp='{{}}' kv='2'/>", 30, 70, "kp", 70),
    ("position-kv", f"<position {ON} kp='30' kv='{{}}'/>", 2, 5, "kv", 5),
    ("position-kv-from-0", f"<position {ON} kp='30' kv='{{}}'/>", 0, 5, "kv", 5),
    ("position-kp-from-0", f"<position {ON} kp='{{}}'/>", 0, 5, "kp", 5),
    ("position-timeconst", f"<position {ON} timeconst='{{}}'/>", 0.1, 0.3, "timeconst", 0.3),
    ("velocity", f"<velocity {ON} kv='{{}}'/>", 3, 7, "kv", 7),
    ("velocity-from-0", f"<velocity {ON} kv='{{}}'/>", 0, 7, "kv", 7),
    ("integrated-kp", f"<intvelocity {ON} kp='{{}}' actrange='-1 1'/>", 3, 7, "kp", 7),
    ("integrated-kv", f"<intvelocity {ON} kv='{{}}' actrange='-1 1'/>", 3, 7, "kv", 7),
    ("damper", f"<damper {ON} kv='{{}}' ctrlrange='0 1'/>", 3, 7, "kv", 7),
    ("damper-from-0", f"<damper {ON} kv='{{}}' ctrlrange='0 1'/>", 0, 7, "kv", 7),
    ("cylinder-area", f"<cylinder {ON} area='{{}}'/>", 3, 7, "area", 7),
    ("cylinder-timeconst", f"<cylinder {ON} timeconst='{{}}'/>", 0.1, 0.3, "timeconst", 0.3),
    ("cylinder-bias", f"<cylinder {ON} bias='1 {{}} 3'/>", 3, 7, "bias[1]", 7),
    ("adhesion", "<adhesion name='a' body='b' ctrlrange='0 1' gain='{}'/>", 3, 7, "gain", 7),
    ("pid-kp", f"<pid {ON} kp='{{}}' ki='2'/>", 3, 7, "kp", 7),
    ("pid-ki", f"<pid {ON} kp='3' ki='{{}}'/>", 3, 7, "ki", 7),
    ("pid-kv", f"<pid {ON} kp='3' kv='{{}}'/>", 3, 7, "kv", 7),
    ("pid-imax", f"<pid {ON} kp='3' ki='1' imax='{{}}'/>", 3, 7, "imax", 7),
    *(
        (f"muscle-{n}", f"<muscle {ON} lengthrange='0 1' {n}='{{}}'/>", old, new, n, new)
        for n, old, new in (
            ("force", 100, 150),
            ("scale", 200, 250),
            ("lmin", 0.5, 0.6),
            ("lmax", 1.6, 1.7),
            ("vmax", 1.5, 1.6),
            ("fpmax", 1.3, 1.4),
            ("fvmax", 1.2, 1.3),
            ("tausmooth", 0.1, 0.2),
        )
    ),
    ("muscle-range", f"<muscle {ON} lengthrange='0 1' range='.7 {{}}'/>", 1, 1.2, "range[1]", 1.2),
    (
        "muscle-timeconst",
        f"<muscle {ON} lengthrange='0 1' timeconst='{{}} .04'/>",
        *(0.01, 0.02, "timeconst[0]", 0.02),
    ),
    (
        "position-dampratio",
        f"<position {ON} kp='30' dampratio='{{}}'/>",
        0.7,
        1.2,
        "dampratio",
        1.2,
    ),
    ("dampratio-from-0", f"<position {ON} kp='30' dampratio='{{}}'/>", 0, 1, "dampratio", 1),
    ("dampratio-kp", f"<position {ON} kp='{{}}' dampratio='1'/>", 30, 70, "kp", 70),
    ("dampratio-gear", f"<position {ON} kp='9' dampratio='1' gear='{{}}'/>", 1, 3, "gear[0]", 3),
    (
        "dampratio-armature",
        f"<position {ON} kp='9' dampratio='1' armature='{{}}'/>",
        *(0.1, 0.3, "armature", 0.3),
    ),
    (
        "integrated-dampratio",
        f"<intvelocity {ON} kp='3' dampratio='{{}}' actrange='-1 1'/>",
        *(0.7, 1.2, "dampratio", 1.2),
    ),
    ("pid-dampratio", f"<pid {ON} kp='3' dampratio='{{}}'/>", 0.7, 1.2, "dampratio", 1.2),
    ("pid-slewmax", f"<pid {ON} kp='3' slewmax='{{}}'/>", 3, 7, "slewmax", 7),
    *(
        (f"pid-{n}", f"<pid {ON} kp='3' input='pos vel ff' {n}='-1 {{}}'/>", 3, 7, f"{n}[1]", 7)
        for n in ("posrange", "velrange", "ffrange")
    ),
    ("cylinder-diameter", f"<cylinder {ON} diameter='{{}}'/>", 0.1, 0.2, "diameter", 0.2),
    *(
        (f"motor-{text}-{old}", f"<motor {ON} {text}/>", old, new, name, new)
        for text, old, new, name in (
            ("gear='{}'", 2, 3, "gear[0]"),
            ("armature='{}'", 0.1, 0.2, "armature"),
            ("armature='{}'", 0, 0.2, "armature"),
            ("damping='{} .1'", 0.1, 0.2, "damping"),
            ("damping='0 .1 {}'", 0.1, 0.2, "damping[2]"),
            ("ctrlrange='-1 {}'", 1, 2, "ctrlrange[1]"),
            ("forcerange='-1 {}'", 1, 2, "forcerange[1]"),
            ("lengthrange='-1 {}'", 1, 2, "lengthrange[1]"),
        )
    ),
    *MOTOR_CASES,
    (
        "general-servo",
        f"<general {ON} biastype='affine' gainprm='{{0}}' biasprm='0 -{{0}} -1'/>",
        *(3, 7, "kp", 7),
    ),
]


def real(m):
    """The real fields of a model by name."""
    return {n: getattr(m, n) for n, f in m.fields.items() if not f.static and f.nested is None}


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_parameter_of_an_actuator_is_the_attribute_of_mjcf(case):
    _, element, before, after, name, value = case
    m = jaxsim.load_model(XML.format(element.format(before)))
    expected = jaxsim.load_model(XML.format(element.format(after)))
    key = f"actuator:a/{name}"
    P = parameters(m, {key: linear()})
    np.testing.assert_allclose(P.numbers(P.nominal()), [before], **ROUNDING)
    found, theirs = real(P.model(m, P.vector({key: value}))), real(expected)
    compiled = mujoco.MjModel.from_xml_string(XML.format(element.format(after)))
    for field, number in theirs.items():
        if number is not None:
            np.testing.assert_allclose(found[field], number, err_msg=field, **ROUNDING)
            oracle = np.reshape(getattr(compiled, field, number), np.shape(number))
            np.testing.assert_allclose(found[field], oracle, err_msg=field, **DYNAMICS)
    # the law of the model that was found is that of the file
    assert actuators.parameters_of(P.model(m, P.nominal()), 0) == actuators.parameters_of(m, 0)

    # the same by randomization
    keys = jax.random.split(jax.random.key(0), 2)
    models, _ = randomize(m, keys, {key: linear(value, value * (1 + 1e-14))}, derive=False)
    for field in (actuators.GAIN, actuators.BIAS, actuators.DYN):
        drawn = np.asarray(getattr(models, field)).reshape(-1, *theirs[field].shape)[-1]
        np.testing.assert_allclose(drawn, theirs[field], err_msg=field, **ROUNDING)


def test_one_name_sets_servos_of_several_laws():
    m = jaxsim.load_model(
        XML.format(
            '<position name="p" joint="j" kp="9" kv="2"/><velocity name="v" joint="j" kv="3"/>'
            '<motor name="m" joint="j"/>'
        )
    )
    P = parameters(m, {"actuator:*/kv": linear()})
    assert P.names == ("actuator:p/kv", "actuator:v/kv")
    np.testing.assert_allclose(P.numbers(P.nominal()), [2, 3], **ROUNDING)
    new = P.model(m, P.vector({"actuator:*/kv": [4, 5]}))
    np.testing.assert_allclose(new.actuator_gainprm[:, 0], [9, 5, 1], **ROUNDING)
    np.testing.assert_allclose(
        new.actuator_biasprm[:, :3], [[0, -9, -4], [0, 0, -5], [0] * 3], **ROUNDING
    )


RATIO = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 1 0" armature="{armature}"/>
<geom name="g" size="{size}" density="{density}" pos=".3 0 0"/></body></worldbody>
<actuator><position name="a" joint="j" kp="{kp}" dampratio="{ratio}"/></actuator></mujoco>"""
RATIO_VALUES = {
    "actuator:a/dampratio": ("ratio", 1, 0.5),
    "joint:j/armature": ("armature", 0.1, 0.3),
    "geom:g/size[0]": ("size", 0.1, 0.2),
    "geom:g/density": ("density", 1000, 500),
    "actuator:a/kp": ("kp", 30, 50),
}
BEFORE = {name: old for name, old, _ in RATIO_VALUES.values()}


@pytest.mark.short("two")
@pytest.mark.parametrize(
    "names",
    [
        [*RATIO_VALUES],
        [*RATIO_VALUES][::-1],
        ["joint:j/armature", "actuator:a/kp"],
        ["geom:g/density", "actuator:a/dampratio"],
    ],
    ids=["first", "last", "of-the-file", "two"],
)
def test_damping_ratio_is_evaluated_after_the_mass_matrix(names):
    m = jaxsim.load_model(RATIO.format(**BEFORE))
    P = parameters(m, {name: linear() for name in names})
    theta = P.vector({name: RATIO_VALUES[name][2] for name in names})
    new = P.model(m, theta)
    values = BEFORE | {RATIO_VALUES[name][0]: RATIO_VALUES[name][2] for name in names}
    assert_compiled(new, RATIO.format(**values))

    if len(names) == 2:
        assert_gradient(lambda x: -P.model(m, x).actuator_biasprm[0, 2], theta)


def test_parameters_of_joints_leave_the_damping_of_servos():
    m = jaxsim.load_model(RATIO.format(**BEFORE))
    P = parameters(m, {"joint:j/armature": linear()})
    new = P.model(m, P.vector({"joint:j/armature": 0.3}))
    np.testing.assert_array_equal(new.actuator_biasprm, m.actuator_biasprm)
    # as does a gain whose servo has its own parameter of damping
    P = parameters(m, {"actuator:a/kp": linear(), "actuator:a/kv": linear(frozen=True)})
    new = P.model(m, P.vector({"actuator:a/kp": 50}))
    np.testing.assert_allclose(new.actuator_biasprm[0, 1], -50, **ROUNDING)
    np.testing.assert_allclose(new.actuator_biasprm[0, 2], m.actuator_biasprm[0, 2], **ROUNDING)


@pytest.mark.slow
def test_a_randomized_damping_ratio_follows_randomized_masses():
    m = jaxsim.load_model(RATIO.format(**BEFORE))
    ranges = {"actuator:a/dampratio": (0.5, 2), "body:b/mass": (0.5, 2), "actuator:a/kp": (0.5, 2)}
    models, _ = randomize(m, jax.random.split(jax.random.key(0), 3), ranges)
    kp, kv = -models.actuator_biasprm[:, 0, 1], -models.actuator_biasprm[:, 0, 2]
    ratio = kv / (2 * np.sqrt(kp / models.dof_invweight0[:, 0]))
    assert len(set(np.round(ratio, 3).tolist())) == 3
    assert 0.5 <= ratio.min() < ratio.max() <= 2
    # a ratio of the file is kept
    models, _ = randomize(m, jax.random.split(jax.random.key(0), 3), {"actuator:a/kp": (0.5, 2)})
    kp, kv = -models.actuator_biasprm[:, 0, 1], -models.actuator_biasprm[:, 0, 2]
    np.testing.assert_allclose(kv / (2 * np.sqrt(kp / m.dof_invweight0[0])), 1, **ROUNDING)


DATA_SHEETS = {
    "constants": (
        "motorconst='.05 .07' resistance='2' inductance='.1' saturation='0 3 40' "
        "thermal='2 0 7 .004 25 20'",
        (
            *("motorconst[0]", "motorconst[1]", "resistance", "inductance[0]", "saturation[1]"),
            *("saturation[2]", "thermal[0]", "thermal[2]", "thermal[3]", "thermal[5]"),
        ),
    ),
    "nominal": (
        "nominal='24 2 300' damping='.001' inductance='.1' saturation='2'",
        ("nominal[0]", "nominal[1]", "nominal[2]", "damping", "inductance[0]", "saturation[0]"),
    ),
    "weak": ("nominal='24 2 300' damping='.001' resistance='300'", ("nominal[0]", "nominal[2]")),
    "strong": (
        "nominal='24 2 300' damping='.001' resistance='3'",
        ("nominal[0]", "nominal[2]", "resistance", "damping"),
    ),
}


@pytest.mark.parametrize("sheet", DATA_SHEETS)
def test_constants_of_motors_have_exact_gradients(sheet):
    text, names = DATA_SHEETS[sheet]
    m = jaxsim.load_model(XML.format(f"<{DC} {text}/>"))
    P = parameters(m, {f"actuator:a/{name}": linear() for name in names})
    fields = (actuators.GAIN, actuators.DYN, "actuator_forcerange", "actuator_damping")

    def some(theta):
        new = P.model(m, theta)
        rows = [getattr(new, n)[0] for n in fields]
        return sum((jax.numpy.sin(1 + x) * (1 + k)).sum() for k, x in enumerate(rows))

    assert_gradient(some, P.nominal())


CLASSES = """<mujoco><default><dcmotor motorconst="{} .06" resistance="2" saturation="0 3"/>
<default class="c"><dcmotor inductance=".01"/></default></default>
<worldbody><body><joint name="j"/><geom size=".1" pos=".3 0 0"/></body></worldbody><actuator>
<dcmotor name="a" class="c" joint="j"/><motor joint="j"/><dcmotor class="c" joint="j"
resistance="{}"/></actuator></mujoco>"""


def test_attributes_of_motors_are_changed_where_the_file_gives_them():
    m = jaxsim.load_model(CLASSES.format(0.05, 3))
    P = parameters(m, {"actuator:a/motorconst[0]": linear()})
    np.testing.assert_allclose(P.numbers(P.nominal()), [0.05], **ROUNDING)
    new = P.model(m, P.vector({"actuator:a/motorconst[0]": 0.08}))
    expected = mujoco.MjModel.from_xml_string(CLASSES.format(0.08, 3))
    for field in (actuators.GAIN, actuators.DYN, "actuator_forcerange"):
        theirs = getattr(expected, field)
        np.testing.assert_allclose(getattr(new, field)[0], theirs[0], err_msg=field, **ROUNDING)
        np.testing.assert_array_equal(getattr(new, field)[1:], getattr(m, field)[1:])


def test_a_motor_that_was_fitted_can_be_fitted_again():
    text = "motorconst='.05 .07' resistance='2' inductance='.1' saturation='0 3'"
    m = jaxsim.load_model(XML.format(f"<{DC} {text}/>"))
    P = parameters(m, {"actuator:a/resistance": linear(), "actuator:a/motorconst[0]": linear()})
    once = P.model(m, P.vector({"actuator:a/resistance": 3, "actuator:a/motorconst[0]": 0.06}))
    P = parameters(
        once, {n: linear() for n in ("actuator:a/resistance", "actuator:a/motorconst[0]")}
    )
    np.testing.assert_allclose(P.numbers(P.nominal())[0], 3, **ROUNDING)
    same = P.model(once, P.nominal())
    twice = P.model(once, P.vector({"actuator:a/resistance": 4}))
    for field in (actuators.GAIN, actuators.DYN, "actuator_forcerange"):
        np.testing.assert_allclose(getattr(same, field), getattr(once, field), **ROUNDING)
    # the inductance of the file is still one in henry, the saturation one of the current
    tau, bound = twice.actuator_dynprm[0, 0], twice.actuator_forcerange[0, 1]
    np.testing.assert_allclose(tau, 0.1 / 4, **ROUNDING)
    np.testing.assert_allclose(bound, 3 * np.sqrt(0.06 * 0.07), **ROUNDING)


def test_parameters_of_several_models_are_one_vector():
    """The motor is in one of two models of a joint fit, of which the other comes first."""
    m = jaxsim.load_model(XML.format(f"<{DC} {KR}/>"))
    other = jaxsim.load_model(XML.format(""))
    own = parameters(m, {"actuator:a/resistance": linear(), "actuator:a/damping": linear()})
    merged = Parameters(other, own)
    assert merged.names == own.names
    np.testing.assert_array_equal(merged.nominal(), own.nominal())


def test_a_motor_of_mujoco_has_its_constants_as_parameters():
    text = XML.format(f"<{DC} nominal='24 2 300' inductance='.1' saturation='2'/>")
    m = jaxsim.put_model(mujoco.MjModel.from_xml_string(text))
    P = parameters(m, {"actuator:a/motorconst": linear(), "actuator:a/resistance": linear()})
    np.testing.assert_allclose(P.numbers(P.nominal()), [24 / 300, 24 / 2 * 24 / 300], **ROUNDING)
    new = P.model(m, P.vector({"actuator:a/resistance": 3}))
    np.testing.assert_allclose(new.actuator_gainprm[0, :2], [3, 24 / 300], **ROUNDING)
    with pytest.raises(ValueError, match="no constant of the motor follows from it"):
        parameters(m, {"actuator:a/nominal[0]": linear()})


NOT_REAL = sorted(
    {(row.tag, a.name) for row in SHORTCUTS for a in row.attrs.values() if a.type != "real"}
)
MINIMAL = {
    "muscle": "lengthrange='0 1'",
    "dcmotor": KR,
    "damper": "ctrlrange='0 1'",
    "intvelocity": "actrange='-1 1'",
}


@pytest.mark.parametrize("tag", sorted({tag for tag, _ in NOT_REAL} - {"orientation", "adhesion"}))
def test_every_attribute_is_a_parameter_or_tells_why_not(tag):
    m = jaxsim.load_model(XML.format(f"<{tag} {ON} {MINIMAL.get(tag, '')}/>"))
    (row,) = (row for row in SHORTCUTS if row.tag == tag)
    for attribute in row.attrs.values():
        key = f"actuator:a/{attribute.name}"
        try:
            parameters(m, {key: linear()})
            reason = ""
        except ValueError as error:
            reason = str(error)
        if reason:
            assert reason.startswith(f"{key}: "), reason
            assert re.search("write|choose one|limit it|use |identify ", reason), reason
        else:
            assert attribute.type == "real", key


TWICE = [
    ("actuator:a/kv", "actuator:a/dampratio"),
    ("actuator:a/dampratio", "actuator_biasprm"),
    ("actuator:c/area", "actuator:c/diameter"),
    ("actuator:d/resistance", "actuator_gainprm"),
    ("actuator:d/gear[0]", "actuator:*/gear[0]"),
]


@pytest.mark.filterwarnings("ignore:actuator_")
@pytest.mark.parametrize("pair", TWICE, ids=" ".join)
@pytest.mark.parametrize("order", [1, -1])
def test_two_parameters_of_one_number_are_refused(pair, order):
    m = jaxsim.load_model(
        XML.format(
            f"<position {ON} kp='3' kv='1'/><cylinder name='c' joint='j'/>"
            f"<dcmotor name='d' joint='j' {KR}/>"
        )
    )
    names = pair[::order]
    with pytest.raises(ValueError, match=f"^{re.escape(names[1])}: sets the same number as"):
        parameters(m, {name: linear() for name in names})
    if "gear" not in pair[0]:
        with pytest.raises(ValueError, match=f"^{re.escape(names[1])}: sets the same number as"):
            randomize(m, jax.random.split(jax.random.key(0), 2), dict.fromkeys(names, (0.5, 2)))


def assert_compiled(new, text):
    """The real fields of a model are those that MuJoCo compiles."""
    theirs = mujoco.MjModel.from_xml_string(text)
    for field, found in real(new).items():
        if found is not None and hasattr(theirs, field):
            expected = np.reshape(getattr(theirs, field), found.shape)
            np.testing.assert_allclose(found, expected, err_msg=field, **DYNAMICS)


def assert_gradient(function, theta):
    """The gradient of a function is that of central differences."""
    gradient, step = jax.jit(jax.grad(function))(theta), 1e-6
    function = jax.jit(function)
    for k, slope in enumerate(gradient):
        h = step * max(1, abs(float(theta[k])))
        ends = [function(theta.at[k].add(sign * h)) for sign in (1, -1)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), **ROUGH_DIFFERENCE)


BAD = {
    "actuator:a*/gain": r"no actuator is named 'a\*'; there are: p, d, g, i, s",
    "actuator:p/gian": "'gian' is no parameter of an actuator; did you mean 'gain'",
    "actuator:p/group": "'group' is an integer, which decides the program of the model; write it",
    "actuator:p/timeconst": "has no 'timeconst'; it has no filter; write timeconst in the model",
    "actuator:p/forcerange": "nothing is limited there, so that its range changes nothing",
    "actuator:p/ctrlrange": "the control is not limited; limit it in the model",
    "actuator:p/acc0": "actuator_acc0 follows from other numbers",
    "actuator:d/nominal[0]": "no constant of the motor follows from it, as other attributes take",
    "actuator:d/inductance[0]": "the motor has no current as an activation, which 'inductance'",
    "actuator:d/thermal[1]": "the motor has no temperature as an activation, which 'thermal' adds",
    "actuator:d/saturation[0]": "the torque has no bound; write saturation in the model",
    "actuator:d/controller[0]": "it has no controller; write input='pos' in the model",
    "actuator:d/lugre[1]": "it has no activation 'bristle', which a positive number in the model",
    "actuator:i/ki": "it has no activation 'integral', which a positive number in the model adds",
    "actuator:i/slewmax": "it has no activation 'slew', which a positive number in the model adds",
    "actuator:i/imax": "it has no activation 'integral', which a positive number in the model adds",
    "actuator:i/ffrange[0]": "it has no such input; write it in the model before it is loaded",
    "actuator:p/gain": "actuator 'p' has no 'gain'; it has 'kp' and 'kv'",
    "actuator:p/area": "actuator 'p' has no 'area'",
    "actuator:d/kp": "actuator 'd' has no 'kp'; it has 'motorconst' and 'resistance' and",
    "actuator:g/kp": "actuator 'g' has no 'kp'; its law is another; use a field such as",
    "actuator:s/range": r"an actuator has 2 numbers; choose one: 'actuator:s/range\[0\]'",
    "actuator:s/range[2]": "expected an index below 2, got 2",
    "actuator:*/ki": "actuator 'p' has no 'ki'",
}


@pytest.mark.parametrize("name", BAD)
def test_parameters_that_an_actuator_has_not_are_told(name):
    m = jaxsim.load_model(
        XML.format(
            '<position name="p" joint="j"/><dcmotor name="d" joint="j" motorconst=".1"'
            ' resistance="1"/><general name="g" joint="j" gaintype="user"/>'
            '<pid name="i" joint="j"/><muscle name="s" joint="j" lengthrange="0 1"/>'
        )
    )
    for function in (
        lambda: parameters(m, {name: linear()}),
        lambda: randomize(m, jax.random.split(jax.random.key(0), 2), {name: linear(1, 2)}),
    ):
        with pytest.raises(
            ValueError, match=f"^{name.replace('*', '.').split('[')[0]}.*{BAD[name]}"
        ):
            function()


OTHER_TARGETS = {
    "orientation": '<orientation name="a" joint="ball" kp="9" dampratio="{}"/>',
    "tendon": '<position name="a" tendon="t" kp="9" dampratio="{}" gear="3"/>',
    "site": '<position name="a" site="s" refsite="r" kp="9" dampratio="{}" gear="1 0 0 0 2 0"/>',
}
TREE = """<mujoco><worldbody><site name="r" pos="0 1 0"/><body><joint name="ball" type="ball"/>
<geom type="box" size=".1 .2 .3" pos=".1 0 0"/><body pos=".3 0 0"><joint name="j" axis="0 1 0"/>
<geom size=".1" pos=".3 0 0"/><site name="s" pos=".2 0 0"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="j" coef="2"/></fixed></tendon>
<actuator>{}</actuator></mujoco>"""


@pytest.mark.short("site")
@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_a_damping_ratio_is_that_of_the_outputs_of_any_transmission(target):
    text = TREE.format(OTHER_TARGETS[target])
    m = jaxsim.load_model(text.format(0.7))
    P = parameters(m, {"actuator:a/dampratio": linear()})
    np.testing.assert_allclose(P.numbers(P.nominal()), [0.7], **ROUNDING)
    assert_compiled(P.model(m, P.vector({"actuator:a/dampratio": 1.2})), text.format(1.2))
