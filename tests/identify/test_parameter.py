"""Parameters by name: what they set, their maps and bounds, what is refused."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS, ROUNDING

import jaxsim
from jaxsim.identify import Sequence, inertia, linear, log, parameters, pseudo_inertia, scale
from jaxsim.identify.parameter import INDEPENDENT
from jaxsim.identify.residual import Problem

ARM = """<mujoco><option timestep="0.005"/><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" damping="0.2" armature="0.01"/>
    <geom name="a" type="box" size="0.05 0.04 0.2" pos="0 0 -0.2" mass="1"/>
    <body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0" damping="0.1"/>
      <geom name="b" type="box" size="0.03 0.02 0.2" pos="0 0 -0.2" mass="0.5"/>
      <site name="tip" pos="0 0 -0.4"/>
    </body>
  </body></worldbody>
  <actuator><position name="drive" joint="shoulder" kp="10" kv="1"/>
    <motor name="motor" joint="elbow" gear="2"/></actuator>
  <sensor><gyro name="gyro" site="tip"/><jointpos name="q" joint="elbow"/></sensor>
</mujoco>"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(ARM)


@pytest.mark.slow
def test_each_name_sets_its_numbers(m):
    P = parameters(
        m,
        {
            "body:lower/mass": scale(0.2, 5),
            "joint:*/damping": log(0.001, 10),
            "joint:elbow/armature": linear(nominal=0.02),
            "geom:b/friction[0]": log(),
            "actuator:drive/kp": scale(),
            "actuator:drive/kv": scale(),
            "opt.gravity[2]": linear(sd=0.1),
            "site:tip/pos": linear(),
            "sensor:gyro/offset": linear(),
        },
    )
    assert P.names == (
        "body:lower/mass",
        "joint:shoulder/damping",
        "joint:elbow/damping",
        "joint:elbow/armature",
        "geom:b/friction[0]",
        "actuator:drive/kp",
        "actuator:drive/kv",
        "opt.gravity[2]",
        *(f"site:tip/pos[{i}]" for i in range(3)),
        "sensor:gyro/offset",
    )
    same = P.model(m, P.nominal()).replace(dof_armature=m.dof_armature)
    for name in ("body_mass", "dof_damping", "geom_friction", "actuator_biasprm", "site_pos"):
        np.testing.assert_allclose(getattr(same, name), getattr(m, name), **ROUNDING)
    new = P.model(
        m,
        P.vector(
            {
                "body:lower/mass": 0.9,
                "joint:*/damping": [0.5, 0.7],
                "actuator:drive/kp": 12,
                "actuator:drive/kv": 2,
                "opt.gravity[2]": -9.7,
                "site:tip/pos": [0.1, 0.2, -0.3],
            }
        ),
    )
    np.testing.assert_allclose(new.body_mass, [0, 1, 0.9], **ROUNDING)
    np.testing.assert_allclose(new.dof_damping, [0.5, 0.7], **ROUNDING)
    np.testing.assert_allclose(new.dof_armature, [0.01, 0.02], **ROUNDING)
    np.testing.assert_allclose(new.actuator_gainprm[0, 0], 12, **ROUNDING)
    np.testing.assert_allclose(new.actuator_biasprm[0, :3], [0, -12, -2], **ROUNDING)
    np.testing.assert_allclose(new.opt.gravity, [0, 0, -9.7], **ROUNDING)
    np.testing.assert_allclose(new.site_pos[0], [0.1, 0.2, -0.3], **ROUNDING)


def test_derived_constants_are_those_of_mujoco(m):
    """After a mass and an inertia: `mj_setConst` of the same model."""
    P = parameters(m, {"body:lower/inertia": pseudo_inertia(), "body:upper/mass": scale(0.2, 5)})
    theta = jnp.asarray(np.random.default_rng(0).normal(size=11) * 0.3)
    ours = jax.jit(P.model)(m, theta)
    mj = mujoco.MjModel.from_xml_string(ARM)
    for name in ("body_mass", "body_ipos", "body_iquat", "body_inertia"):
        getattr(mj, name)[:] = np.asarray(getattr(ours, name))
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    for name in ("body_subtreemass", "dof_M0", "dof_invweight0", "body_invweight0"):
        np.testing.assert_allclose(getattr(ours, name), getattr(mj, name), **DYNAMICS)
    # the reported values are those of the body
    values = P.by_name(theta)
    np.testing.assert_allclose(values["body:lower/inertia.mass"], mj.body_mass[2], **ROUNDING)
    np.testing.assert_allclose(values["body:lower/inertia.com_y"], mj.body_ipos[2, 1], **ROUNDING)


def test_an_inertia_comes_back_through_its_coordinates(m):
    P = parameters(m, {"body:lower/inertia": pseudo_inertia(sd=0.2)})
    fields = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
    body = [np.asarray(getattr(m, n))[1] for n in fields]
    theta = P.vector({"body:lower/inertia": inertia.from_body(*body)})
    np.testing.assert_allclose(
        inertia.physical_values(P["body:lower/inertia"].coordinates(theta)),
        inertia.physical_values(jnp.asarray(inertia.from_body(*body))),
        **ROUNDING,
    )
    nominal = inertia.from_body(*(np.asarray(getattr(m, n))[2] for n in fields))
    gyration = np.exp(nominal[1:4].mean())
    away = (inertia.from_body(*body) - nominal) / np.where(np.arange(10) < 4, 1, gyration)
    np.testing.assert_allclose(P.prior(theta), away / 0.2, **ROUNDING)


def test_fields_without_derived_constants_have_none(m):
    """`set_const` does not read the fields for which `Parameters.model` does not call it."""
    fields = [n for n in jaxsim.Model.fields if n.endswith(INDEPENDENT) and getattr(m, n).size]
    assert len(fields) > 15
    free = jaxsim.load_model(ARM, free="all")
    set_const = jax.jit(jaxsim.set_const)
    base = set_const(free)
    changed = free.replace(**{n: getattr(free, n) + 0.1 for n in fields if "_fluid" not in n})
    after = set_const(changed)
    for name in jaxsim.Model.fields:
        if name not in fields and hasattr(getattr(base, name), "shape"):
            np.testing.assert_array_equal(getattr(after, name), getattr(base, name), err_msg=name)


FORMS = (linear(-1, 4), linear(nominal=0.3), log(0.1, 5), log(), scale(0.5, 2), scale())


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_value_comes_back_and_stays_within_bounds(m, form):
    P = parameters(m, {"body:lower/mass": form})
    theta = P.vector({"body:lower/mass": 0.7})
    np.testing.assert_allclose(P.numbers(theta), [0.7], **ROUNDING)
    if form.low is not None:
        ends = np.array([form.low, form.high], float) * (0.5 if form.kind == "scale" else 1)
        far = [float(P.numbers(jnp.full(1, u))[0]) for u in (-30.0, 30.0)]
        np.testing.assert_allclose(far, ends, rtol=1e-10)
        with pytest.raises(ValueError, match="not within the bounds"):
            P.vector({"body:lower/mass": 9.0})
        starts = np.asarray(jax.vmap(P.numbers)(P.draw(jax.random.key(0), 50)))
        assert (starts >= ends[0]).all()
        assert (starts <= ends[1]).all()
        assert np.std(starts) > 0.1


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_change_of_a_number_is_one_of_its_unknown(m, form):
    """A small one is met, one beyond a bound goes most of the way."""
    P = parameters(m, {"joint:*/damping": form})
    theta = P.draw(jax.random.key(0), 2)[1]
    base = P["joint:*/damping"].map.base
    slopes = jnp.diag(jax.jacfwd(P.numbers)(theta)) / base
    np.testing.assert_allclose(P.slope(theta), slopes, **ROUNDING)
    g = P.numbers(theta) / base
    there, change = P.apply_change(theta, 1e-3 * jnp.abs(g))
    np.testing.assert_allclose(change, 1e-3 * np.abs(g), **ROUNDING)
    np.testing.assert_allclose(P.numbers(there) / base, g + change, rtol=1e-9)
    far, change = P.apply_change(theta, jnp.full(2, -1e3))
    np.testing.assert_allclose(P.numbers(far) / base, g + change, rtol=1e-6)
    if form.low is not None:
        np.testing.assert_allclose(change, 0.9 * (form.low - g), **ROUNDING)


def test_one_unknown_for_several_objects(m):
    P = parameters(m, {"joint:*/damping": scale(share=True), "body:*er/mass": log(share=True)})
    assert P.size == 2
    new = P.model(m, P.vector({"joint:*/damping": 3.0, "body:*er/mass": 0.8}))
    np.testing.assert_allclose(new.dof_damping, [0.6, 0.3], **ROUNDING)
    np.testing.assert_allclose(new.body_mass, [0, 0.8, 0.8], **ROUNDING)


def test_what_is_frozen_has_no_unknown_but_an_effect(m):
    P = parameters(m, {"joint:*/damping": log(nominal=0.4, frozen=True), "body:lower/mass": log()})
    assert P.names == ("body:lower/mass",)
    np.testing.assert_allclose(P.model(m, P.nominal()).dof_damping, [0.4, 0.4], **ROUNDING)


def test_priors_are_rows_of_their_own_scale(m):
    forms = {
        "body:lower/mass": scale(0.1, 10, mean=2, sd=0.1),
        "opt.gravity[2]": linear(sd=0.05),
        "joint:elbow/damping": log(mean=0.2, sd=0.5),
    }
    P = parameters(m, forms)
    values = {"body:lower/mass": 0.9, "opt.gravity[2]": -9.7, "joint:elbow/damping": 0.3}
    rows = P.prior(P.vector(values))
    expected = [np.log(0.9 / 1.0) / 0.1, 0.11 / 0.05, np.log(0.3 / 0.2) / 0.5]
    np.testing.assert_allclose(rows, expected, **ROUNDING)


def test_a_rotation_turns_in_the_own_frame(m):
    P = parameters(m, {"site:tip/rotation": linear()})
    new = P.model(m, P.vector({"site:tip/rotation": [0.1, -0.2, 0.3]}))
    expected = np.array([1.0, 0, 0, 0])
    mujoco.mju_quatIntegrate(expected, np.array([0.1, -0.2, 0.3]), 1.0)
    np.testing.assert_allclose(new.site_quat[0], expected, **ROUNDING)


def test_the_derivative_of_a_model_is_that_of_differences(m):
    P = parameters(m, {"body:lower/inertia": pseudo_inertia(), "joint:elbow/damping": log(0.01, 1)})
    theta = P.nominal() + 0.1

    @jax.jit
    def f(theta):
        new = P.model(m, theta)
        return jnp.concatenate([new.dof_M0, new.dof_invweight0, new.dof_damping])

    slopes = jax.jit(jax.jacfwd(f))(theta)
    difference = [(f(theta + e) - f(theta - e)) / 2e-6 for e in 1e-6 * np.eye(11)]
    np.testing.assert_allclose(slopes, np.stack(difference, -1), rtol=1e-6, atol=1e-7)


REFUSED = {
    "joint:elbow/springyield": (log(0.1, 1), "a spring that yields; write it in the model"),
    "actuator:motor/delay": (linear(), "ctrl:name/delay"),
    "body:lowr/mass": (scale(), "did you mean 'lower'"),
    "body:lower/mas": (scale(), "did you mean 'mass'"),
    "bodi:lower/mass": (scale(), "did you mean 'body'"),
    "dof_dampin": (scale(), "did you mean 'dof_damping'"),
    "geom:a/friction[7]": (scale(), "index below 3"),
    "body:lower/quat": (linear(), "use '/rotation'"),
    "body:lower/pos": (scale(), "the model has 0 there"),
    "joint:elbow/armature": (log(), "the first guess is 0"),
    "body:upper/mass": (linear(2, 3), r"not within \[2, 3\]"),
    "sensor:gyro/size": (linear(), "no field 'size'"),
    "ctrl:motor/dela": (linear(), "did you mean 'delay'"),
    "body:world/inertia": (pseudo_inertia(), "positive mass"),
    "body:*/inertia": (pseudo_inertia(), "3 have such a name"),
    "opt.gravity": (3.0, "expected linear, log"),
    "/": (linear(), "expected 'kind:name/field'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused(m, name):
    form, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        parameters(m, {name: form})


def test_a_number_is_set_once(m):
    with pytest.raises(ValueError, match="sets the same number as 'body:lower/mass'"):
        parameters(m, {"body:lower/mass": scale(), "body:lower/inertia": pseudo_inertia()})


@pytest.mark.parametrize("name", ["joint:elbow/frictionloss", "dof_frictionloss", "opt.density"])
def test_fields_that_were_compiled_out_are_live_in_the_models_of_a_fit(m, name):
    field = name.replace("joint:elbow/", "dof_")
    P = parameters(m, {name: log(0.01, 10)})
    assert P.fields == (field,)
    free = jaxsim.load_model(ARM, free=(field,))
    assert m.structure != free.structure
    assert P.model(m, P.nominal()).structure == free.structure
    assert jax.eval_shape(P.model, m, P.nominal()).structure == free.structure
    data = Sequence({"qpos:elbow": np.zeros(3)}, sigma=1.0)
    assert Problem(m, P, data).given.structure == free.structure


def test_freed_numbers_can_be_searched():
    free = jaxsim.load_model(ARM, free=("dof_frictionloss",))
    P = parameters(free, {"dof_frictionloss": log(0.01, 10)})
    assert P.names == ("dof_frictionloss[shoulder]", "dof_frictionloss[elbow]")
    start = P.model(free, P.nominal()).dof_frictionloss
    np.testing.assert_allclose(start, np.sqrt(0.1) * np.ones(2), **ROUNDING)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear(1), "both bounds or none"),
        (lambda: linear(2, 1), "low < high"),
        (lambda: log(0, 1), "bounds above 0"),
        (lambda: log(sd=0), "a number above 0"),
    ],
)
def test_forms_that_mean_nothing(make, message):
    with pytest.raises(ValueError, match=message):
        make()
