"""Every field of Data against MuJoCo, after a step of each integrator, in worlds that differ.

The models have their objects in an unusual order: the first body touches nothing, what is felt is
on later ones, and ids of bodies, geoms, sites and joints are not in step.
"""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.oracle import consistent_state, contact_forces, dense_moment, dense_tendon
from public import public
from states import stack, world
from tolerance import DYNAMICS, STIFF

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.model.contact import Contact
from jaxsim.model.data import IPC_FIELDS, SINGLE_FIELDS, SLEEP_FIELDS, Data
from jaxsim.model.model import Model
from jaxsim.model.record.record import Record

pytestmark = pytest.mark.long

WORLDS = 6  # more than count as few, so that the code of many worlds runs

# Both solve the same problem until nothing changes. What is left of the solver's error, seen
# through stiff constraints, is below this part of the largest number of a field.
TOLERANCE = STIFF["rtol"]
# the solvers go their own ways to the same end
NOT_COMPARED = {"solver_niter", "tree_start"}

MODEL = """
<mujoco><option timestep=".002" integrator="{integrator}" cone="{cone}" tolerance="1e-15"
  iterations="200" ls_iterations="200" gravity=".3 -.2 -9.81" {option}/>
<option><flag energy="enable" {sleep}/></option><default><geom condim="{condim}"/></default>
<size nuserdata="2"/>
<asset><mesh name="pad" builtin="plate" params="3 2" scale=".2 .2 .1"/></asset>
<worldbody>
  <geom name="floor" type="plane" size="3 3 .1" margin=".01" contype="3" {belt}/>
  <site name="ground" type="box" size="3 3 .4"/><site name="post" pos="0 .3 1.5"/>
  <camera name="eye" mode="targetbody" target="box" pos="2 2 2"/>
  <body name="idle" pos="4 0 2"><joint type="free"/><geom size=".1 .2" type="capsule"/>
    <site name="high" pos="0 .1 0" euler="10 20 30" size=".3"/></body>
  <body name="hand" mocap="true" pos="-1 1 1"><geom size=".05" contype="0" conaffinity="0"/></body>
  <body name="arm" pos="0 0 .8" {gravcomp}>
    <light name="lamp" pos=".1 0 .2" dir="1 0 -1"/>
    <joint name="lift" type="slide" axis="0 0 1" range="-.2 .05" damping="2 .1 .2"/>
    <joint name="turn" axis="0 1 .2" armature=".1" {loss}/>
    <geom type="capsule" size=".05 .2" pos=".2 0 0" euler="0 90 0"/>
    <body name="fist" pos=".4 0 0"><joint name="wrist" type="ball" damping=".2" range="0 40"/>
      <geom name="knuckle" size=".1" pos="0 0 -.1" {fluid}/>
      <site name="tip" type="ellipsoid" size=".12 .15 .3" pos="0 0 -.2" euler="20 0 10"/>
      <camera name="look" pos=".1 0 0" euler="30 0 0"/></body></body>
  <body name="box" pos=".42 0 .19"><freejoint/>
    <geom name="under" type="box" size=".2 .15 .2" {fluid}/>
    <site name="top" type="box" size=".25 .2 .25"/></body>
  <body name="stack" pos="-.8 .1 .15"><freejoint/>
    <geom type="{shape}" size=".15 .1 .15" friction=".5 .02 .01" contype="0"
      conaffinity="{reach}" {sticky}/>
    <site name="beside" type="cylinder" size=".2 .3"/></body>
  <body name="ball" pos="-.8 .1 .35"><freejoint/><geom size=".1" contype="3"/>
    <site name="round" size=".1"/></body>
</worldbody>
<tendon>
  <spatial name="cord" stiffness="30" springyield=".1" damping="1" armature="{armature}"
    range="0 .9" limited="true"><site site="post"/><site site="tip"/><pulley divisor="2"/>
    <site site="post"/><site site="top"/></spatial>
  <spatial name="loop" stiffness="20" frictionloss=".2"><site site="post"/><geom geom="knuckle"/>
    <site site="top"/></spatial>
  <fixed name="mix" frictionloss=".1"><joint joint="lift" coef="2"/><joint joint="turn" coef="-1"/>
  </fixed>
</tendon>
<equality>{equality}</equality>
<actuator>
  <general name="filtered" joint="turn" dyntype="filter" dynprm=".05" gainprm="3"/>
  <position name="pull" tendon="cord" kp="5" kv="1" nsample="3" delay=".003" interp="linear"/>
  <motor name="twist" joint="wrist" gear="1 2 3"/>
  <velocity name="drive" joint="lift" kv="4" ctrlrange="-1 1"/>
  <motor name="push" site="tip" gear="1 0 2 0 .1 0" refsite="post"/>
  <orientation name="steer" joint="wrist" kp="2" kv=".1" input="quat"/>
  <pid name="servo" joint="turn" kp="2" kv=".3" ki=".4" slewmax="3"/>
  <adhesion name="suck" body="stack" ctrlrange="0 1" gain="3"/>
  <dcmotor name="motor" joint="lift" motorconst=".5" resistance="2" inductance=".01"
    lugre="20 .3 .2 .4 .1" thermal="2 3 0 .004 25 30"/>
</actuator>
<sensor>{sensors}</sensor></mujoco>
"""
CASES = {
    "Euler": {},
    "RK4": {
        "cone": "elliptic",
        "condim": 4,
        "armature": 5,
        "shape": "cylinder",
        "reach": 2,  # not every kind collides with a cylinder
        "belt": 'surfacevel=".2 -.1 .3 .1 .2 .5"',
    },
    "implicitfast": {
        "loss": 'frictionloss=".3" stiffness="2"',
        "gravcomp": 'gravcomp=".7"',
        "option": 'noslip_iterations="3"',
        "shape": "sphere",
        "equality": """<weld body1="hand" body2="arm" relpose="0 0 0 1 0 0 0"/>
          <connect body1="ball" body2="stack" anchor="0 0 -.1"/>
          <joint joint1="turn" polycoef=".1 .2" joint2="lift"/><tendon tendon1="mix"/>
          <tendon tendon1="cord" tendon2="loop" polycoef=".1 .5"/>""",
    },
    "implicit": {
        "cone": "elliptic",
        "condim": 6,
        "option": 'density="300" viscosity=".5" wind="1 2 0"',
        "fluid": 'fluidshape="ellipsoid"',
        "sticky": 'adhesion="3" gap=".05"',
        "sleep": 'sleep="enable"',
    },
}
CASES["discrete"] = CASES["implicitfast"] | {
    "cone": "elliptic",
    "condim": 4,
    "armature": 5,
    "option": 'density="30" viscosity=".5"',
    "fluid": 'fluidshape="ellipsoid"',
    "sticky": 'adhesion="3" gap=".05"',
    "belt": 'surfacevel=".2 -.1 .3 .1 .2 .5"',
}
DEFAULTS = {
    "cone": "pyramidal", "condim": 3, "armature": 0, "shape": "box", "loss": "", "gravcomp": "",
    "equality": "", "option": "", "fluid": "", "reach": 3, "belt": "", "sticky": "",
    "sleep": "",
}  # fmt: skip


def sensors() -> str:
    """Every kind that is simulated; those of contacts on bodies that touch, and on one that does
    not."""
    sites = ("beside", "tip", "high", "round", "top")
    of_site = ("touch", "accelerometer", "force", "torque", "velocimeter", "gyro", "magnetometer")
    lines = [f'<{kind} site="{site}"/>' for kind in of_site for site in sites]
    lines += [
        '<jointpos joint="turn" nsample="2"/><jointvel joint="lift" nsample="3" delay=".002"/>',
        '<jointactuatorfrc joint="lift"/>',
        '<jointlimitpos joint="lift"/><jointlimitvel joint="wrist"/><jointlimitfrc joint="wrist"/>',
        '<ballquat joint="wrist"/><ballangvel joint="wrist"/>',
        '<tendonpos tendon="cord"/><tendonvel tendon="mix"/><tendonactuatorfrc tendon="cord"/>',
        '<tendonlimitpos tendon="cord"/><tendonlimitvel tendon="cord"/>',
        '<tendonlimitfrc tendon="cord"/><actuatorpos actuator="pull"/>',
        '<actuatorvel actuator="push"/><actuatorfrc actuator="filtered"/>',
        '<actuatorpos actuator="steer"/><actuatorfrc actuator="motor"/>',
        '<subtreecom body="arm"/><subtreelinvel body="arm"/><subtreeangmom body="world"/>',
        "<e_potential/><e_kinetic/><clock/>",
        '<insidesite site="ground" objtype="body" objname="box"/>',
        '<tactile geom="under" mesh="pad"/><tactile geom="floor" mesh="pad"/>',
        '<distance body1="ball" body2="arm" cutoff="9"/>',
        '<normal geom1="knuckle" body2="ball" cutoff="9"/>',
        '<fromto geom1="knuckle" body2="box" cutoff="9"/>',
    ]
    objects = {"body": "box", "xbody": "fist", "geom": "knuckle", "site": "tip", "camera": "look"}
    frames = ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel", "linacc", "angacc")
    for kind, (objtype, name) in ((k, o) for k in frames for o in objects.items()):
        lines.append(f'<frame{kind} objtype="{objtype}" objname="{name}"/>')
    for kind in frames[:7]:
        lines.append(f'<frame{kind} objtype="site" objname="tip" reftype="body" refname="ball"/>')
    fields = "found force torque dist pos normal tangent"
    ends = ('body1="stack"', 'body1="ball" body2="stack"', 'site="ground" subtree2="box"', "",
            'geom1="floor"', 'body1="idle"')  # fmt: skip
    for reduce in ("none", "mindist", "maxforce", "netforce"):
        speeds = "" if reduce == "netforce" else " linvel angvel"
        for end in ends:
            lines.append(f'<contact {end} reduce="{reduce}" num="2" data="{fields + speeds}"/>')
    return "".join(lines)


@cache
def model(case: str) -> mujoco.MjModel:
    given = {**DEFAULTS, "integrator": case, "sensors": sensors(), **CASES[case]}
    return mujoco.MjModel.from_xml_string(MODEL.format(**given))


@cache
def starts(case: str) -> list[mujoco.MjData]:
    """Worlds near the initial state, with all inputs set."""
    mj, out = model(case), []
    for seed in range(WORLDS):
        rng = np.random.default_rng(seed)
        d = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, d.qpos, 0.02 * rng.normal(size=mj.nv), 1.0)
        d.qvel[:] = 0.5 * rng.normal(size=mj.nv)
        d.ctrl[:] = rng.normal(size=mj.nu)
        d.act[:] = rng.uniform(size=mj.na)
        d.qfrc_applied[:] = rng.normal(size=mj.nv)
        d.xfrc_applied[1:] = 0.3 * rng.normal(size=(mj.nbody - 1, 6))
        d.mocap_pos[:] += 0.1 * rng.normal(size=(mj.nmocap, 3))
        d.mocap_quat[:] += 0.1 * rng.normal(size=(mj.nmocap, 4))
        d.userdata[:] = rng.normal(size=mj.nuserdata)
        d.eq_active[:] = rng.uniform(size=mj.neq) > 0.3
        d.time = rng.uniform(0, 2)
        d.history[:] += 0.1 * (d.history == 0) * rng.uniform(size=mj.nhistory)
        out.append(d)
    return out


GIVEN = ("time qpos qvel act history plastic ctrl qfrc_applied xfrc_applied mocap_pos "
         "mocap_quat userdata eq_active tree_asleep").split()  # fmt: skip


def worlds(m: Model, keep, states: list[mujoco.MjData]) -> Data:
    d = stack([jaxsim.make_data(m, keep)] * len(states))
    given = {
        name: np.array([getattr(s, name) for s in states])
        for name in GIVEN
        if getattr(d, name) is not None
    }
    return d.replace(**{n: jnp.asarray(a, getattr(d, n).dtype) for n, a in given.items()})


def found(case: str, stage: str) -> Data:
    """All worlds after a stage."""
    return _run(case, stage)[0]


def forces(case: str, stage: str) -> jax.Array:
    """Forces of all contacts after a stage, in each world."""
    return _run(case, stage)[1]


@cache
def _run(case: str, stage: str) -> tuple[Data, jax.Array]:
    def run(m, d):
        new = public(stage)(m, d)
        return new, jaxsim.support.contact_forces(m, new)

    m = put_model(model(case))
    return jax.jit(jax.vmap(run, (None, 0)))(m, worlds(m, "all", starts(case)))


def expected(mj: mujoco.MjModel, mjd: mujoco.MjData, name: str):
    """A field of the oracle in the form of ours."""
    if name == "M":
        M = np.zeros((mj.nv, mj.nv))
        mujoco.mj_fullM(mj, mjd, M)
        return M
    if name == "qLD":
        L = np.zeros((mj.nv, mj.nv))
        mujoco.mju_sparse2dense(L, mjd.qLD, mj.M_rownnz, mj.M_rowadr, mj.M_colind)
        return L
    if name == "ten_J":
        return dense_tendon(mj, mjd)
    if name == "actuator_moment":
        return dense_moment(mj, mjd)
    if name == "efc_J" and mujoco.mj_isSparse(mj):
        J = np.zeros((mjd.nefc, mj.nv))
        rows = mjd.efc_J_rownnz, mjd.efc_J_rowadr, mjd.efc_J_colind
        mujoco.mju_sparse2dense(J, mjd.efc_J, *rows)
        return J.ravel()
    if name == "efc_state":
        work = mujoco.MjData(mj)
        mujoco.mj_copyData(work, mj, mjd)
        consistent_state(mj, work)
        return work.efc_state.copy()
    if name == "warning":
        return np.array([w.number for w in mjd.warning])[:7]
    if name == "warning_lastinfo":
        return np.array([w.lastinfo for w in mjd.warning])[:7]
    return np.asarray(getattr(mjd, name))


def differences(mj: mujoco.MjModel, d: Data, force: jax.Array, mjd: mujoco.MjData) -> list[str]:
    """The fields of one world that differ, with the largest error of each."""
    wrong = []

    def compare(name: str, ours, theirs) -> None:
        ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
        ours = ours.reshape(theirs.shape)
        error = np.abs(ours - theirs).max(initial=0)
        if not error <= TOLERANCE * (1 + np.abs(theirs).max(initial=0)):
            places = np.argwhere(~(np.abs(ours - theirs) <= TOLERANCE * (1 + np.abs(theirs))))
            wrong.append(f"{name}: {error:.2g} at {places[:4].tolist()}")

    points = mjd.ten_wrapnum.sum()  # past them MuJoCo's list has what it had before
    for name, field in Data.fields.items():
        off = name in SLEEP_FIELDS and d.tree_asleep is None
        off |= name in IPC_FIELDS | SINGLE_FIELDS  # tests/physics/ipc, integrate/test_clock.py
        if field.nested is not None or field.static or name in NOT_COMPARED or off:
            continue
        if name.startswith("wrap_"):
            point = (3,) if name == "wrap_xpos" else ()
            ours, theirs = (np.reshape(getattr(x, name), (2 * mj.nwrap, *point)) for x in (d, mjd))
            compare(name, ours[:points], theirs[:points])
        elif not name.startswith("efc_"):
            compare(name, getattr(d, name), expected(mj, mjd, name))
        elif int(d.nefc) == mjd.nefc:
            ours = np.asarray(getattr(d, name))[: mjd.nefc]
            compare(name, ours, expected(mj, mjd, name)[: ours.size])
    if int(d.ncon) == mjd.ncon:
        # MuJoCo leaves H of other iterations: physics/constraint/test_row_fields.py
        for name in (*(Contact.fields.keys() - {"force", "passive", "H"}), "exclude"):
            ours, theirs = (getattr(c, name) for c in (d.contact, mjd.contact))
            none = -1 if name in ("flex", "elem", "vert") else 0  # nothing of a flex
            ours = np.full_like(theirs, none) if ours is None else ours[: mjd.ncon]
            compare(f"contact.{name}", ours, theirs)
        compare("contact_forces", force[: mjd.ncon], contact_forces(mj, mjd))
        if d.contact.force is not None:
            compare("contact.force", d.contact.force, force)
    return wrong


# a step ends with the results of `forward`, but for the method of Runge and Kutta
@pytest.mark.parametrize(
    ("case", "stage"),
    [
        ("Euler", "step"),
        pytest.param("discrete", "step", marks=pytest.mark.slow),
        pytest.param("implicit", "step", marks=pytest.mark.slow),
        pytest.param("RK4", "forward", marks=pytest.mark.slow),
        pytest.param("RK4", "step", marks=pytest.mark.slow),
        pytest.param("implicitfast", "step", marks=pytest.mark.slow),
    ],
)
def test_every_field_equals_that_of_mujoco(case, stage):
    mj, d = model(case), found(case, stage)
    wrong, contacts = [], set()
    for k, start in enumerate(starts(case)):
        mjd = mujoco.MjData(mj)
        mujoco.mj_copyData(mjd, mj, start)
        getattr(mujoco, f"mj_{stage}")(mj, mjd)
        force = forces(case, stage)[k]
        wrong += [f"world {k}: {w}" for w in differences(mj, world(d, k), force, mjd)]
        contacts.add(mjd.ncon)
    assert not wrong, "\n".join(wrong)
    assert len(contacts) > 1
    assert max(contacts) > 3


@pytest.mark.slow
def test_every_field_has_numbers_somewhere():
    """No field is compared as zeros only: in some world of some model each has another value."""
    seen = set(NOT_COMPARED)
    for case in CASES:
        d = found(case, "step")
        for name in Data.fields:
            if any(np.any(np.asarray(a)) for a in jax.tree.leaves(getattr(d, name))):
                seen.add(name)
    # a step has inverse dynamics under a flag only (test_inverse.py), nothing goes wrong here,
    # plugins with a state are those of users (tests/extend/test_state.py), and every output of
    # flexes is compared in physics/flex/test_flexes.py
    absent = {"qfrc_inverse", "solver_fwdinv", "warning", "warning_lastinfo", "plugin_state"}
    absent |= {name for name in Data.fields if name.startswith("flex")} | SINGLE_FIELDS
    assert set(Data.fields) - seen == absent


SMALL = """
<mujoco><worldbody><geom type="plane" size="3 3 1"/>
  <body pos="0 0 2"><freejoint/><geom size=".1"/></body>
  <body name="low" pos="1 0 .09"><freejoint/><geom size=".1"/><site name="s" size=".2"/></body>
  <body pos="2 0 1"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/><site name="t"/></body>
</worldbody>
<sensor><touch site="s"/><force site="t"/><contact body1="low" data="found force"/></sensor>
</mujoco>
"""


def _alike(some, every) -> tuple:
    """Two values of a field; of records only what the first of them has."""
    if not isinstance(some, Record):
        return some, every
    names = [name for name in some.fields if getattr(some, name) is not None]
    return tuple([getattr(record, name) for name in names] for record in (some, every))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kept",
    [
        [],
        pytest.param(["sensordata"], marks=pytest.mark.slow),
        pytest.param(["cinert", "crb"], marks=pytest.mark.slow),
        pytest.param(["cfrc_ext", "contact"], marks=pytest.mark.slow),
    ],
)
def test_what_is_kept_does_not_change_it(kept):
    """The fields that a Data carries are those of one that carries all."""
    m = put_model(mujoco.MjModel.from_xml_string(SMALL))
    speeds = jnp.asarray(np.random.default_rng(0).normal(size=(WORLDS, m.nv)))

    def after(keep) -> Data:
        d = stack([jaxsim.make_data(m, keep)] * WORLDS)
        return _stepper()(m, d.replace(qvel=speeds))

    some, every = after(kept), after("all")
    assert all(getattr(some, name) is not None for name in kept)
    for name in Data.fields:
        if getattr(some, name) is not None:
            pair = (jax.tree.leaves(d) for d in _alike(getattr(some, name), getattr(every, name)))
            for a, b in zip(*pair, strict=True):
                np.testing.assert_allclose(a, b, **DYNAMICS, err_msg=name)


@cache
def _stepper():
    return jax.jit(jax.vmap(jaxsim.step, (None, 0)))
