"""Models made and changed in Python: add, find, rename, delete, attach, classes."""

import mujoco
import numpy as np
import pytest

from jaxsim.compile import compile_spec, flatten
from jaxsim.errors import ModelError
from jaxsim.spec import Spec

LEG = """
    <mujoco model="leg">
      <compiler angle="radian" eulerseq="zyx" inertiagrouprange="1 2"/>
      <default>
        <geom rgba="1 0 0 1" group="1"/>
        <position kp="3"/>
        <default class="thin"><joint armature=".1"/></default>
      </default>
      <asset><material name="steel"/></asset>
      <worldbody>
        <light name="lamp"/>
        <body name="thigh" childclass="thin" euler="1 2 .5">
          <joint name="hip" range="-1 1" ref=".3"/>
          <geom name="bone" size=".1" material="steel"/>
          <geom size=".3" group="0"/>
          <body name="shin" pos="0 0 -1">
            <joint name="knee"/><geom size=".1"/><site name="s"/>
          </body>
        </body>
        <body name="ball"><joint name="free"/><geom size=".1"/><site name="s3"/></body>
      </worldbody>
      <tendon><spatial name="rope"><site site="s"/><site site="s3"/></spatial></tendon>
      <actuator><motor name="m" joint="hip"/><position name="p" joint="free"/></actuator>
      <sensor><jointpos name="angle" joint="hip"/><clock name="time"/></sensor>
      <keyframe><key name="bent" qpos="1 2 3"/></keyframe>
    </mujoco>"""
TORSO = """
    <mujoco>
      <default><geom condim="4"/><joint damping="3"/></default>
      <worldbody>
        <body name="torso"><freejoint/><geom size=".1"/>
          <frame name="hips" pos="1 0 0"/>
          <site name="mount" pos="0 0 .3" euler="10 20 30"/>
        </body>
      </worldbody>
      <keyframe><key name="start" time="1" qpos="1 2 3 1 0 0 0"/></keyframe>
    </mujoco>"""


def test_a_model_from_nothing():
    spec = Spec()
    spec.root.set("model", "pendulum")
    spec.at("option").update(timestep=0.001, gravity=[0, 0, -5])
    spec.at("option/flag").set("contact", False)
    spec.default().add("joint", damping=0.5)
    soft = spec.default().add("default", class_="soft")
    soft.add("geom", solref=[0.1, 1])
    arm = spec.at("worldbody").add("body", name="arm", pos=(0, 0, 1))
    arm.add("joint", name="hinge", axis=np.array([0, 1, 0]))
    arm.add("geom", class_="soft", type="capsule", size=0.1, fromto=[0, 0, 0, 0, 0, 1])
    spec.at("actuator").add("motor", joint="hinge", gear=2)
    ours, theirs = compile_spec(spec), mujoco.MjModel.from_xml_string(spec.to_xml())
    for name in ("body_mass", "geom_solref", "dof_damping", "actuator_gear", "body_inertia"):
        np.testing.assert_allclose(ours.fields[name], getattr(theirs, name), err_msg=name)
    assert ours.opt["timestep"] == 0.001
    assert ours.opt["disableflags"] == theirs.opt.disableflags != 0
    assert spec.modelname == "pendulum"


def test_look_up():
    spec = Spec.from_string(LEG)
    assert spec["joint", "knee"].tag == "joint"
    assert [e.name for e in spec.elements("actuator")] == ["m", "p"]
    assert [e.name for e in spec.elements("body")] == ["thigh", "shin", "ball"]
    assert spec.default("thin").find("joint").get("armature") == 0.1
    with pytest.raises(KeyError, match="no joint is called 'kne'; did you mean 'knee'"):
        spec["joint", "kne"]
    with pytest.raises(KeyError, match="no default class is called 'thick'"):
        spec.default("thick")
    with pytest.raises(ValueError, match="no kind of object is called 'joints'; did you mean"):
        spec.elements("joints")


def test_an_asset_is_called_as_its_file():
    spec = Spec.from_string('<mujoco><asset><mesh file="parts/arm.stl"/></asset></mujoco>')
    spec.rename("mesh", "arm", "leg")
    assert spec["mesh", "leg"].attrs == {"file": "parts/arm.stl", "name": "leg"}


REFUSED = {
    "cannot hold <geomm>; did you mean <geom>": lambda s: s["body", "shin"].add("geomm"),
    "has no attribute 'sise'; did you mean 'size'": lambda s: s["geom", "bone"].set("sise", 1),
    "size needs 1 to 3 numbers, got 4": lambda s: s["geom", "bone"].set("size", [1] * 4),
    "type cannot be 'bok'; did you mean 'box'": lambda s: s["geom", "bone"].set("type", "bok"),
    "has its <flag> already": lambda s: [s.at("option").add("flag") for _ in range(2)],
    "was removed in MuJoCo 4.0": lambda s: s["body", "shin"].add("composite"),
    "a joint named 'hip' exists already": lambda s: s.rename("joint", "knee", "hip"),
    "a default named 'main' exists": lambda s: s.rename("default", "thin", "main"),
    "<mujoco> is the model itself": lambda s: s.delete(s.root),
    "is not part of this model": lambda s: s.delete(Spec.from_string(LEG)["body", "shin"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_edits_that_are_refused(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message](Spec.from_string(LEG))


def test_compiling_checks_what_was_made():
    spec = Spec()
    spec.at("worldbody").add("body", name="b").update(euler=[1, 2, 3], quat=[1, 0, 0, 0])
    spec.at("sensor").add("touch", name="t")
    with pytest.raises(ModelError) as error:
        compile_spec(spec)
    assert str(error.value).splitlines() == [
        "<model>: <body name='b'>: quat, euler exclude each other; keep one",
        "<model>: <touch name='t'>: it needs the attribute 'site'",
    ]


def test_deleting_takes_along_what_refers():
    spec = Spec.from_string(LEG)
    along = spec.delete(spec["body", "shin"])
    assert [e.label for e in along] == ["<spatial name='rope'>"]
    along = spec.delete(spec["joint", "hip"])
    assert sorted(e.name for e in along) == ["angle", "m"]
    compiled = compile_spec(spec)
    assert compiled.names["joint"] == ("free",)
    np.testing.assert_array_equal(compiled.fields["key_qpos"], [[3.0]])
    with pytest.raises(ValueError, match=r"flatten\(spec\)"):
        spec.to_xml()
    text = flatten(spec).to_xml()
    np.testing.assert_array_equal(mujoco.MjModel.from_xml_string(text).key_qpos, [[3.0]])


def test_deleting_a_body_is_as_in_mujoco():
    theirs = mujoco.MjSpec.from_string(LEG)
    theirs.delete(theirs.body("shin"))
    spec = Spec.from_string(LEG)
    spec.delete(spec["body", "shin"])
    _assert_same(spec, theirs.compile())


def test_what_still_refers_is_named():
    spec = Spec.from_string(LEG)
    assert spec.delete(spec["material", "steel"]) == []
    with pytest.raises(ModelError, match="material='steel' names no material"):
        compile_spec(spec)


def _assert_same(spec: Spec, theirs: mujoco.MjModel) -> None:
    """All that has a name is the same; order is that of the text here."""
    ours = compile_spec(spec)
    kinds = {
        "body": ("body_mass", "body_pos", "body_quat", "body_inertia", "body_subtreemass"),
        "joint": ("jnt_range", "jnt_limited", "jnt_axis"),
        "geom": ("geom_size", "geom_condim", "geom_rgba", "geom_group"),
        "actuator": ("actuator_gainprm", "actuator_biasprm"),
        "sensor": ("sensor_type",),
        "key": ("key_time",),
    }
    for kind, fields in kinds.items():
        obj = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        there = {name: mujoco.mj_name2id(theirs, obj, name) for name in ours.names[kind] if name}
        assert min(there.values(), default=0) >= 0, (kind, there)
        for name, j in there.items():
            i = ours.names[kind].index(name)
            for field in fields:
                a, b = ours.fields[field][i], getattr(theirs, field)[j]
                np.testing.assert_allclose(a, b, atol=1e-12, err_msg=f"{field} of {name}")
    for count in ("nbody", "njnt", "ngeom", "nactuator", "nsensor", "ntendon", "nkey", "nmat"):
        assert ours.fields[count] == getattr(theirs, count), count


def _attached() -> tuple[Spec, mujoco.MjSpec]:
    spec, leg = Spec.from_string(TORSO), Spec.from_string(LEG)
    frame = spec.attach(leg, spec["frame", "hips"], prefix="left-", suffix="!")
    assert frame.tag == "frame"
    body = spec.attach(leg, spec["site", "mount"], part=leg["body", "thigh"], prefix="up-")
    assert body is spec["body", "up-thigh"]
    theirs = mujoco.MjSpec.from_string(TORSO)
    theirs.attach(
        mujoco.MjSpec.from_string(LEG), prefix="left-", suffix="!", frame=theirs.frame("hips")
    )
    theirs.site("mount").attach_body(mujoco.MjSpec.from_string(LEG).body("thigh"), "up-", "")
    return spec, theirs


@pytest.mark.filterwarnings("ignore")
def test_attaching_is_as_in_mujoco():
    spec, theirs = _attached()
    _assert_same(spec, theirs.compile())


@pytest.mark.filterwarnings("ignore")
def test_what_was_attached_is_written_when_it_is_flat():
    spec, _ = _attached()
    with pytest.raises(ValueError, match=r"jaxsim.flatten\(spec\)"):
        spec.to_xml()
    ours = compile_spec(spec)
    text = flatten(spec).to_xml()
    again = compile_spec(Spec.from_string(text))
    for name, value in ours.fields.items():
        if name == "body_matter":
            continue  # a flat file has inertias where this one had geoms
        np.testing.assert_array_equal(again.fields[name], value, err_msg=name)
    assert again.names == ours.names
    assert mujoco.MjModel.from_xml_string(text).nbody == ours.fields["nbody"]


def test_attaching_leaves_the_other_model_alone():
    spec, leg = Spec.from_string(TORSO), Spec.from_string(LEG)
    before = leg.to_xml()
    spec.attach(leg, spec["frame", "hips"], prefix="a-")
    assert leg.to_xml() == before
    with pytest.raises(ValueError, match="a light named 'a-lamp' exists already; choose another"):
        spec.attach(leg, spec["frame", "hips"], prefix="a-")
    spec.attach(leg, spec["frame", "hips"], prefix="b-")
    assert compile_spec(spec).fields["nbody"] == 8


def test_settings_that_one_file_cannot_have_are_refused():
    spec, leg = Spec.from_string(TORSO), Spec.from_string(LEG)
    leg.at("compiler").set("alignfree", True)
    spec.attach(leg, spec.at("worldbody"), prefix="a-")
    compile_spec(spec)
    with pytest.raises(ModelError, match="a model whose <compiler alignfree> differs"):
        flatten(spec)


def test_a_part_of_the_model_itself():
    spec = Spec.from_string(LEG)
    spec.attach(spec, spec.at("worldbody"), part=spec["body", "thigh"], prefix="second-")
    names = compile_spec(spec).names
    assert names["body"] == ("world", "thigh", "shin", "ball", "second-thigh", "second-shin")
