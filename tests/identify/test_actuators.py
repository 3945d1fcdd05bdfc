"""Parameters of actuators by name: setting one is loading the MJCF in which it is written."""

import jax
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.envs import randomize
from jaxsim.identify import linear, parameters
from jaxsim.identify.targets import actuators

XML = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 1 0"/>
<geom size=".1" pos=".3 0 0"/></body></worldbody><actuator>{}</actuator></mujoco>"""
ON = 'name="a" joint="j"'
# the element, the attribute as it is written, and with another number, the name, the number
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
    for field, number in theirs.items():
        if number is not None:
            np.testing.assert_allclose(found[field], number, err_msg=field, **ROUNDING)
    # the law of the model that was found is that of the file
    assert actuators.parameters_of(P.model(m, P.nominal()), 0) == actuators.parameters_of(m, 0)

    # the same by randomization
    keys = jax.random.split(jax.random.key(0), 2)
    models, _ = randomize(m, keys, {key: linear(value, value + 1e-13)}, derive=False)
    for field in (actuators.GAIN, actuators.BIAS, actuators.DYN):
        drawn = np.asarray(getattr(models, field)).reshape(-1, 10)[-1:]
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


BAD = {
    "actuator:p/gain": "actuator 'p' has no 'gain'; it has 'kp' and 'kv'",
    "actuator:p/area": "actuator 'p' has no 'area'",
    "actuator:d/kp": "actuator 'd' has no 'kp'; its law is another; use a field such as",
    "actuator:s/range": r"an actuator has 2 numbers; choose one: 'actuator:s/range\[0\]'",
    "actuator:s/range[2]": "expected an index below 2, got 2",
    "actuator:*/ki": "actuator 'p' has no 'ki'",
}


@pytest.mark.parametrize("name", BAD)
def test_parameters_that_an_actuator_has_not_are_told(name):
    m = jaxsim.load_model(
        XML.format(
            '<position name="p" joint="j"/><dcmotor name="d" joint="j" motorconst=".1"'
            ' resistance="1"/><muscle name="s" joint="j" lengthrange="0 1"/>'
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
