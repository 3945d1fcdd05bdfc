"""The public names: few in `jaxsim`, the rest in namespaces that are imported when used."""

import inspect
import subprocess
import sys

import jax
import pytest
from public import NAMESPACES

import jaxsim

BALL = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
ARM = """
<mujoco><option solver="PGS" noslip_iterations="2"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .2"><joint name="a" axis="0 1 0" frictionloss=".1" limited="true" range="0 1"/>
    <geom size=".1"/><site name="s"/>
    <body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom size=".1"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed></tendon>
<equality><joint joint1="a" joint2="b"/></equality>
<actuator><position joint="a" kp="2" nsample="4" delay=".01"/><motor tendon="t"/></actuator>
<sensor><accelerometer site="s" nsample="4" delay=".01"/><force site="s"/></sensor></mujoco>
"""
SPACES = {space.__name__: space for space in (*NAMESPACES, jaxsim.extend)}
MOVED = [
    *(
        (name, f"{space}.{name}")
        for space in ("stages", "support", "extend")
        for name in SPACES[f"jaxsim.{space}"].__all__
    ),
    ("GeomType", "enums.GeomType"),
    ("Impl", "mjx.Impl"),
    ("check", "check_warnings"),
    ("sensor", "sensor_data"),
]


def lookup(path: str) -> object:
    """Return the object at a dotted path below `jaxsim`."""
    value: object = jaxsim
    for part in path.split("."):
        value = getattr(value, part)
    return value


def test_root_lists_about_sixty_names():
    assert len(jaxsim.__all__) == len(set(jaxsim.__all__)) <= 66


@pytest.mark.parametrize("space", SPACES)
def test_every_listed_name_exists(space):
    assert all(hasattr(SPACES[space], name) for name in SPACES[space].__all__)


def test_names_are_in_one_namespace():
    names = [name for space in SPACES.values() for name in space.__all__]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("old", "new"), MOVED)
def test_old_name_is_a_deprecated_alias(old, new):
    with pytest.warns(DeprecationWarning, match=rf"jaxsim\.{old} is now jaxsim\.{new};") as found:
        assert getattr(jaxsim, old) is lookup(new)
    assert found[0].filename == __file__, "the warning names the line of the user"


@pytest.mark.parametrize("name", ["IntEnum", "nonsense"])
def test_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=name):
        getattr(jaxsim, name)


def test_dir_lists_names_and_namespaces():
    assert {*jaxsim.__all__, "control", "stages", "view"} <= set(dir(jaxsim))


def test_import_loads_neither_renderer_nor_tasks():
    lazy = ("jaxsim.view", "jaxsim.control", "jaxsim.learn", "jaxsim.mjx", "jaxsim.stages")
    code = f"import sys, jaxsim; print([name for name in {lazy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stderr


COMPLETE = {"forward_skip", "fwd_position", "inv_position"}  # these compute what they read
CARRYING = [
    (space.__name__, name)
    for space in NAMESPACES
    for name in space.__all__
    if getattr(getattr(space, name), "carries", None)
]


@pytest.mark.parametrize(("space", "name"), CARRYING)
@pytest.mark.parametrize(
    "model", [pytest.param(BALL, id="ball", marks=pytest.mark.slow), pytest.param(ARM, id="arm")]
)
def test_message_about_missing_fields_gives_a_call_that_works(model, space, name):
    """Evaluate `make_data(m, keep=[...])` of the message, and call the function with the result."""
    m, function = jaxsim.load_model(model), getattr(SPACES[space], name)
    d = jaxsim.make_data(m, keep=[])
    arguments = {"contact": 0} if "contact" in inspect.signature(function).parameters else {}
    if name in COMPLETE:
        jax.eval_shape(lambda d: function(m, d, **arguments), d)
        return
    with pytest.raises(ValueError, match="this Data does not carry") as caught:
        jax.eval_shape(lambda d: function(m, d, **arguments), d)
    keep = str(caught.value).partition("keep=[")[2].partition("]")[0]
    assert eval(keep, {"jaxsim": jaxsim}) is function
    kept = jaxsim.make_data(m, keep=[function])
    jax.eval_shape(lambda d: function(m, d, **arguments), kept)
