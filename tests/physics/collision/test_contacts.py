"""The list of contacts against the oracle: parameters, frames, order, capacity and overflow."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics.collision.two_geoms import random_quat
from physics.oracle import data, unpack
from states import stack
from tolerance import CONTACT, ROUNDING

import jaxsim
from jaxsim.enums import GeomType, WarningType
from jaxsim.io.bridge import put_model
from jaxsim.math import Quat, Rot, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.candidates.broadphase import may_collide
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.collision.shape import PlacedGeoms
from jaxsim.transforms.derivative_context import trace_for_derivative
from jaxsim.transforms.layout import pack_record
from jaxsim.transforms.platform import PLATFORMS

N = 6  # bodies of a heap
SURFACES = ('adhesion="2"', 'surfacevel="1 2 3 -1 -2 -3"', "", 'adhesion="3"', 'adhesion="5"',
            'surfacevel=".1 0 0 0 0 .2" adhesion="1"')  # fmt: skip


def _heap(seed: int, option: str = "") -> mujoco.MjModel:
    """Free bodies of all shapes and parameters on a plane, and two `<pair>` elements."""
    rng = np.random.default_rng(seed)

    def numbers(low, high, n):
        return " ".join(f"{x:.5f}" for x in rng.uniform(low, high, n))

    def body(k: int) -> str:
        solref = [f"{numbers(0.01, 0.05, 1)} 1", f"-{numbers(100, 900, 1)} -{numbers(9, 50, 1)}"]
        shape = ("sphere", "capsule", "box")[k % 3]
        return f"""<body><freejoint/><geom name="g{k}" type="{shape}"
          size="{numbers(0.05, 0.15, 3)}" margin="{numbers(0, 0.03, 1)}"
          gap="{numbers(0, 0.03, 1)}" friction="{numbers(0, 1, 3)}" solref="{solref[k % 4 == 3]}"
          solimp="{numbers(0.5, 0.8, 1)} {numbers(0.85, 0.95, 1)} .01 .5 2"
          solmix="{rng.choice([0, 0, 1, 2.5])}" priority="{int(k == 4)}"
          condim="{rng.choice([1, 3, 4, 6])}" {SURFACES[k]}/></body>"""

    return mujoco.MjModel.from_xml_string(
        f"""<mujoco>{option}<worldbody>
        <geom name="floor" type="plane" size="5 5 5" pos="0 0 -.15"/>
        {"".join(body(k) for k in range(N))}</worldbody><contact>
        <pair geom1="g0" geom2="g1" condim="4" friction=".3 .4 .05 .01 .02" solref=".03 1.1"
          solreffriction=".02 1" margin=".02" gap=".03" adhesion="2"/>
        <pair geom1="g3" geom2="floor" friction="0 0 0 0 0"/></contact></mujoco>"""
    )


def _states(mj: mujoco.MjModel, count: int, seed: int = 0) -> list[mujoco.MjData]:
    rng = np.random.default_rng(seed)
    states = []
    for _ in range(count):
        d = mujoco.MjData(mj)
        for k in range(N):
            quat = rng.normal(size=4)
            d.qpos[7 * k : 7 * k + 7] = np.r_[rng.uniform(-0.2, 0.2, 3), quat]
        mujoco.mj_normalizeQuat(mj, d.qpos)
        mujoco.mj_forward(mj, d)
        states.append(d)
    return states


def _input(mj, state, places: int):
    """Return a public Data with the poses of a state, and empty slots for contacts."""
    d = data(mj, state)
    contact = jax.tree.map(lambda a: jnp.zeros((places, *a.shape[1:]), a.dtype), d.contact)
    return d.replace(contact=contact)


def _found(mj, state, **room):
    """The contacts that jaxsim lists for a state."""
    m = put_model(mj, **room)
    d = _input(mj, state, m.structure.ncontact)
    out = jax.jit(_public)(m, d)
    return m, out


def _public(m, d):
    inner = unpack(d, 0)
    return pack_record(collision(unpack(m, 0), inner).replace(rows=None), inner)


FIELDS = (
    "dist pos frame dim includemargin friction solref solreffriction solimp adhesion surfacevel "
    "exclude"
).split()


def _expect_equal(mine, n, contact):
    """Our first n contacts are the oracle's, pair after pair, in any order within a pair."""
    geom = np.asarray(mine.geom)[:n].tolist()
    assert geom == contact.geom.tolist()
    left = list(range(n))
    for i in range(n):
        same = [j for j in left if contact.geom[j].tolist() == geom[i]]
        offset = [np.abs(contact.pos[j] - mine.pos[i]).max() for j in same]
        j = same[int(np.argmin(offset))]
        left.remove(j)
        for name in FIELDS:
            ours, theirs = np.asarray(getattr(mine, name)[i]), getattr(contact, name)[j]
            np.testing.assert_allclose(ours.ravel(), np.ravel(theirs), **CONTACT, err_msg=name)


OVERRIDE = """<option o_margin=".013" o_solref=".07 .8" o_solimp=".5 .6 .002 .4 2"
  o_friction=".3 .4 .5 .6 .7"><flag override="enable"/></option>"""


@pytest.mark.short("compact-0")
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("room", [{}, {"contacts": 300}], ids=["compact", "all"])
def test_contacts_equal_the_oracle(seed, room):
    """Same pairs in the same order, with equal geometry and parameters."""
    mj = _heap(seed)
    m = put_model(mj, **room)
    plan = collision_layout(m)
    assert plan.fits_all_points == bool(room)
    run = jax.jit(_public)
    for state in _states(mj, 8, seed):
        out = run(m, _input(mj, state, m.structure.ncontact))
        assert out.ncon == state.ncon > 0
        assert (np.asarray(out.contact.geom)[state.ncon :] == -1).all()
        assert (np.asarray(out.contact.dist)[state.ncon :] == NO_CONTACT_DISTANCE).all()
        _expect_equal(out.contact, state.ncon, state.contact)


@pytest.mark.slow
@pytest.mark.parametrize(
    "room", [40, *[pytest.param(n, marks=pytest.mark.slow) for n in (90, 2000)]]
)
def test_chosen_pairs_stand_in_the_order_of_the_oracle(room):
    """Pairs of several types alternate, and of each type those that are near are chosen."""
    shapes = ("box", "sphere", "capsule")
    bodies = "".join(
        f'<body><freejoint/><geom type="{shapes[k % 3]}" size=".1 .12 .08"/></body>'
        for k in range(21)
    )
    mj = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    m = put_model(mj, contacts=room, pairs=15)
    assert collision_layout(m).interleaves
    rng = np.random.default_rng(0)
    states, start = [], jaxsim.make_data(m)
    for _ in range(6):
        d = mujoco.MjData(mj)
        d.qpos[:] = np.c_[
            rng.uniform(-0.45, 0.45, (21, 3)), [random_quat(rng) for _ in range(21)]
        ].ravel()
        mujoco.mj_forward(mj, d)
        states.append(d)
    worlds = jax.vmap(lambda q: start.replace(qpos=q))(jnp.stack([s.qpos for s in states]))
    many = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, worlds)
    one = jax.jit(_public)(m, _input(mj, states[0], m.structure.ncontact))
    np.testing.assert_array_equal(one.contact.geom, many.contact.geom[0])
    for state, contact in zip(states, many.contact.geom, strict=True):
        assert 8 < state.ncon <= 40
        assert contact[: state.ncon].tolist() == state.contact.geom.tolist()
        assert (contact[state.ncon :] == -1).all()


@pytest.mark.slow
def test_override_replaces_the_parameters_of_all_contacts():
    mj = _heap(5, OVERRIDE)
    for state in _states(mj, 2, seed=3):
        _, out = _found(mj, state)
        _expect_equal(out.contact, state.ncon, state.contact)
        assert (np.asarray(out.contact.includemargin)[: state.ncon] == 0.013).all()


def test_contacts_beyond_capacity_are_counted():
    """Four slots keep the four deepest contacts, in order, and the others are counted."""
    mj = _heap(0)
    overflows = 0
    for state in _states(mj, 8):
        _, everything = _found(mj, state)
        m, out = _found(mj, state, contacts=4)
        assert everything.ncon > 4 == out.ncon == m.structure.ncontact
        dist = np.asarray(everything.contact.dist)[: int(everything.ncon)]
        deepest = np.sort(np.argsort(dist)[:4])
        overflows += not np.array_equal(deepest, np.arange(4))
        np.testing.assert_array_equal(out.contact.geom, everything.contact.geom[deepest])
        np.testing.assert_array_equal(out.contact.dist, dist[deepest])
        assert everything.warning[WarningType.CONTACTFULL] == 0
        assert out.warning[WarningType.CONTACTFULL] == 1
        assert out.warning_lastinfo[WarningType.CONTACTFULL] == everything.ncon
    assert overflows  # in some state the first four are not the deepest


@pytest.mark.slow
def test_touching_geoms_have_one_contact(monkeypatch):
    """At a distance of 0, of which rounding decides: each contact that is counted is another."""
    monkeypatch.setitem(PLATFORMS, "cpu", PLATFORMS["cpu"]._replace(fuses_calls=False))
    ball = '<body pos="-.2 -.2 1.8"><freejoint/><geom size=".1"/></body>'
    for offset, count in (("0 0 .2", 5), ("0 .2 0", 3), (".2 0 0", 3)):
        ball = f'<replicate count="{count}" offset="{offset}">{ball}</replicate>'
    m = jaxsim.load_model(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    for worlds in (None, 2):
        d = jaxsim.make_data(m)
        run = jaxsim.forward if worlds is None else jax.vmap(jaxsim.forward, (None, 0))
        d = jax.jit(run)(m, d if worlds is None else jaxsim.replicate(d, worlds))
        pairs = np.asarray(d.contact.geom).reshape(-1, m.structure.ncontact, 2)
        for ncon, geom in zip(np.ravel(d.ncon), pairs, strict=True):
            assert len(np.unique(geom[:ncon], axis=0)) == ncon > 0
            assert (geom[ncon:] == -1).all()


@pytest.mark.slow
def test_the_deepest_stay_in_each_of_many_worlds():
    mj = _heap(0)
    m = put_model(mj, contacts=4)
    states = [_input(mj, s, 4) for s in _states(mj, 5)]
    start = jaxsim.make_data(m)
    worlds = jax.vmap(lambda q: start.replace(qpos=q))(jnp.stack([s.qpos for s in states]))
    found = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, worlds)
    for k, state in enumerate(states):
        one = jax.jit(_public)(m, state)
        np.testing.assert_allclose(found.contact.dist[k], one.contact.dist, **ROUNDING)
        np.testing.assert_array_equal(found.contact.geom[k], one.contact.geom)


@pytest.mark.slow
def test_worlds_last_equals_a_loop():
    mj = _heap(1)
    m = put_model(mj)
    states = [_input(mj, s, m.structure.ncontact) for s in _states(mj, 5)]
    each = [jax.jit(_public)(m, d) for d in states]

    def many(m, d):
        inner = unpack(d, 1)
        return pack_record(collision(unpack(m, 1), inner), inner)

    stacked = stack(states, -1)
    out = jax.jit(many)(jax.tree.map(lambda a: a[..., None], m), stacked)
    for k, one in enumerate(each):
        n = int(one.ncon)
        assert out.ncon[k] == n
        for a, b in zip(jax.tree.leaves(one.contact), jax.tree.leaves(out.contact), strict=True):
            np.testing.assert_allclose(a[:n], b[..., k][:n], rtol=0, atol=ROUNDING["atol"])


def test_parameters_are_differentiable():
    """Friction of a geom reaches the contacts that it decides."""
    mj = _heap(1)
    m = put_model(mj)
    state = _states(mj, 1)[0]
    d = _input(mj, state, m.structure.ncontact)

    def total(friction):
        with trace_for_derivative():
            out = _public(m.replace(geom_friction=friction), d)
        return out.contact.friction[: state.ncon].sum()

    gradient = jax.jit(jax.grad(total))(m.geom_friction)
    assert np.isfinite(gradient).all()
    assert (gradient >= 0).all()
    assert gradient.sum() > 0


def test_the_cheap_test_fails_no_touching_pair():
    """Whatever touches in the oracle is near."""
    for seed in range(4):
        mj = _heap(seed)
        plan = collision_layout(put_model(mj))
        pairs = plan.pairs
        for state in _states(mj, 20, seed):
            geoms = PlacedGeoms(
                Vec(*jnp.asarray(state.geom_xpos).T),
                Rot(*jnp.asarray(state.geom_xmat).T),
                Vec(*jnp.asarray(mj.geom_size).T),
                jnp.arange(mj.ngeom),
            )
            touching = set(map(tuple, state.contact.geom.tolist()))
            for group in plan.groups:
                g1, g2 = pairs.geom1[group.pairs], pairs.geom2[group.pairs]
                reach = jnp.full(len(g1), 0.12)  # more than any margin and gap here
                is_near = np.asarray(may_collide(group.kinds[0], geoms, g1, g2, reach))
                far = {p for p, n in zip(zip(g1, g2, strict=True), is_near, strict=True) if not n}
                assert not touching & {(int(a), int(b)) for a, b in far}


def test_worlds_together_are_tested_pair_by_pair():
    """Near are what touches, and no pairs that separating axes reject."""
    mj = _heap(0)
    states = _states(mj, 20)
    plan = collision_layout(put_model(mj))

    def stacked(name: str) -> jax.Array:
        """Components of a field, `[3 or 9, ngeom, worlds]`."""
        return jnp.asarray(np.stack([getattr(state, name) for state in states], -1).swapaxes(0, 1))

    geoms = PlacedGeoms(
        Vec(*stacked("geom_xpos")),
        Rot(*stacked("geom_xmat")),
        Vec(*jnp.asarray(mj.geom_size).T[..., None]),
        jnp.arange(mj.ngeom)[:, None],
    )
    touching = [set(map(tuple, state.contact.geom.tolist())) for state in states]
    tested = 0
    for group in plan.groups:
        if group.kinds[0][0] == GeomType.PLANE:
            continue
        g1, g2 = (g[group.pairs] for g in (plan.pairs.geom1, plan.pairs.geom2))
        reach = jnp.full((len(g1), len(states)), 0.12)

        def near(geoms, reach, kind=group.kinds[0], g1=g1, g2=g2):
            return may_collide(kind, geoms, g1, g2, reach)

        one_by_one = np.asarray(jax.jit(near)(geoms, reach))
        with jaxsim.for_platform("cuda", kernels=False):
            by_axes = np.asarray(jax.jit(near)(geoms, reach))
        assert not (one_by_one & ~by_axes).any()
        for world, touch in enumerate(touching):
            far = zip(*(g[~one_by_one[:, world]].tolist() for g in (g1, g2)), strict=True)
            assert not touch & set(far)
        tested += one_by_one.size
    assert tested > 100


@pytest.mark.slow
def test_a_lying_cylinder_has_one_lower_end():
    """Rounding decides which end of it that is, and must decide equally for x, y and z."""
    rng = np.random.default_rng(0)
    tilt, radius = random_quat(rng), 0.1
    mj = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><geom type="plane" size="1 1 1" quat="{" ".join(map(str, tilt))}"/>
        <body><freejoint/><geom type="cylinder" size="{radius} .35"/></body></worldbody></mujoco>"""
    )
    m = put_model(mj)
    start = jaxsim.make_data(m, keep=("contact", "ncon"))
    yaw = jnp.asarray(rng.uniform(0, np.pi, 500))
    zero, right = 0.0 * yaw, 0.0 * yaw + 0.5**0.5
    turn = Quat(*jnp.asarray(tilt)[:, None])
    q = turn * Quat(jnp.cos(yaw), zero, zero, jnp.sin(yaw)) * Quat(right, right, zero, zero)
    qpos = jnp.stack([zero, zero, zero, *q.parts], axis=1)

    def contacts(m, qpos):
        d = unpack(start.replace(qpos=qpos), 0)
        return pack_record(collision(unpack(m, 0), kinematics(unpack(m, 0), d)), start).contact

    many = jax.jit(jax.vmap(contacts, in_axes=(None, 0)), compiler_options=OPTIMIZED)
    dist = np.asarray(many(m, qpos).dist)
    np.testing.assert_allclose(dist[dist < NO_CONTACT_DISTANCE], -radius, **ROUNDING)
