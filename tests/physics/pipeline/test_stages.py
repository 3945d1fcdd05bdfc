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
from jaxsim.physics import inverse
from jaxsim.physics.pipeline import standalone
from jaxsim.physics.pipeline.forward import forward
from jaxsim.physics.pipeline.row import StageFields
from jaxsim.physics.pipeline.stages import (
    KINEMATICS,
    STAGES,
    TO_ACCELERATION,
    TO_POSITION,
    TO_VELOCITY,
)
from jaxsim.physics.query.constraint_rows import constraint_rows
from jaxsim.physics.query.constraint_update import constraint_update, project_constraint
from jaxsim.physics.query.island import island
from jaxsim.physics.step import check_acc, step
from jaxsim.transforms.layout import unpack_record

pytestmark = pytest.mark.kernels

# Functions made of stages: the rows give their names, other modules define them.
DEFINED = {
    **vars(standalone),
    **{f.__name__: f for f in (constraint_rows, constraint_update, project_constraint, island)},
    **{n: getattr(inverse, n) for n in ("inverse", "compare_fwd_inv", "inv_constraint")},
    "rne_at_qacc": lambda m, d: STAGES["rne"].function(m, d, d.qacc),
    "check_acc": check_acc,
}
PLAIN = [name for name, row in STAGES.items() if row.function is not None]
PLAIN += ["inv_constraint", "compare_fwd_inv", "rne_at_qacc"]
LOOPS = ["rungekutta4"]
RESETS = ["check_acc"]  # runs a whole step; test_check.py
COMPOSITE = [name for name in STAGES if name not in {*PLAIN, *LOOPS, *RESETS}]
# Those made of stages that are tested alone, or in `make_constraint` and `fwd_acceleration`.
SIMILAR = (
    *("constraint_rows", "project_constraint", "island", "fwd_position", "constraint_update"),
    *("inverse", "solve"),
)
# What takes more than a model and a data.
MORE = {
    "contact_force": (np.zeros(1, np.int32),),
    "jac_of_poses": (np.ones(3), np.ones(1, np.int32)),
}


def function_of(name: str):
    """Return the function of a row."""
    return STAGES[name].function or DEFINED[name]


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
        more = MORE.get(getattr(function, "__name__", ""), ())
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


@pytest.mark.parametrize("name", PLAIN)
def test_a_stage_reads_and_writes_what_it_declares(name):
    read, written = truth_of_all(function_of(name))
    declared = STAGES[name].fields
    assert sorted(read) == sorted(declared.reads)
    assert sorted(written) == sorted(declared.writes)


# A composite declares what the stages in it do, also for sleeping trees, which keep old results.
KEPT_ASLEEP = {"tree_asleep"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SIMILAR else n for n in COMPOSITE]
)
def test_a_function_made_of_stages_reads_what_they_declare(name):
    # the trees of the last model may sleep: then results of the steps before wait in its Data
    read, written = truth_of_all(function_of(name), len(scenes()) - 1)
    declared = STAGES[name].fields
    assert sorted(read - declared.reads) == []
    assert sorted(declared.inputs - read - KEPT_ASLEEP) == []
    assert sorted(declared.writes - written - KEPT_ASLEEP) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_reads_what_it_declares_and_carries_the_rest(name):
    read, written = truth_of_all(function_of(name), 5)
    declared = STAGES[name].fields
    assert declared.reads <= read
    assert read - declared.reads <= written
    assert declared.writes <= written


@pytest.mark.slow
@pytest.mark.parametrize("function", [step, forward], ids=lambda f: f.__name__)
def test_a_step_depends_on_state_and_inputs_alone(function):
    read, written = truth_of_all(function)
    assert read - written <= ALWAYS_KEPT  # what is written piece by piece counts as read


def test_fields_of_stages_in_a_row():
    first, second = StageFields.of("qpos -> xpos"), StageFields.of("xpos qvel -> cvel")
    assert first.then(second) == StageFields.of("qpos qvel -> xpos cvel")
    with pytest.raises(AssertionError, match="Data has no"):
        StageFields.of("qpose")


def test_stages_of_a_step_read_the_state_and_results_of_earlier_stages():
    written = set(ALWAYS_KEPT)
    for row in TO_POSITION + TO_VELOCITY + TO_ACCELERATION:
        assert sorted(row.fields.inputs - written) == [], row.name
        written |= row.fields.writes


@pytest.mark.parametrize("name", STAGES)
def test_docstring_names_the_function_of_mujoco(name):
    mujoco = STAGES[name].mujoco
    public = "rne" if name == "rne_at_qacc" else name
    documented = getattr(jaxsim.stages, public, None) or function_of(name)
    assert not mujoco or f"`{mujoco}`" in documented.__doc__


def test_the_fields_of_a_stage_are_enough_to_call_it():
    m = jaxsim.load_model(MODELS["machine"])
    for name in ("com_pos", "crb", "com_vel", "subtree_vel"):
        function = getattr(jaxsim.stages, name)
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
        for field in STAGES[name].fields.writes:
            assert np.array_equal(getattr(got, field), getattr(expected, field)), (name, field)


# trees that have no inertia in common
TREES = f"""<mujoco><worldbody>{
    4 * '<body><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>'
}</worldbody></mujoco>"""


@pytest.mark.parametrize("name", [*(row.name for row in KINEMATICS), "crb"])
def test_a_stage_of_positions_works_on_a_data_of_what_it_reads(name):
    """Read no other field, not even for its shape: `set_const` makes a Data of a few fields."""
    declared, function = STAGES[name].fields, function_of(name)
    given = declared.reads | {"qpos"}  # whose shape has the worlds
    m = jaxsim.load_model(TREES)
    m, d = unpack_record(m, 0), unpack_record(jaxsim.make_data(m, keep="all"), 0)
    trees = m, d, jax.eval_shape(lambda d: values(forward(m, d)), d)
    for m, d, parts in (*scenes(), trees):
        own = {name: value if name in given else None for name, value in parts.items()}
        jax.eval_shape(
            lambda p, m=m, d=d: values(function(m, d.replace_unchecked(p, native=True))), own
        )
