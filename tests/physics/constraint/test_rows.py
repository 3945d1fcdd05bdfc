"""Constraint rows of every kind, and the solution with them, against MuJoCo."""

from functools import partial

import jax
import mujoco
import numpy as np
import pytest
from physics.constraint.scene import answer, compile_xml, state, world
from states import stack
from tolerance import ROUNDING

import jaxsim
from jaxsim.enums import DisableBit, EqType
from jaxsim.model.data import ROW_FIELDS
from jaxsim.physics.constraint.efc.row_list import DERIVED_ROW_FIELDS
from jaxsim.physics.constraint.equality import unsupported_equalities

# a free body with a ball and a hinge, a second chain, joints that are coupled, a static body
BODIES = """
<worldbody><site name="post"/><body name="rock" pos="3 0 0"/>
 <body name="a" pos="0 0 1"><freejoint/><geom type="ellipsoid" size=".1 .2 .3" pos=".1 .05 0"/>
  <site name="sa" pos=".1 .2 .3" euler="10 20 30"/><site name="s0"/>
  <body name="a2" pos=".3 0 0"><joint name="ball" type="ball" {ball}/>
   <geom type="box" size=".1 .2 .1" pos=".2 0 .1"/>
   <site name="sa2" pos=".1 .1 .1" euler="40 -20 30"/></body></body>
 <body name="b" pos="1 0 1"><joint name="h" axis="1 1 0" pos=".1 .2 .3" ref="10" {hinge}/>
  <joint name="s" type="slide" axis="0 1 1" ref=".1" {slide}/>
  <geom type="box" size=".1 .1 .2" pos=".1 0 0"/><site name="sb" pos="-.1 .2 .1" euler="5 6 7"/>
  <body name="b2" pos="0 0 .4"><joint name="g" {hinge}/><geom size=".1" pos=".2 .1 0"/></body>
 </body>
</worldbody>
<tendon>
 <fixed name="t1" {tendon}><joint joint="h" coef="1.5"/><joint joint="s" coef="-.7"/></fixed>
 <fixed name="t2" {tendon}><joint joint="g" coef="1"/></fixed>
 <spatial name="t3" {tendon}><site site="post"/><site site="sa2"/></spatial>
 <spatial name="still" {tendon}><site site="sa"/><site site="s0"/></spatial>
</tendon>
"""
SOFT = 'solimp=".3 .8 .6 .3 3"'
EQUALITIES = f"""<equality>
 <connect body1="a2" body2="b" anchor=".1 .2 .3" solref="-100 -10" {SOFT}/>
 <connect body1="a2" anchor=".1 .2 .3" {SOFT}/>
 <connect site1="sa" site2="sb" {SOFT}/>
 <connect body1="rock" anchor="0 0 0"/>
 <connect body1="a" body2="a2" anchor="0 0 0" active="false"/>
 <weld body1="a2" body2="b" torquescale="1.7" anchor=".1 .2 .3" relpose=".1 .2 .3 .7 .1 .2 .3"/>
 <weld body1="a" body2="b2" torquescale=".7" solref=".03 1.2" {SOFT}/>
 <weld site1="sa2" site2="sb" torquescale="1.3" {SOFT}/>
 <weld body1="b" anchor=".1 0 .2" active="false"/>
 <weld body1="b" body2="a" torquescale="0" {SOFT}/>
 <joint joint1="h" joint2="s" polycoef=".1 1.2 .3 .4 .5" {SOFT}/>
 <joint joint1="g" polycoef=".1 1.2 .3 .4 .5" solref="-300 -20"/>
 <joint joint1="s" joint2="g" active="false"/>
 <tendon tendon1="t1" tendon2="t3" polycoef=".1 1.2 .3 .4 .5" {SOFT}/>
 <tendon tendon1="t2" polycoef=".1 1.2 .3 .4 .5"/>
 <tendon tendon1="still"/>
</equality>"""
LIMITS = {
    "ball": f'range="0 20" margin=".2" {SOFT.replace("solimp", "solimplimit")} frictionloss=".3"',
    "hinge": 'range="-20 10" frictionloss="2" solreffriction=".05 1.3"',
    "slide": 'range="-.1 .15" margin=".3" solreflimit="-900 -30" frictionloss=".1"',
    "tendon": 'range=".2 .4" margin=".1" frictionloss=".7" solreffriction="-3 -7"',
}


def bodies(rest="", flags="", **attributes) -> str:
    every = dict.fromkeys(LIMITS, "") | attributes
    head = f'<mujoco><option><flag contact="disable" {flags}/></option>'
    return head + BODIES.format(**every) + rest + "</mujoco>"


PARTS = {
    "all": bodies(EQUALITIES, **LIMITS),
    "limits without margin": bodies(
        hinge='range="-20 10"',
        slide='range="-.1 .15" solreflimit=".03 .7"',
        tendon='range=".2 .4"',
        ball='range="0 30"',
    ),
    "time constants as given": bodies(
        EQUALITIES.replace(f'"{SOFT}', '" solref=".003 1"').replace(f" {SOFT}", ""),
        'refsafe="disable"',
        **LIMITS,
    ),
    "none": bodies(),
}

TOSSED = """
<mujoco><option cone="{cone}" impratio="{impratio}"/>
<default><geom friction=".6 .03 .01" {geom}/></default>
<worldbody>
 <geom name="floor" type="plane" size="9 9 1" friction=".1 .01 .002" condim="1"/>
 <body pos="0 0 .1"><freejoint/><geom size=".12" condim="{dims[0]}"/></body>
 <body pos="1 0 .2"><freejoint/><geom type="box" size=".1 .2 .15" condim="{dims[1]}"/></body>
 <body pos="2 0 .1"><freejoint/><geom type="capsule" size=".1 .2" zaxis="1 .02 0"
   condim="{dims[2]}"/></body>
 <body pos="3 0 .1"><joint type="slide" axis="0 0 1"/><joint name="j" axis="0 1 1" range="-10 10"/>
   <geom size=".12" condim="{dims[3]}" solref="-500 -20"/></body>
</worldbody></mujoco>
"""
ELLIPTIC = {"cone": "elliptic", "impratio": 3, "dims": (6, 1, 4, 3), "geom": ""}
CONTACTS = [
    ("pyramidal", (1, 1, 1, 1), 'margin=".05" gap=".02"'),
    pytest.param("elliptic", (1, 1, 1, 1), 'margin=".05" gap=".02"', marks=pytest.mark.slow),
    ("pyramidal", (6, 1, 4, 3), 'margin=".03"'),
    ("elliptic", (6, 1, 4, 3), 'margin=".03"'),
    pytest.param(
        *("elliptic", (3, 3, 3, 3), 'solref=".01 .8" solimp=".5 .9 .02"'),
        marks=pytest.mark.slow,
    ),
]


def check(mj: mujoco.MjModel, mjd: mujoco.MjData) -> None:
    """Counts, rows and their forces are the oracle's, and so is the solution."""
    rows, d = answer(*world(mj, mjd))
    for count in ("ncon", "ne", "nf", "nl", "nefc"):
        assert getattr(d, count) == getattr(mjd, count), count
    active = np.asarray(rows.active)
    order, owner = in_our_order(mjd, np.asarray(d.contact.pos)[: mjd.ncon])
    J = mjd.efc_J[: mjd.nefc * mj.nv].reshape(mjd.nefc, mj.nv)
    np.testing.assert_array_equal(rows.efc_type[active], mjd.efc_type[order])
    np.testing.assert_array_equal(rows.efc_id[active], owner)
    np.testing.assert_allclose(rows.efc_J[active], J[order], rtol=ROUNDING["rtol"], atol=1e-13)
    np.testing.assert_allclose(rows.efc_D[active], mjd.efc_D[order], rtol=ROUNDING["rtol"])
    np.testing.assert_array_equal(rows.efc_frictionloss[active], mjd.efc_frictionloss[order])
    np.testing.assert_allclose(rows.efc_pos[active], mjd.efc_pos[order], **ROUNDING)
    np.testing.assert_array_equal(rows.efc_margin[active], mjd.efc_margin[order])
    assert not rows.efc_force[~active].any()
    equal(rows.efc_aref[active], mjd.efc_aref[order])
    # a force is D times the small difference of two accelerations as large as aref
    largest = (mjd.efc_D * abs(mjd.efc_aref)).max(initial=0)
    equal(rows.efc_force[active], mjd.efc_force[order], largest)
    for name in ("qacc", "qfrc_constraint"):
        equal(getattr(d, name), getattr(mjd, name))
    check_kept(d, rows, mj, mjd, order)


def check_kept(d, rows, mj: mujoco.MjModel, mjd: mujoco.MjData, order: list[int]) -> None:
    """A Data keeps the rows that take part, without gaps, with the oracle's derived fields."""
    # with islands the solver leaves the states of its start in efc_state
    J = mjd.efc_J[: mjd.nefc * mj.nv].reshape(mjd.nefc, mj.nv)
    mujoco.mj_constraintUpdate(mj, mjd, J @ mjd.qacc - mjd.efc_aref, None, 0)
    active = np.asarray(rows.active)
    for name in ROW_FIELDS:
        kept = np.asarray(getattr(d, name))
        of_oracle = name in DERIVED_ROW_FIELDS
        listed = getattr(mjd, name)[order] if of_oracle else np.asarray(getattr(rows, name))[active]
        # forces are at the solver's acceleration, which is the oracle's up to rounding
        largest = (mjd.efc_D * abs(mjd.efc_aref)).max(initial=0)
        equal(kept[: mjd.nefc], listed, largest if name == "efc_force" else 0.0)
        none = -1 if name in ("efc_type", "efc_id", "efc_state") else 0
        assert (kept[mjd.nefc :] == none).all(), name


def in_our_order(mjd: mujoco.MjData, points: np.ndarray) -> tuple[list[int], list[int]]:
    """The oracle's rows with the contacts of a pair in our order, and our ids of their owners.

    Args:
      mjd: the oracle's state.
      points: our contact points, (ncon, 3); their order within a pair of geoms is free.
    """
    others = mjd.ne + mjd.nf + mjd.nl
    rows, owner = list(range(others)), list(mjd.efc_id[:others])
    for number, point in enumerate(points):
        same = int(np.linalg.norm(mjd.contact.pos - point, axis=1).argmin())
        of_it = [r for r in range(others, mjd.nefc) if mjd.efc_id[r] == same]
        rows += of_it
        owner += [number] * len(of_it)
    return rows, owner


def equal(ours, theirs, largest=0.0) -> None:
    """Equal relative to the largest number, of these or of those they were made from."""
    scale = 1 + max(largest, abs(theirs).max(initial=0))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING["atol"] * scale)


@pytest.mark.parametrize(
    "part",
    [
        "all",
        pytest.param("limits without margin", marks=pytest.mark.slow),
        pytest.param("time constants as given", marks=pytest.mark.slow),
        pytest.param("none", marks=pytest.mark.slow),
    ],
)
def test_rows_without_contacts(part):
    mj = compile_xml(PARTS[part])
    for seed in range(6):
        check(mj, state(mj, seed))


def test_every_kind_of_row_comes_and_goes():
    """The states of the tests above have rows of all kinds, and limits that are not active."""
    mj = compile_xml(PARTS["all"])
    kinds, limits = set(), set()
    for seed in range(6):
        mjd = state(mj, seed)
        kinds |= set(mjd.efc_type)
        limits.add(mjd.nl)
    assert kinds == {0, 1, 2, 3, 4}
    assert len(limits) > 1


# types of rows that a flag takes away
FLAGS = {"EQUALITY": {0}, "FRICTIONLOSS": {1, 2}, "LIMIT": {3, 4}, "CONSTRAINT": {0, 1, 2, 3, 4}}


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_take_rows_away(flag):
    with_all = compile_xml(PARTS["all"])
    rows, _ = answer(*world(with_all, state(with_all, 0)))
    kept = {0, 1, 2, 3, 4} - FLAGS[flag]

    mj = compile_xml(PARTS["all"], DisableBit[flag])
    mjd = state(mj, 0)
    m, d = world(mj, mjd)
    # which rows there can be is known before anything is computed
    shapes = jax.eval_shape(partial(jaxsim.support.constraint_rows, m), d)
    assert len(shapes.efc_type) == np.isin(rows.efc_type, list(kept)).sum()
    assert set(mjd.efc_type) == kept


def test_equalities_switch_in_a_state():
    """One program serves all sets of active constraints."""
    mj = compile_xml(PARTS["all"])
    for seed in range(4):
        mjd = state(mj, seed)
        mjd.eq_active[:] = np.random.default_rng(seed).integers(0, 2, mj.neq)
        mujoco.mj_forward(mj, mjd)
        check(mj, mjd)


@pytest.mark.short('pyramidal-dims0-margin=".05" gap=".02"', 'elliptic-dims3-margin=".03"')
@pytest.mark.parametrize(("cone", "dims", "geom"), CONTACTS)
def test_contacts(cone, dims, geom):
    mj = compile_xml(TOSSED.format(cone=cone, dims=dims, geom=geom, impratio=3))
    touching = 0
    for seed in range(5):
        mjd = state(mj, seed, spread=0.1, settle=10 * seed)
        touching += mjd.ncon
        check(mj, mjd)
    assert touching > 5


@pytest.mark.slow
@pytest.mark.parametrize("xml", [PARTS["all"], TOSSED.format(**ELLIPTIC)], ids=["all", "contacts"])
def test_many_worlds_are_many_loops(xml):
    mj = compile_xml(xml)
    each = [world(mj, state(mj, seed, spread=0.1, settle=20)) for seed in range(3)]
    m = each[0][0]
    d = stack([d for _, d in each])
    together = jax.jit(jax.vmap(jaxsim.support.constraint_rows, in_axes=(None, 0)))(m, d)
    for w, (_, one) in enumerate(each):
        alone, _ = answer(m, one)
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[w], b, **ROUNDING)


@pytest.mark.slow
def test_worlds_with_different_numbers_of_rows_keep_their_own():
    mj = compile_xml(TOSSED.format(**ELLIPTIC))
    states = [state(mj, seed, spread=0.1, settle=20) for seed in range(3)]
    each = [world(mj, mjd) for mjd in states]
    m = each[0][0]
    d = stack([d for _, d in each])
    rows, made = jax.jit(jax.vmap(answer, in_axes=(None, 0)))(m, d)
    assert len(set(np.asarray(made.nefc).tolist())) > 1
    for w, mjd in enumerate(states):
        own, one = (jax.tree.map(lambda a, w=w: a[w], x) for x in (rows, made))
        order, _ = in_our_order(mjd, np.asarray(one.contact.pos)[: mjd.ncon])
        check_kept(one, own, mj, mjd, order)


def test_a_kind_that_is_gone_is_refused():
    m = jaxsim.put_model(compile_xml(PARTS["all"]))
    flex = np.where(m.eq_type == EqType.JOINT, EqType.FLEXVERT, m.eq_type)
    messages = unsupported_equalities(m.replace(structure=m.structure.replace(eq_type=flex)))
    assert len(messages) == 3
    assert "equality 10" in messages[0].message
    assert "flex" in messages[0].message
