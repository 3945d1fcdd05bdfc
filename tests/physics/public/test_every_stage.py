"""Every public function of the physics in single precision, in many worlds, and differentiated.

On one small model that has a bit of everything. That the numbers are right is compared with MuJoCo
elsewhere, stage by stage; here each function agrees with itself.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from public import NAMESPACES, public
from states import random_state, single, stack, world
from tolerance import FLOAT32, ROUGH_DIFFERENCE, SOLVER, STAGE

import jaxsim

XML = """
<mujoco><option integrator="implicitfast" tolerance="1e-15" iterations="100" ls_iterations="50"
  density="1.2" viscosity=".1" wind="1 0 0"><flag energy="enable"/></option>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
  <geom type="plane" size="2 2 1" contype="1" conaffinity="1"/><site name="post" pos="0 .3 1"/>
  <body name="hand" mocap="true" pos="0 -.5 .6"/>
  <body name="base" pos="0 0 .09" gravcomp=".2"><freejoint/>
    <geom size=".1" contype="1" conaffinity="1"/>
    <site name="sole" size=".12"/><camera name="eye" mode="trackcom" pos="1 1 1"/></body>
  <body name="arm" pos="0 -.5 .5">
    <joint name="turn" axis="0 1 .3" range="-30 -1" frictionloss=".1" damping=".2 .1"/>
    <geom type="capsule" size=".04 .1" pos=".1 0 0" euler="0 90 0"/>
    <body name="fist" pos=".3 0 0">
      <joint name="wrist" type="ball" stiffness="1" armature=".01"/>
      <geom type="ellipsoid" size=".08 .05 .06" pos=".05 0 0" fluidshape="ellipsoid"/>
      <site name="tip" pos=".1 0 .02" euler="20 0 10"/>
      <body pos=".1 0 0"><joint name="slide" type="slide" axis="1 0 1" springref=".1"
        stiffness="5"/><geom size=".03" pos=".05 0 0"/></body></body></body>
</worldbody>
<tendon>
  <fixed name="mix" armature=".1" damping=".3"><joint joint="turn" coef="1"/>
    <joint joint="slide" coef="-2"/></fixed>
  <spatial name="cord" stiffness="3"><site site="post"/><site site="tip"/></spatial>
</tendon>
<equality><connect body1="hand" body2="arm" anchor="0 0 0"/>
  <joint joint1="slide" joint2="turn" polycoef=".01 .2"/></equality>
<actuator>
  <general joint="turn" dyntype="filter" dynprm=".05" gainprm="3" actearly="true"/>
  <muscle joint="slide" lengthrange="-1 1"/><position tendon="cord" kp="2" kv=".3"/>
  <motor site="tip" gear="1 0 2 0 .1 0" refsite="post"/><motor joint="wrist" gear="1 2 3"/>
  <orientation name="aim" site="tip" refsite="post" kp="2" kv=".1"/>
  <pid joint="turn" kp="2" kv=".3" ki=".4" imax=".5" slewmax="3"/>
  <dcmotor joint="slide" motorconst=".5" resistance="2" inductance=".01" lugre="20 .3 .2 .4 .1"
    thermal="2 3 0 .004 25 30" input="pos" controller="3 1 .2 4 .7 9"/>
</actuator>
<sensor>
  <touch site="sole"/><accelerometer site="tip"/><force site="tip"/><gyro site="tip"/>
  <framequat objtype="camera" objname="eye"/><framelinvel objtype="site" objname="tip"/>
  <subtreeangmom body="arm"/><tendonvel tendon="cord"/><actuatorfrc actuator="2"/>
  <actuatorpos actuator="aim"/>
  <jointlimitfrc joint="turn"/><contact site="sole" data="found force pos"/>
</sensor></mujoco>
""".replace('actuator="2"', 'actuator="pull"').replace("<position t", '<position name="pull" t')

# for the functions that solve: a contact, a limit, dry friction and an equality
FEW = """
<mujoco><option integrator="implicitfast" tolerance="1e-15" iterations="100" ls_iterations="50"/>
<worldbody><geom type="plane" size="2 2 1"/>
  <body pos="0 0 .09"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
    <geom size=".1"/><site name="sole" size=".12"/></body>
  <body pos="0 -1 .5"><joint name="turn" axis="0 1 .3" range="-30 -1" frictionloss=".1"/>
    <geom size=".04" pos=".1 0 0" contype="0"/>
    <body pos=".3 0 0"><joint name="slide" type="slide"/>
    <geom size=".04" contype="0"/></body></body></worldbody>
<equality><joint joint1="slide" joint2="turn" polycoef=".01 .2"/></equality>
<actuator><motor joint="turn"/></actuator><sensor><touch site="sole"/></sensor></mujoco>
"""

# a function of the public name, applied to a world
STAGES = (
    "kinematics com_pos camlight tendon crb collision transmission com_vel passive fwd_actuation "
    "subtree_vel "
    "energy_pos energy_vel sensor_pos xfrc_accumulate rne full_m"
).split()
SOLVED = "step forward inverse constraint_rows contact_forces".split()
CALLS = {name: public(name) for name in STAGES + SOLVED} | {
    "rne (with acceleration)": partial(jaxsim.stages.rne, flg_acc=True),
    "contact_force": lambda m, d: jaxsim.support.contact_force(m, d, 0),
    "mul_m": lambda m, d: jaxsim.support.mul_m(m, d, d.qvel),
    "solve_m": lambda m, d: jaxsim.support.solve_m(m, d, d.qfrc_applied),
    "jac": lambda m, d: jaxsim.support.jac(m, d, d.xfrc_applied[1, :3], 4),
    "jac_body": lambda m, d: jaxsim.support.jac_body(m, d, 3),
    "jac_body_com": lambda m, d: jaxsim.support.jac_body_com(m, d, 4),
    "jac_geom": lambda m, d: jaxsim.support.jac_geom(m, d, 3),
    "jac_site": lambda m, d: jaxsim.support.jac_site(m, d, 2),
    "geom_distance": lambda m, d: jaxsim.support.geom_distance(m, d, 3, 1, 2.0),
    "integrate_pos": lambda m, d: jaxsim.support.integrate_pos(m, d.qpos, d.qvel, 0.3),
    "differentiate_pos": lambda m, d: jaxsim.support.differentiate_pos(m, 0.3, d.qpos, m.qpos0),
    "local_to_global normalize_quat": lambda m, d: (
        jaxsim.support.local_to_global(m, d, d.xfrc_applied[1, :3], d.mocap_quat[0], 3),
        jaxsim.support.normalize_quat(m, d.qpos),
    ),
}
# in many worlds and with single precision's types where their values are tested,
# query/test_jacobian.py, test_mass_matrix.py and test_constraint_update.py; of these jac_dot, the
# factor of M and the cost of constraints have their derivatives against differences there, the
# others are products of what has. And what is made of the stages above, in many worlds in
# pipeline/test_standalone.py; the parts of a step in test_split_step.py; flexes in
# flex/test_flexes.py
BESIDE = set(
    "step1 step2 make_m compare_fwd_inv inv_position inv_velocity inv_constraint fwd_constraint "
    "flex add_m angmom_mat apply_ft factor_m jac_dot jac_point_axis jac_subtree_com mul_jac_t_vec "
    "constraint_update project_constraint mul_jac_vec mul_m2 solve_m2 fwd_position "
    "make_constraint fwd_velocity fwd_acceleration solve sensor_vel sensor_acc "
    "rne_postconstraint tendon_bias euler implicit rungekutta4 fwd_kinematics island "
    "check_pos check_vel check_acc".split()
)
WORLDS = 6  # more than count as few, so that the code of many worlds runs
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
jit = partial(jax.jit, compiler_options=COMPILER)
# a whole step is large to compile; integrate/ and test_every_output.py have the same witnesses
WHOLE = ("step", "forward")
each = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in WHOLE else n for n in CALLS]
)


def apart_from_steps(names):
    """Mark the stages of a step as slow: whole steps in many worlds, and their derivatives, are
    compared in integrate/, test_every_output.py and test_gradients.py."""
    slow = {*STAGES, *SOLVED, "rne (with acceleration)", "geom_distance", "solve_m", "jac"}
    return [pytest.param(n, marks=pytest.mark.slow) if n in slow else n for n in names]


# forms of another function whose derivative is taken; those that solve have theirs taken in
# constraint/test_derivatives.py, test_step.py, test_gradients.py and, of distances,
# query/test_geom_distance.py
WITHOUT = [
    *SOLVED,
    *"full_m mul_m jac_body jac_body_com jac_geom jac_site rne geom_distance".split(),
]


def test_no_public_function_is_left_out():
    public = {
        name
        for space in NAMESPACES
        for name in space.__all__
        if hasattr(getattr(space, name), "carries") and hasattr(getattr(space, name), "__wrapped__")
    }
    called = {name for names in CALLS for name in names.partition(" (")[0].split(" ")}
    assert called | BESIDE == public | {"rne", "geom_distance"}
    assert not called & BESIDE


@cache
def start(xml: str):
    """The model, and worlds with results of their own for stages that read those of others."""
    mj = mujoco.MjModel.from_xml_string(xml)
    states = [random_state(mj, seed, spread=0.02, speed=0.3) for seed in range(1, WORLDS + 1)]
    assert states[0].ncon == states[0].nl == 1
    return jaxsim.put_model(mj), [jaxsim.put_data(mj, s, keep="all") for s in states]


def given(name: str):
    """The model and the worlds for a function."""
    return start(FEW if name in SOLVED else XML)


def reals(tree) -> list:
    """Return the real numbers of a tree; only existing contacts, as other slots are unspecified."""
    if isinstance(tree, jaxsim.Data) and tree.ncon is not None:

        def there_are(a):
            place = jnp.arange(len(a), dtype=jnp.int32).reshape(-1, *(1,) * (a.ndim - 1))
            return jnp.where(place < tree.ncon, a, jnp.zeros_like(a))

        tree = tree.replace(contact=jax.tree.map(there_are, tree.contact))
        if (log := tree.solver) is not None:  # where nothing is gained the slope is rounding
            slope = jnp.where(log.improvement > 1e-12, log.lineslope, jnp.zeros_like(log.lineslope))
            tree = tree.replace(solver=log.replace(lineslope=slope))
    return [a for a in jax.tree.leaves(tree) if jnp.issubdtype(a.dtype, jnp.floating)]


def close(found, expected, tolerance, more=None) -> None:
    """All results equal, relative to the largest number in each of them (or in those of `more`)."""
    for a, b, c in zip(found, expected, more or expected, strict=True):
        scale = 1 + max(np.abs(x).max(initial=0) for x in (b, c))
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance["rtol"] * scale)


def directions(tree, rng):
    """Random numbers where a tree has real ones."""
    return [rng.normal(size=a.shape) for a in reals(tree)]


@cache
def moved(name: str):
    """All inputs, moved by h along fixed random directions; zeros of a model stay zeros."""
    m, (d, *_) = given(name)
    rng = np.random.default_rng(0)
    by_m = [np.abs(a) * u for a, u in zip(reals(m), directions(m, rng), strict=True)]
    by_d = directions(d, rng)

    def change(tree, by, h):
        rest = iter(by)
        real = lambda a: jnp.issubdtype(a.dtype, jnp.floating)  # noqa: E731
        return jax.tree.map(lambda a: a + h * next(rest) if real(a) else a, tree)

    return lambda m, d, h: (change(m, by_m, h), change(d, by_d, h))


@cache
def moved_run(name: str):
    """A program of `(m, d, h)`: all real results of one world when all inputs are moved by h, and
    the real inputs."""
    call, change = CALLS[name], moved(name)

    @jit
    def there(m, d, h):
        m, d = change(m, d, h)
        return reals(call(m, d)), reals(d)

    return there


@cache
def computed(name: str) -> list[bool]:
    """Return which real results the function computes; others it passes through."""
    m, (d, *_) = given(name)
    call = CALLS[name]
    if not isinstance(jax.eval_shape(call, m, d), jaxsim.Data):
        return [True] * len(jax.tree.leaves(jax.eval_shape(lambda m, d: reals(call(m, d)), m, d)))
    # at inputs that do not belong together whatever is computed becomes another number
    pairs = zip(*moved_run(name)(m, d, 1e-3), strict=True)
    different = [not np.array_equal(a, b) for a, b in pairs]
    assert any(different)
    return different


@cache
def results(name: str):
    """`(m, d)` -> what the function computes, all real numbers but those it passes through."""
    call, chosen = CALLS[name], computed(name)
    return lambda m, d: [a for a, c in zip(reals(call(m, d)), chosen, strict=True) if c]


def alone(name: str, m, d, h: float) -> list:
    """Compute the function of one world with all inputs moved by h."""
    found, _ = moved_run(name)(m, d, h)
    return [a for a, c in zip(found, computed(name), strict=True) if c]


@pytest.mark.parametrize("name", apart_from_steps(n for n in CALLS if n not in WITHOUT))
def test_derivatives(name):
    """Forward mode against central differences, reverse mode against forward mode."""
    m, (d, *_) = given(name)
    call, change, h = results(name), moved(name), 1e-6
    here, high, low = (alone(name, m, d, by) for by in (0.0, h, -h))
    weights = directions(here, np.random.default_rng(1))

    @jit
    def both(m, d, h):
        def at(h):
            return call(*change(m, d, h))

        forwards = jax.jvp(at, (h,), (jnp.ones_like(h),))[1]
        return forwards, jax.vjp(at, h)[1](weights)[0]

    forwards, backwards = both(m, d, jnp.zeros(()))
    central = [(a - b) / (2 * h) for a, b in zip(high, low, strict=True)]
    close(forwards, central, ROUGH_DIFFERENCE, more=here)
    terms = np.concatenate([np.ravel(w * t) for w, t in zip(weights, forwards, strict=True)])
    assert abs(terms).sum() > 0
    np.testing.assert_allclose(backwards, terms.sum(), rtol=0, atol=1e-10 * abs(terms).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", apart_from_steps(CALLS))
def test_many_worlds_are_a_loop_over_worlds(name):
    m, worlds = given(name)
    together = jit(jax.vmap(results(name), (None, 0)))(m, stack(worlds))
    for k, d in enumerate(worlds):
        one = alone(name, m, d, 0.0)
        close(world(together, k), one, SOLVER if name in SOLVED else STAGE)


@pytest.mark.short("inverse", "kinematics", "passive", "constraint_rows")
@each
def test_single_precision(name):
    """All that was double is single, and close to it."""
    m, (d, *_) = given(name)
    found = jit(results(name))(single(m), single(d))
    assert {a.dtype for a in found} == {jnp.dtype("float32")}
    close(found, alone(name, m, d, 0.0), FLOAT32)
