"""Constraint rows of every kind, and the solution with them, beside MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.constraint.scene import (
    compile_xml,
    inputs,
    kinds_of_rows,
    rows_of,
    solution,
    state,
)

from jaxsim.bridge import put_model
from jaxsim.enums import DisableBit, EqType
from jaxsim.physics.constraint.equality import refusals

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
 <body pos="3 0 .1"><joint type="slide" axis="0 0 1"/><joint axis="0 1 1" range="-10 10"/>
   <geom size=".12" condim="{dims[3]}" solref="-500 -20"/></body>
</worldbody></mujoco>
"""
ROOM = 14  # contacts there can be
ELLIPTIC = {"cone": "elliptic", "impratio": 3, "dims": (6, 1, 4, 3), "geom": ""}
CONTACTS = [
    ("pyramidal", (1, 1, 1, 1), 'margin=".05" gap=".02"'),
    ("elliptic", (1, 1, 1, 1), 'margin=".05" gap=".02"'),
    ("pyramidal", (6, 1, 4, 3), 'margin=".03"'),
    ("elliptic", (6, 1, 4, 3), 'margin=".03"'),
    ("elliptic", (3, 3, 3, 3), 'solref=".01 .8" solimp=".5 .9 .02"'),
]


def check_rows(mj: mujoco.MjModel, mjd: mujoco.MjData, room=0, size=0) -> None:
    """Counts and rows are the oracle's, and the forces at its acceleration."""
    rows, counts = rows_of(*inputs(mj, mjd, room), size)
    assert [int(n[0]) for n in counts] == [mjd.ne, mjd.nf, mjd.nl, mjd.nefc]
    active = np.asarray(rows.active)
    J = mjd.efc_J[: mjd.nefc * mj.nv].reshape(mjd.nefc, mj.nv)
    np.testing.assert_array_equal(rows.efc_type[active], mjd.efc_type)
    np.testing.assert_array_equal(rows.efc_id[active], mjd.efc_id)
    np.testing.assert_allclose(rows.efc_J[active], J, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows.efc_D[active], mjd.efc_D, rtol=1e-12)
    np.testing.assert_array_equal(rows.efc_frictionloss[active], mjd.efc_frictionloss)
    for name in ("efc_aref", "efc_force"):
        equal(getattr(rows, name)[active], getattr(mjd, name), 1e-12)
    assert not rows.efc_force[~active].any()


def check_solution(mj: mujoco.MjModel, mjd: mujoco.MjData, room=0, size=0) -> None:
    """Acceleration and constraint force are the oracle's."""
    qacc, force = solution(*inputs(mj, mjd, room), size)
    equal(qacc, mjd.qacc, 1e-12)
    equal(force, mjd.qfrc_constraint, 1e-12)


def equal(ours, theirs, tolerance: float) -> None:
    """Equal relative to the largest number."""
    scale = 1 + abs(theirs).max(initial=0)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("part", PARTS)
def test_rows_without_contacts(part):
    mj = compile_xml(PARTS[part])
    for seed in range(6):
        check_rows(mj, state(mj, seed))


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


@pytest.mark.parametrize("part", ["all", "limits without margin"])
def test_solution_without_contacts(part):
    mj = compile_xml(PARTS[part])
    for seed in range(4):
        check_solution(mj, state(mj, seed))


FLAGS = {"EQUALITY": {0}, "FRICTIONLOSS": {1, 2}, "LIMIT": {3, 4}, "CONSTRAINT": {0, 1, 2, 3, 4}}


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_take_rows_away(flag):
    mj = compile_xml(PARTS["all"], disableflags=int(DisableBit[flag] | DisableBit.CONTACT))
    mjd = state(mj, 0)
    kinds = kinds_of_rows(*inputs(mj, mjd, 0)[:2])
    assert kinds == {0, 1, 2, 3, 4} - FLAGS[flag] == set(mjd.efc_type)


def test_equalities_switch_in_a_state():
    """The same program serves all sets of active constraints."""
    mj = compile_xml(PARTS["all"])
    for seed in range(4):
        mjd = state(mj, seed)
        mjd.eq_active[:] = np.random.default_rng(seed).integers(0, 2, mj.neq)
        mujoco.mj_forward(mj, mjd)
        check_rows(mj, mjd)


@pytest.mark.parametrize(("cone", "dims", "geom"), CONTACTS)
def test_contacts(cone, dims, geom):
    mj = compile_xml(TOSSED.format(cone=cone, dims=dims, geom=geom, impratio=3))
    touching = 0
    for seed in range(5):
        mjd = state(mj, seed, spread=0.1, settle=10 * seed)
        touching += mjd.ncon
        check_rows(mj, mjd, ROOM, max(dims))
        check_solution(mj, mjd, ROOM, max(dims))
    assert touching > 5


WORLDS = [(PARTS["all"], 0, 0), (TOSSED.format(**ELLIPTIC), ROOM, 6)]


@pytest.mark.parametrize(("xml", "room", "size"), WORLDS, ids=["all", "contacts"])
def test_many_worlds_are_many_loops(xml, room, size):
    mj = compile_xml(xml)
    each = [inputs(mj, state(mj, seed, spread=0.1, settle=20), room) for seed in range(3)]
    m = jax.tree.map(lambda a: a[..., None], each[0][0])
    d, found = (jax.tree.map(lambda *a: jnp.stack(a, -1), *(e[k] for e in each)) for k in (1, 2))
    together, counts = rows_of(m, d, found, size, rank=1)
    for w, one in enumerate(each):
        alone, count = rows_of(*one, size)
        for a, b in zip((*together, *counts), (*alone, *count), strict=True):
            np.testing.assert_allclose(a[..., w], b, rtol=1e-12, atol=1e-12)


def test_kinds_for_flexes_are_refused():
    m = put_model(compile_xml(PARTS["all"]))
    flex = np.where(m.eq_type == EqType.JOINT, EqType.FLEX, m.eq_type)
    messages = refusals(m.replace(structure=m.structure.replace(eq_type=flex)))
    assert len(messages) == 3
    assert "equality 10" in messages[0]
    assert "flex" in messages[0]
