"""Stages read and write in their traced programs exactly the fields that they declare."""

from collections import defaultdict
from functools import cache

import jax
import numpy as np
import pytest
from jax.interpreters import partial_eval
from test_every_output import CASES, DEFAULTS, MODEL, sensors
from test_model_leaves import MODELS

import jaxsim
from jaxsim.model.data import ALWAYS_KEPT, Data
from jaxsim.physics import api, standalone
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission
from jaxsim.physics.body.applied_force import xfrc_accumulate
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import bias, com_vel, rne
from jaxsim.physics.body.subtree import subtree_vel
from jaxsim.physics.collision.contact_list import rebuild_collision_result
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.flex.flex import flex, flex_velocity
from jaxsim.physics.forward import forward, fwd_constraint, smooth_force
from jaxsim.physics.integrate.step import step
from jaxsim.physics.inverse import compare_fwd_inv, inv_constraint, inverse
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.passive import passive
from jaxsim.physics.query.constraint_rows import constraint_rows
from jaxsim.physics.query.constraint_update import constraint_update, project_constraint
from jaxsim.physics.query.contact_force import contact_force, contact_forces
from jaxsim.physics.query.island import island
from jaxsim.physics.query.jacobian import jac_of_poses
from jaxsim.physics.sensor.body_force import body_acceleration, body_forces
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.stage import STAGES
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity
from jaxsim.transforms.layout import unpack_record

pytestmark = pytest.mark.kernels

PLAIN = (
    *(kinematics, com_pos, camlight, flex, tendon, crb, collision, transmission, tendon_velocity),
    flex_velocity,
    *(actuator_velocity, com_vel, passive, bias, make_rows, actuation, smooth_force),
    *(fwd_constraint, sensor_pos, sensor_vel, sensor_acc, energy_pos, energy_vel, subtree_vel),
    *(body_acceleration, body_forces, inv_constraint, compare_fwd_inv, rne),
    *(contact_force, contact_forces, xfrc_accumulate, rebuild_collision_result, jac_of_poses),
)
# made of several stages: what they declare to write is what they are for
COMPOSITE = (
    *(
        inverse,
        constraint_rows,
        constraint_update,
        project_constraint,
        island,
        standalone.fwd_kinematics,
        standalone.fwd_position,
        standalone.make_constraint,
        standalone.fwd_velocity,
    ),
    *(
        standalone.fwd_acceleration,
        standalone.solve,
        standalone.rne_postconstraint,
        standalone.tendon_bias,
    ),
    *(standalone.euler, standalone.implicit),
)
# those made of stages that `inverse` and `constraint_update` are made of too
SIMILAR = (constraint_rows, project_constraint, island, standalone.fwd_position)
LOOPS = (standalone.rungekutta4,)
# what takes more than a model and a data
MORE = {
    contact_force: (np.zeros(1, np.int32),),
    jac_of_poses: (np.ones(3), np.ones(1, np.int32)),
}
NAMES = (*Data.fields, *Data.working)
# a plugin of MuJoCo's that asks for the time
SLOWED = """<mujoco><extension><plugin plugin="mujoco.pid"/></extension>
<worldbody><camera/><body><joint name="a"/><geom size=".1"/></body></worldbody>
<actuator><plugin plugin="mujoco.pid" joint="a" actdim="1">
  <config key="slewmax" value="1"/></plugin>
</actuator></mujoco>"""

# sensors of each stage, a control and springs that have a past
LATE = """<mujoco><worldbody><camera/><body><joint name="a" stiffness="1" springyield="9"/>
  <geom size=".1" pos=".1 0 0"/><site name="s" pos=".1 0 0"/></body></worldbody>
<tendon><fixed name="t" stiffness="1" springyield=".1"><joint joint="a" coef="1"/></fixed></tendon>
<actuator><motor joint="a" nsample="2" delay=".01"/></actuator>
<sensor><jointpos joint="a" nsample="2" interval=".1"/><gyro site="s" nsample="2" delay=".01"/>
  <accelerometer site="s" nsample="2"/></sensor></mujoco>"""


# contacts that depend on velocities
FAST = """<mujoco><option><flag speculative="enable"/></option><worldbody>
  <geom type="box" size=".1 .1 .01"/><body><freejoint/><geom size=".1" pos=".1 0 0"/></body>
</worldbody></mujoco>"""

# contacts that are passive forces
PUSHING = """<mujoco><option integrator="discrete"/><worldbody><geom type="plane" size="1 1 1"/>
  <flexcomp name="cloth" type="grid" count="2 2 1" spacing=".1 .1 .1" dim="2" mass=".3"
    radius=".01"><contact selfcollide="none" passive="true"/></flexcomp></worldbody></mujoco>"""

DRIVES = """<general joint="lift" gaintype="affine" gainprm="1 -5 -3" actearly="true"
  dyntype="filter" dynprm=".1"/><muscle joint="turn" lengthrange="-1 1"/></actuator>"""


TWISTING = """<flexcomp name="wire" type="grid" count="3 1 1" spacing=".1 .1 .1" dim="1" mass=".3"
  radius=".01"><elasticity young="1e4"/></flexcomp>"""
BAR = TWISTING.replace(' young="1e4"', ' young="1e4" section="box" sectionsize=".02 .01"')


# so many dofs that the inertia is kept by its entries: five branches of ten hinges on one body
HINGES = "".join(f'<body pos=".1 0 {k}"><joint damping="1"/><geom size=".1"/>' for k in range(10))
BRANCHES = f"""<mujoco><option><flag contact="disable"/></option><worldbody><body><joint/>
  <geom size=".1"/>{5 * (HINGES + 10 * "</body>")}</body></worldbody></mujoco>"""


@cache
def scenes() -> list:
    """Models with a Data of shapes, with all fields and the working values of a step."""
    texts = [
        MODEL.format(
            **{
                **DEFAULTS,
                "armature": 5,
                **CASES[case],
                "integrator": case,
                "sensors": sensors(),
                "sleep": "",
            }
        )
        for case in ("implicitfast", "implicit", "discrete")
    ]
    # drives whose slopes ask for more than length and velocity
    discrete = texts.pop().replace("</actuator>", DRIVES)
    discrete = discrete.replace('name="lift"', 'name="lift" actuatorfrcrange="-50 50"', 1)
    out = []
    machine = MODELS["machine"]
    asleep = machine.replace('energy="enable"', 'energy="enable" sleep="enable"')
    held = machine.replace("<option ", '<option noslip_iterations="2" ', 1)
    leaping = machine.replace("<option ", '<option integrator="discrete" ', 1)
    soft = MODELS["soft"].replace(' elastic2d="both"', ' elastic2d="both" yield=".01"')
    stepped = soft.replace("<option ", '<option integrator="discrete" ', 1)
    stepped = stepped.replace('<edge damping=".2"/>', "").replace('stiffness="9" ', "")
    stepped = stepped.replace("</worldbody>", f"{TWISTING}</worldbody>")
    touching = MODELS["soft"].replace('contact="disable" ', "")
    touching = touching.replace("</worldbody>", f"{BAR}</worldbody>")
    several = [
        machine,
        soft,
        stepped,
        touching,
        held,
        discrete,
        leaping,
        FAST,
        PUSHING,
        BRANCHES,
        asleep,
    ]
    for text in [SLOWED, LATE, *texts, *several]:
        # with low capacity for pairs the boxes around elements are read
        m = jaxsim.load_model(text, pairs=8 if text is touching else None)
        m, d = unpack_record(m, 0), unpack_record(jaxsim.make_data(m, keep="all"), 0)
        parts = jax.eval_shape(lambda d, m=m: values(forward(m, d)), d)
        out.append((m, d, parts))
    return out


def values(d: Data) -> dict:
    return {name: getattr(d, name) for name in NAMES}


def truth(function, m, d, parts) -> tuple[set, set]:
    """Fields on which the results of a function depend, and fields that it changes."""

    def run(parts):
        given = d.replace_unchecked(parts, native=True)
        more = MORE.get(function, ())
        if function is constraint_update:
            more = (np.zeros(len(constraint_rows(m, given).active)),)
        out = function(m, given, *more)
        return values(out) if isinstance(out, Data) else {"result": out}

    def owners(tree):
        return [name for name in sorted(tree) for _ in jax.tree.leaves(tree[name])]

    closed, shapes = jax.make_jaxpr(run, return_shape=True)(parts)
    jaxpr = closed.jaxpr
    given, made = defaultdict(list), defaultdict(list)
    for name, variable in zip(owners(parts), jaxpr.invars, strict=True):
        given[name].append(id(variable))
    for name, variable in zip(owners(shapes), jaxpr.outvars, strict=True):
        made[name].append(id(variable))
    written = {name for name in made if made[name] != given[name]}
    _, used = partial_eval.dce_jaxpr(jaxpr, [name in written for name in owners(shapes)])
    read = {name for name, is_used in zip(owners(parts), used, strict=True) if is_used}
    return read, written - {"result"}


@cache
def truth_of_all(function, count: int | None = None) -> tuple[frozenset, frozenset]:
    """Combine the truth of all models, or of the first of them."""
    found = [truth(function, *scene) for scene in scenes()[:count]]
    return tuple(frozenset().union(*sets) for sets in zip(*found, strict=True))


@pytest.mark.parametrize("function", PLAIN, ids=lambda f: f.__name__)
def test_a_stage_reads_and_writes_what_it_declares(function):
    read, written = truth_of_all(function)
    declared = STAGES[function.__name__]
    assert sorted(read) == sorted(declared.reads)
    assert sorted(written) == sorted(declared.writes)


@pytest.mark.parametrize(
    "function",
    [pytest.param(f, marks=pytest.mark.slow) if f in SIMILAR else f for f in COMPOSITE],
    ids=lambda f: f.__name__,
)
def test_a_function_made_of_stages_reads_what_it_declares(function):
    # the trees of the last model may sleep: then results of the steps before wait in its Data
    read, written = truth_of_all(function, len(scenes()) - 1)
    declared = STAGES[function.__name__]
    assert sorted(read) == sorted(declared.reads)
    assert declared.writes <= written


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_a_loop_reads_what_it_declares_and_carries_the_rest(function):
    read, written = truth_of_all(function, 5)
    declared = STAGES[function.__name__]
    assert declared.reads <= read
    assert read - declared.reads <= written
    assert declared.writes <= written


@pytest.mark.parametrize(
    "function", [step, pytest.param(forward, marks=pytest.mark.slow)], ids=lambda f: f.__name__
)
def test_a_step_depends_on_state_and_inputs_alone(function):
    read, written = truth_of_all(function)
    assert read - written <= ALWAYS_KEPT  # what is written piece by piece counts as read


def test_every_declaration_is_tested():
    tested = {function.__name__ for function in (*PLAIN, *COMPOSITE, *LOOPS)}
    assert STAGES.keys() == tested | {"_rne_at_qacc"}


def test_the_fields_of_a_stage_are_enough_to_call_it():
    m = jaxsim.load_model(MODELS["machine"])
    for name in ("com_pos", "crb", "com_vel", "subtree_vel"):
        function = getattr(api, name)
        chain = [
            jaxsim.stages.kinematics,
            jaxsim.stages.com_pos,
            jaxsim.stages.tendon,
            jaxsim.stages.com_vel,
        ]
        d = jaxsim.make_data(m, keep=[*chain, function])
        for before in chain:
            d = before(m, d)
        full = jaxsim.make_data(m, keep="all")
        for before in chain:
            full = before(m, full)
        got, expected = function(m, d), function(m, full)
        for field in STAGES[name].writes:
            assert np.array_equal(getattr(got, field), getattr(expected, field)), (name, field)


# trees that have no inertia in common
TREES = f"""<mujoco><worldbody>{
    4 * '<body><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>'
}</worldbody></mujoco>"""


@pytest.mark.parametrize(
    "function", [kinematics, com_pos, camlight, flex, tendon, crb], ids=lambda f: f.__name__
)
def test_a_stage_of_positions_works_on_a_data_of_what_it_reads(function):
    """Read no other field, not even for its shape: `set_const` makes a Data of a few fields."""
    declared = STAGES[function.__name__]
    given = declared.reads | {"qpos"}  # whose shape has the worlds
    m = jaxsim.load_model(TREES)
    m, d = unpack_record(m, 0), unpack_record(jaxsim.make_data(m, keep="all"), 0)
    trees = m, d, jax.eval_shape(lambda d: values(forward(m, d)), d)
    for m, d, parts in (*scenes(), trees):
        own = {name: value if name in given else None for name, value in parts.items()}
        jax.eval_shape(
            lambda p, m=m, d=d: values(function(m, d.replace_unchecked(p, native=True))), own
        )
