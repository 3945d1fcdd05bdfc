"""Inertias from sizes, masses and densities of geoms are those of a recompiled model."""

import re

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING

import jaxsim

POSE = 'pos=".1 .05 .02" euler="10 20 30"'
KINDS = {
    "sphere": ".1",
    "capsule": ".1 .2",
    "ellipsoid": ".1 .2 .3",
    "cylinder": ".1 .2",
    "box": ".1 .2 .3",
}
GEOMS = [
    f'<geom type="{kind}" size="{size}" {POSE} shellinertia="{shell}"/>'
    for kind, size in KINDS.items()
    for shell in ("false", "true")
]
MIXED = """<geom type="box" size=".1 .2 .3" pos=".1 .05 .02" euler="10 20 30" density="500"/>
  <geom type="capsule" size=".1 .2" pos="-.2 0 .1" mass="2"/><geom size=".05" mass="0"/>
  <geom type="ellipsoid" size=".1 .2 .3" pos="0 .3 0" group="3"/>
  <geom type="mesh" mesh="a" pos="0 0 .4"/>"""
XML = f"""<mujoco><compiler inertiagrouprange="0 2" boundmass=".5"/>
<asset><mesh name="a" builtin="sphere" params="1" scale=".1 .2 .1"/></asset><worldbody>
{"".join(f'<body pos="{k} 0 0"><freejoint/>{g}</body>' for k, g in enumerate(GEOMS))}
<body pos="0 3 0"><joint axis="1 2 3"/>{MIXED}
  <body pos="0 1 0"><joint axis="0 1 0"/><inertial pos=".1 0 0" mass="3" diaginertia="1 1 1"/>
    <geom size=".1"/></body></body>
<body pos="0 5 0"><joint type="slide"/><geom size=".01"/></body>
</worldbody></mujoco>"""
FIELDS = "body_mass body_ipos dof_M0 body_invweight0 dof_invweight0 body_subtreemass".split()


def grown(xml: str, factor: float) -> str:
    """The text with all sizes of geoms times a factor."""

    def sizes(found: re.Match) -> str:
        return 'size="' + " ".join(str(factor * float(x)) for x in found[1].split()) + '"'

    return re.sub(r'(?<!mesh )size="([^"]*)"', sizes, xml)


def tensors(m) -> np.ndarray:
    """Inertia tensors of bodies: their axes may be chosen in several ways."""
    out = []
    for quat, moments in zip(np.asarray(m.body_iquat), np.asarray(m.body_inertia), strict=True):
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, np.float64(quat))
        R = R.reshape(3, 3)
        out.append(R @ np.diag(moments) @ R.T)
    return np.array(out)


def same(got, mj: mujoco.MjModel) -> None:
    np.testing.assert_allclose(tensors(got), tensors(mj), rtol=1e-6, atol=1e-9)
    for field in FIELDS:
        want = getattr(mj, field)
        np.testing.assert_allclose(getattr(got, field), want, rtol=1e-6, atol=1e-9, err_msg=field)


@pytest.fixture(scope="module")
def model():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def recomputed(model):
    return jax.jit(
        lambda v, **a: jaxsim.set_const(jaxsim.support.set_inertia(model.replace(**v), **a))
    )


def test_without_a_change_it_is_the_compilers(model, recomputed):
    same(recomputed({}), mujoco.MjModel.from_xml_string(XML))


def test_sizes_are_those_of_a_recompiled_model(model, recomputed):
    mj = mujoco.MjModel.from_xml_string(grown(XML, 1.3))
    size = np.where((model.geom_type == mujoco.mjtGeom.mjGEOM_MESH)[:, None], 1, 1.3)
    same(recomputed({"geom_size": model.geom_size * size}), mj)


def test_masses_and_densities_are_those_of_a_changed_spec(model, recomputed):
    spec = mujoco.MjSpec.from_string(XML)
    for geom in spec.geoms:
        geom.density = 700
    same(recomputed({}, density=jnp.asarray(700.0)), spec.compile())
    mass = np.linspace(1, 2, model.ngeom) * (np.asarray(_masses(model)) > 0)
    for geom, value in zip(spec.geoms, mass, strict=True):
        geom.mass = value
    same(recomputed({}, mass=jnp.asarray(mass)), spec.compile())


def _masses(m) -> np.ndarray:
    """1 for geoms that have mass."""
    weighs = {row[0] for of in m.body_matter if of for row in of[2]}
    return np.array([i in weighs or m.geom_group[i] == 3 for i in range(m.ngeom)], float)


@pytest.mark.slow
def test_worlds_are_the_loop(model):
    factor = jnp.array([0.8, 1.0, 1.4])

    def grown(f):
        return jaxsim.support.set_inertia(model.replace(geom_size=f * model.geom_size))

    many, one = jax.jit(jax.vmap(grown))(factor), jax.jit(grown)
    for k, f in enumerate(factor):
        for field in ("body_mass", "body_ipos", "body_inertia"):
            np.testing.assert_allclose(
                getattr(many, field)[k], getattr(one(f), field), err_msg=field, **DYNAMICS
            )


def test_gradient_is_the_difference_quotient(model):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((model.nbody, 3, 3))
    along = jnp.asarray(rng.standard_normal(model.geom_size.shape)) * model.geom_size

    def scalar(h):
        got = jaxsim.support.set_inertia(model.replace(geom_size=model.geom_size + h * along))
        R = jax.vmap(jaxsim.functions.quat_to_mat)(got.body_iquat)
        tensor = (R * got.body_inertia[:, None, :]) @ R.swapaxes(1, 2)
        return jnp.sum(weights * tensor) + jnp.sum(got.body_ipos) + jnp.sum(jnp.sqrt(got.body_mass))

    run = jax.jit(jax.value_and_grad(scalar))
    h = 1e-6
    quotient = (run(h)[0] - run(-h)[0]) / (2 * h)
    np.testing.assert_allclose(run(0.0)[1], quotient, rtol=1e-6, atol=DIFFERENCE["atol"])


def test_what_it_refuses(model):
    with pytest.raises(ValueError, match="not both"):
        jaxsim.support.set_inertia(model, mass=jnp.ones(model.ngeom), density=1.0)
    with pytest.raises(ValueError, match=r"mass: expected shape \(17,\)"):
        jaxsim.support.set_inertia(model, mass=1.0)
    put = jaxsim.put_model(mujoco.MjModel.from_xml_string(XML))
    with pytest.raises(ValueError, match="does not record the geoms"):
        jaxsim.support.set_inertia(put)


@pytest.mark.slow
def test_other_bodies_stay(model):
    got = jaxsim.support.set_inertia(model, density=2000.0)
    kept = [i for i, of in enumerate(model.body_matter) if not of]
    assert len(kept) == 2
    for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
        np.testing.assert_allclose(
            getattr(got, field)[np.array(kept)], getattr(model, field)[np.array(kept)], **ROUNDING
        )
