"""Numbers that are zero in the file and set later count as if they had been in the file."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.compile.write.unwritable_fields import UNWRITTEN
from jaxsim.io.bridge import put_model
from jaxsim.model.switch.switches import FIXED_FIELDS, SWITCHES

# Everything that can be zero is.
PLAIN = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1" condim="4"/>
    <body name="base" pos="0 0 .29"><freejoint/><geom name="foot" size=".3"/>
      <body name="arm" pos=".4 0 .1">
        <joint name="h" axis="0 1 0" range="-20 20" pos="0 .1 0"/>
        <geom name="upper" type="capsule" size=".05 .1" pos=".1 0 0"/>
        <site name="s0" pos=".2 0 .1"/>
        <body name="hand" pos=".3 0 0"><joint name="b" type="ball"/>
          <geom type="box" size=".05 .04 .03" pos=".05 0 0"/><site name="s1" pos=".1 0 0"/></body>
      </body>
    </body>
    <body name="cart" pos="2 0 .5"><joint name="x" type="slide" axis="1 0 0" range="-.5 .01"/>
      <geom size=".1"/><site name="s2"/></body>
  </worldbody>
  <contact><pair geom1="foot" geom2="floor" condim="4"/></contact>
  <equality><joint joint1="h" joint2="x" active="false"/></equality>
  <tendon>
    <fixed name="f" range="-.2 .02"><joint joint="h" coef="1"/><joint joint="x" coef="1"/></fixed>
    <spatial name="s"><site site="s0"/><site site="s2"/></spatial>
  </tendon>
  <actuator><motor name="drive" joint="x"/><general name="pull" tendon="s"/></actuator>
  <sensor><framelinacc objtype="site" objname="s1"/><touch site="s0"/><jointlimitfrc joint="x"/>
    <tendonlimitfrc tendon="f"/><actuatorfrc actuator="pull"/></sensor>
</mujoco>"""
VALUE = 0.03  # what zeros become
TOLERANCE = 1e-6  # of the solver's acceleration; what has no effect is off by orders more


@pytest.fixture(scope="module")
def plain():
    spec = jaxsim.Spec.from_string(PLAIN)
    return spec, jaxsim.load_model(spec, free="all")


def changed(m: jaxsim.Model, name: str, value) -> jaxsim.Model:
    if name.startswith("opt."):
        return m.replace(opt=m.opt.replace(**{name[4:]: value}))
    return m.replace(**{name: value})


def leaves(m: jaxsim.Model) -> dict[str, jax.Array]:
    """The real fields of a model and its options, by name."""
    paths = jax.tree.leaves_with_path(m)
    return {jax.tree_util.keystr(path).lstrip("."): np.asarray(leaf) for path, leaf in paths}


def from_zero(spec, m: jaxsim.Model, name: str, leaf: np.ndarray):
    """The model with the zeros of a leaf set, and its MJCF: all together if MJCF can say it, else
    those of the items that it can say."""
    zeros = np.argwhere(leaf == 0)
    items = [zeros] + [zeros[zeros[:, 0] == i] for i in np.unique(zeros[:, 0])] if leaf.ndim else []
    for places in items or [zeros]:
        value = leaf.copy()
        value[tuple(places.T)] = VALUE
        new = changed(m, name, jnp.asarray(value))
        try:
            yield new, jaxsim.write_back(spec, new).to_xml()
        except (ValueError, jaxsim.ModelError):
            continue
        if places is zeros:
            return


def test_a_number_set_from_zero_is_that_number_in_the_file(plain):
    spec, m = plain
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(3)
    start = d.replace(qvel=jnp.asarray(rng.normal(size=m.nv)), ctrl=jnp.asarray([0.3, -0.2]))
    advance = jax.jit(lambda m: jaxsim.step(jaxsim.set_const(m), start))
    refused = {name for switch in FIXED_FIELDS for name in switch.fields}
    tried, wrong = set(), []
    for name, leaf in leaves(m).items():
        if name in refused or name in UNWRITTEN or name.startswith("stat."):
            continue
        if not (leaf == 0).any():
            continue
        for new, xml in from_zero(spec, m, name, leaf):
            model = mujoco.MjModel.from_xml_string(xml)
            there = mujoco.MjData(model)
            there.qpos[:], there.qvel[:], there.ctrl[:] = start.qpos, start.qvel, start.ctrl
            mujoco.mj_step(model, there)
            here = advance(new)
            tried.add(name)
            for field in ("qacc", "qvel", "sensordata", "qfrc_passive", "qfrc_actuator"):
                a, b = np.asarray(getattr(here, field)), getattr(there, field)
                error = np.abs(a - b).max() / (1 + np.abs(b).max())
                if error > TOLERANCE:
                    wrong.append(f"{name}: {field} differs by {error:.1e}")
    assert not wrong, "\n".join(wrong)
    # MJCF has no virtual mass; the tests of partly nonzero fields cover geom_fluid
    switched = {name for switch in SWITCHES for name in switch.fields} - {"geom_fluid"}
    assert switched <= tried, switched - tried


# One item of each switch is not zero, and it is not the first.
EDITS = (
    ('name="x" type="slide"', 'name="x" frictionloss=".2" margin=".02" type="slide"'),
    ('name="s"><site', 'name="s" frictionloss=".1" armature=".05"><site'),
    ('name="f" range', 'name="f" margin=".01" range'),
    ('name="pull" tendon="s"', 'name="pull" tendon="s" damping=".1" armature=".02"'),
    (
        'type="box" size=".05 .04 .03"',
        'name="hand" type="box" size=".05 .04 .03" fluidshape="ellipsoid" adhesion="2" '
        'surfacevel="0 1 0 0 0 0"',
    ),
    (
        "<pair geom1",
        '<pair geom1="foot" geom2="hand" condim="3" adhesion="1"/><pair geom1',
    ),
    ("<worldbody>", '<option density="5" viscosity=".1"/><worldbody>'),
)
PARTIAL = functools.reduce(lambda xml, edit: xml.replace(*edit), EDITS, PLAIN)
EACH = tuple(name for switch in SWITCHES if switch.each for name in switch.fields)


def with_all_items(m: jaxsim.Model, seed: int) -> dict[str, np.ndarray]:
    """Every field that switches per item, with its zeros replaced by numbers of their own."""
    rng = np.random.default_rng(seed)
    values = {}
    for name in EACH:
        old = np.asarray(getattr(m, name))
        values[name] = np.where(old == 0, rng.uniform(0.02, 0.06, old.shape), old)
    return values


def of_mujoco(values: dict[str, np.ndarray], start: jaxsim.Data) -> mujoco.MjData:
    model = mujoco.MjModel.from_xml_string(PARTIAL)
    for name, value in values.items():
        getattr(model, name)[:] = value
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    data.qpos[:], data.qvel[:], data.ctrl[:] = start.qpos, start.qvel, start.ctrl
    mujoco.mj_step(model, data)
    return data


@pytest.fixture(scope="module")
def partial():
    m = jaxsim.load_model(PARTIAL)
    qvel = np.random.default_rng(3).normal(size=m.nv)
    d = jaxsim.make_data(m).replace(qvel=jnp.asarray(qvel), ctrl=jnp.asarray([0.3, -0.2]))

    def advance(values):
        return jaxsim.step(jaxsim.set_const(m.replace(**values)), d)

    return m, d, advance


@pytest.mark.slow
def test_every_item_of_a_live_field_counts_when_traced(partial):
    m, d, advance = partial
    for name in EACH:
        assert (np.asarray(getattr(m, name)) == 0).any(), name
    values = with_all_items(m, 0)
    here, there = jax.jit(advance)(values), of_mujoco(values, d)
    for field in ("qacc", "qvel", "sensordata", "qfrc_passive", "qfrc_constraint"):
        np.testing.assert_allclose(
            getattr(here, field), getattr(there, field), rtol=1e-6, atol=1e-6, err_msg=field
        )
    m.replace(**values)  # concrete numbers are not refused either


@pytest.mark.slow
def test_every_item_of_a_live_field_counts_in_a_batch(partial):
    m, d, advance = partial
    worlds = [with_all_items(m, seed) for seed in (0, 1)]
    batch = {name: np.stack([w[name] for w in worlds]) for name in EACH}
    here = jax.jit(jax.vmap(advance))(batch)
    for k, values in enumerate(worlds):
        there = of_mujoco(values, d)
        np.testing.assert_allclose(here.qacc[k], there.qacc, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_a_gradient_reaches_items_that_were_zero(partial):
    m, _, advance = partial
    values = jax.tree.map(jnp.asarray, with_all_items(m, 0))

    def loss(values):
        return jnp.sum(jnp.sin(np.arange(1.0 * m.nv) + advance(values).qvel))

    evaluate = jax.jit(jax.value_and_grad(loss))  # one program of both
    _, slope = evaluate(values)
    rng = np.random.default_rng(5)
    for name in EACH:
        old = np.asarray(getattr(m, name))
        way = np.where(old == 0, rng.normal(size=old.shape), 0)
        h = 1e-6
        moved = [values | {name: values[name] + s * h * way} for s in (1, -1)]
        high, low = (evaluate(v)[0] for v in moved)
        along = np.sum(np.asarray(slope[name]) * way)
        np.testing.assert_allclose(
            along, (high - low) / (2 * h), rtol=1e-4, atol=1e-8, err_msg=name
        )


def test_two_hinges_slow_down_by_their_own_friction():
    """A model of which only one joint has dry friction, as most robots."""
    hinge = "<joint axis='0 1 0'{}/><geom type='capsule' size='.05 .2' pos='.2 0 0'/>"
    inner = f"<body pos='.4 0 0'>{hinge.format('')}</body>"
    outer = hinge.format(" frictionloss='.3'")
    xml = f"<mujoco><worldbody><body>{outer}{inner}</body></worldbody></mujoco>"
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m)

    def end(loss):
        new = m.replace(dof_frictionloss=loss)
        return jax.lax.fori_loop(0, 50, lambda _, d: jaxsim.step(new, d), d).qpos

    loss = jnp.array([0.3, 0.5])
    model = mujoco.MjModel.from_xml_string(xml)
    model.dof_frictionloss[:] = loss
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 50)
    np.testing.assert_allclose(jax.jit(end)(loss), data.qpos, rtol=1e-6)


def test_a_field_that_was_compiled_out_is_refused():
    m = jaxsim.load_model(PLAIN)
    for switch in (*SWITCHES, *FIXED_FIELDS):
        for name in switch.fields:
            leaf = leaves(m)[name]
            if not leaf.size:
                continue
            remedy = "free=" if switch in SWITCHES else "before it is loaded"
            for value in (np.full_like(leaf, VALUE), np.stack([leaf, leaf + VALUE])):
                if name.startswith("opt.") and value.ndim > leaf.ndim:
                    value = jnp.asarray(value)
                with pytest.raises(ValueError, match=f"{name}: was 0 .*{remedy}"):
                    changed(m, name, value)
            with pytest.raises(ValueError, match=f"{name}: was 0 .*{remedy}"):
                jax.jit(lambda v, name=name: changed(m, name, v).qpos0)(leaf)
            changed(m, name, leaf)  # what stays zero is no change


def test_a_field_with_one_nonzero_item_is_live_for_all():
    m = jaxsim.load_model(PLAIN, free=["opt.density"])
    m.replace(opt=m.opt.replace(density=jnp.asarray(1.2)))
    xml = PLAIN.replace('name="x"', 'name="x" frictionloss="1"')
    m = jaxsim.load_model(xml)
    assert m.dof_hasfriction.all()
    assert not m.tendon_hasfriction.any()
    m.replace(dof_frictionloss=m.dof_frictionloss.at[6].set(1.0))
    with pytest.raises(ValueError, match="of item 1 is not zero"):
        m.replace(tendon_frictionloss=m.tendon_frictionloss.at[1].set(1.0))


def test_free_fields_survive_saving_and_are_checked(tmp_path):
    m = jaxsim.load_model(PLAIN, free=("dof_frictionloss",))
    jaxsim.save_model(m, tmp_path / "m.jxm")
    again = jaxsim.load_model(tmp_path / "m.jxm")
    again.replace(dof_frictionloss=m.dof_frictionloss + 1)
    with pytest.raises(ValueError, match="did you mean 'dof_frictionloss'"):
        jaxsim.load_model(PLAIN, free=("dof_friction_loss",))
    jaxsim.save_model(jaxsim.load_model(PLAIN), tmp_path / "plain.jxm")
    freed = jaxsim.load_model(tmp_path / "plain.jxm", free="dof_frictionloss")
    freed.replace(dof_frictionloss=m.dof_frictionloss + 1)


@pytest.mark.slow
def test_a_gradient_from_zero_is_that_of_the_difference():
    m = jaxsim.load_model(PLAIN, free=("body_gravcomp", "opt.viscosity"))
    start = jaxsim.make_data(m).replace(qvel=jnp.linspace(-1, 1, m.nv))

    def height(x):
        new = m.replace(
            body_gravcomp=m.body_gravcomp + x, opt=m.opt.replace(viscosity=m.opt.viscosity + x)
        )
        return jaxsim.forward(new, start).qacc[6]

    slope = jax.jit(jax.grad(height))(0.0)
    high, low = jax.jit(jax.vmap(height))(jnp.array([1e-5, 0.0]))
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(slope, (high - low) / 1e-5, rtol=1e-3)


@pytest.mark.parametrize("gravcomps", [(-0.5, 0), (-0.5, 0.5), (0, 0)])
def test_only_weight_that_is_taken_away_switches_compensation_on(gravcomps):
    """MuJoCo leaves compensation out unless some body has a positive one."""
    bodies = "".join(
        f'<body pos="{i} 0 0" gravcomp="{g}"><freejoint/><geom size=".1"/></body>'
        for i, g in enumerate(gravcomps)
    )
    xml = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    mj = mujoco.MjModel.from_xml_string(xml)
    for m in (jaxsim.load_model(xml), put_model(mj)):
        assert m.flg_gravcomp == mj.flg_gravcomp
        assert m.ngravcomp == mj.ngravcomp
