"""Passes read and write what they declare, and their order satisfies the declarations."""

import struct

import pytest
from compile.everything import EVERYTHING, FILES, REST
from compile.recording import PRODUCTS, Log, group, record

from jaxsim.compile.context import Compilation
from jaxsim.compile.inertia_passes import INERTIA_PASSES
from jaxsim.compile.passes import PASSES
from jaxsim.mjcf import read_string
from jaxsim.spec import Spec

_KINDS = ("body", "joint", "geom", "site", "camera", "light", "tendon", "actuator", "sensor")
_TUPLE = "".join(
    f'<element objtype="{kind}" objname="{kind[0] if kind == "sensor" else kind}"/>'
    for kind in (*_KINDS, "equality", "mesh", "material", "numeric")
)

# What the models with every element do not say.
MORE = (
    # angles in degrees, springs, and every kind of object in a tuple
    f"""<mujoco><compiler angle="degree"/><asset><mesh name="mesh" file="tetra.obj"/>
    <material name="material"/><skin name="skin" file="a.skn"/></asset>
    <worldbody><geom name="geom" size="1"/><camera name="camera"/><light name="light"/>
    <site name="site" type="mesh" mesh="mesh" euler="10 20 30"/>
    <body name="body" euler="10 20 30"><joint name="joint" stiffness="3" springdamper=".5 .7"/>
    <geom size=".1"/><site name="s" size=".1"/></body></worldbody>
    <tendon><fixed name="tendon" stiffness="1" springyield="1">
    <joint joint="joint" coef="1"/></fixed></tendon>
    <equality><joint name="equality" joint1="joint"/></equality>
    <actuator><motor name="actuator" joint="joint" armature="1"/>
    <motor tendon="tendon" armature="1"/><motor site="s" refsite="site"/></actuator>
    <sensor><clock name="s"/></sensor>
    <custom><numeric name="numeric" data="1"/><tuple name="t">{_TUPLE}</tuple></custom>
    <keyframe><key qpos="1" ctrl="1 2 3"/></keyframe></mujoco>""",
    # free bodies with their frames in the center of mass
    """<mujoco><compiler alignfree="true"/><worldbody><body pos="1 2 3"><freejoint/>
    <geom type="box" size=".1 .2 .3" pos="1 0 0" euler="10 20 30"/><site/><camera/><light/>
    </body></worldbody>
    <keyframe><key time="1"/></keyframe></mujoco>""",
    # keyframes of an attached model
    """<mujoco><compiler alignfree="true"/><asset><model name="m" file="driven.xml"/></asset>
    <worldbody><body><freejoint/><geom size=".1" pos="1 0 0"/></body><attach model="m" prefix="p"/>
    </worldbody></mujoco>""",
    # visual geoms that weigh, and a stretched mesh
    """<mujoco><compiler discardvisual="true"/>
    <asset><mesh name="m" file="tetra.obj"/></asset><worldbody>
    <frame scale="1 2 3" scaling="geometry" euler="10 20 30"><body euler="10 20 30">
    <geom type="mesh" mesh="m" contype="0" conaffinity="0" euler="20 30 40"/></body></frame>
    </worldbody></mujoco>""",
    # what acts on a scaled part
    """<mujoco><worldbody><frame scale="2" euler="10 20 30"><body><joint name="j" type="slide"/>
    <geom size=".1"/><site name="s"/></body></frame></worldbody>
    <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
    <actuator><position joint="j" kp="2"/><motor tendon="t" armature="1"/>
    <motor site="s" gear="1 2 3 4 5 6"/></actuator>
    <keyframe><key ctrl="1 2 3"/></keyframe></mujoco>""",
    # a flex with a material
    """<mujoco><asset><material name="m"/></asset><worldbody>
    <flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01"
    material="m"/></worldbody></mujoco>""",
)

_BONE = (b"world".ljust(40, b"\0"), struct.pack("<7f", 0, 0, 0, 1, 0, 0, 0))
_SKIN = (
    struct.pack("<4i", 3, 0, 1, 1)
    + struct.pack("<9f", *range(9))
    + struct.pack("<3i", 0, 1, 2)
    + b"".join(_BONE)
    + struct.pack("<i3i3f", 3, 0, 1, 2, 1, 1, 1)
)
_DRIVEN = b"""<mujoco><worldbody><body name="a"><joint name="j"/><geom size=".1"/></body>
    <body mocap="true"/></worldbody><actuator><motor joint="j"/></actuator>
    <keyframe><key qpos="1" ctrl="1" mpos="1 2 3"/></keyframe></mujoco>"""
_FILES = {**FILES, "a.skn": _SKIN, "driven.xml": _DRIVEN}

ORDER = [step.name for step in PASSES]


@pytest.fixture(scope="module")
def log():
    found = Log()
    for text in (EVERYTHING, *REST, *MORE):
        record(Spec.from_element(read_string(text, assets=_FILES), files=_FILES), found)
    return found


def test_every_pass_runs_after_those_it_needs():
    for i, step in enumerate(PASSES):
        assert step.needs <= set(ORDER[:i]), f"{step.name} runs too early"


@pytest.mark.parametrize("step", PASSES, ids=ORDER)
def test_a_pass_reads_what_it_says_it_needs(step, log):
    assert step.needs == log.needs[step.name], _in_order(log.needs[step.name])


@pytest.mark.parametrize("step", PASSES, ids=ORDER)
def test_a_pass_gives_what_it_says(step, log):
    found = {group(key) for key in log.gives[step.name]} - {None}
    assert step.gives == found, " ".join(sorted(found))


def _in_order(names):
    """Return the declaration that matches the recorded reads and writes."""
    return " ".join(sorted(names, key=ORDER.index))


def test_the_passes_that_weigh_bodies_need_no_others():
    """They run by themselves, on a copy of the model."""
    before = {"read_settings", "option", "scale_frames"}
    for i, step in enumerate(INERTIA_PASSES):
        assert step.needs <= before | {other.name for other in INERTIA_PASSES[:i]}


def test_a_product_is_given_by_the_pass_it_names():
    for name, product in PRODUCTS.items():
        assert [step.name for step in PASSES if name in step.gives] == [product.by]


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_that_is_read_too_early_is_an_internal_error(name):
    with pytest.raises(AssertionError, match=rf"c\.{name} .* '{PRODUCTS[name].by}'"):
        getattr(Compilation(Spec()), name)
