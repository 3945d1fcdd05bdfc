"""Numbers that are changed in a compiled model come back when it is written and read again."""

import mujoco
import numpy as np
import pytest

from jaxsim.compile import compile_spec, compile_string, spec_from_tables
from jaxsim.spec import Spec

MODEL = """
    <mujoco>
      <option timestep="0.01"><flag contact="disable"/></option>
      <default>
        <joint damping="1 2 3"/>
        <default class="leg">
          <geom type="capsule" size=".05" fromto="0 0 0 0 0 -1"/>
          <position kp="5"/>
          <joint range="-30 30" springref="5"/>
        </default>
      </default>
      <worldbody>
        <body name="base" pos="0 0 1" euler="0 0 30">
          <freejoint name="root"/>
          <geom size=".1"/>
          <camera name="eye" pos="1 0 0" xyaxes="0 1 0 0 0 1"/>
          <frame pos="0 .1 0" euler="20 0 0" childclass="leg">
            <body name="leg">
              <joint name="hip" axis="1 0 0"/>
              <joint name="slide" type="slide" axis="0 0 1"/>
              <geom name="bone"/>
              <site name="foot" pos="0 0 -1"/>
              <light name="lamp" dir="0 1 -1"/>
            </body>
          </frame>
        </body>
        <body name="weight" pos="3 0 0">
          <inertial pos="0 .1 0" mass="2" fullinertia="1 1 1.2 .1 0 0"/>
          <joint name="ball" type="ball" range="0 60"/>
        </body>
      </worldbody>
      <tendon>
        <fixed name="cable" springlength=".1 .2"><joint joint="hip" coef="1"/>
          <joint joint="slide" coef="-2"/></fixed>
      </tendon>
      <equality><joint joint1="hip" joint2="slide" polycoef="0 1 0 0 0"/>
        <weld body1="leg" body2="weight" relpose="1 0 0 1 0 0 0"/></equality>
      <actuator>
        <position name="servo" class="leg" joint="hip" inheritrange="1"/>
        <motor name="motor" joint="slide" ctrlrange="-1 1" gear="3"/>
        <muscle name="muscle" tendon="cable" lengthrange=".1 2"/>
      </actuator>
      <sensor><jointpos joint="hip" noise=".1"/></sensor>
      <custom><numeric name="n" data="1 2 3"/></custom>
      <keyframe><key name="start" time="2"/></keyframe>
    </mujoco>"""


def _shift(value, by=0.01):
    return np.asarray(value, float) + by


def _unit(value):
    value = _shift(value, 0.05)
    return value / np.linalg.norm(value, axis=-1, keepdims=True)


def _only(value, rows, change=_shift):
    """A copy with some rows changed."""
    new = np.array(value, float)
    new[rows] = change(new[rows])
    return new


# How a field is changed, so that the model stays a model.
CHANGES = {
    "body_mass": lambda v: _only(v, slice(1, None)),
    "body_ipos": lambda v: _only(v, [1, 3]),
    "body_iquat": lambda v: _only(v, [2], _unit),
    "body_inertia": lambda v: v * 1.07,
    "body_gravcomp": lambda v: _only(v, [2]),
    "body_quat": lambda v: _only(v, [2, 3], _unit),
    "body_pos": lambda v: _only(v, [2, 3]),
    "jnt_axis": lambda v: _only(v, [1, 2], _unit),
    "jnt_pos": lambda v: _only(v, [1, 2]),
    "jnt_range": lambda v: _only(v, [1, 2], lambda r: r * 1.1),
    "jnt_stiffness": _shift,
    "jnt_stiffnesspoly": _shift,
    "jnt_margin": lambda v: _only(v, [1]),
    "jnt_solref": lambda v: _only(v, [1]),
    "dof_damping": lambda v: _only(v, [6]),
    "dof_dampingpoly": lambda v: _only(v, [7]),
    "dof_armature": lambda v: _only(v, slice(0, 6)),
    "dof_frictionloss": lambda v: _only(v, [6, 7]),
    "geom_size": lambda v: np.where(v > 0, v + 0.01, v),
    "geom_pos": _shift,
    "geom_quat": _unit,
    "geom_friction": _shift,
    "geom_rgba": lambda v: np.float32([[0.1, 0.2, 0.3, 0.4]] * len(v)),
    "site_pos": _shift,
    "site_quat": _unit,
    "cam_pos": _shift,
    "cam_quat": lambda v: _unit(v * [1, 2, 1, 1]),
    "light_pos": _shift,
    "light_dir": _unit,
    "qpos0": lambda v: _only(v, [7, 8]),
    "qpos_spring": lambda v: _only(v, [7, 8]),
    "tendon_lengthspring": _shift,
    "tendon_stiffness": _shift,
    "wrap_prm": _shift,
    "eq_data": lambda v: np.array(v) + np.eye(2, 12),
    "eq_solref": _shift,
    "actuator_gainprm": _shift,
    "actuator_biasprm": lambda v: _only(v, [0]),
    "actuator_dynprm": lambda v: _only(v, [2]),
    "actuator_ctrlrange": lambda v: _only(v, [0, 1], lambda r: r * 1.5),
    "actuator_forcerange": lambda v: np.array([[-1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]),
    "actuator_gear": lambda v: _only(v, [1]),
    "actuator_lengthrange": lambda v: _only(v, [2]),
    "sensor_noise": _shift,
    "numeric_data": _shift,
    "key_time": _shift,
    "key_qvel": _shift,
    "key_ctrl": _shift,
}


def _written(text: str, fields: dict, **kwargs):
    """The compiled model of what was written back."""
    return compile_string(spec_from_tables(Spec.from_string(text), fields, **kwargs).to_xml())


@pytest.mark.parametrize("name", CHANGES)
def test_each_field(name):
    before = compile_string(MODEL)
    value = CHANGES[name](before.fields[name])
    assert not np.array_equal(value, before.fields[name])
    after = _written(MODEL, {name: value})
    digits = {"rtol": 1e-15} if name.endswith(("quat", "eq_data")) else {"rtol": 0}
    np.testing.assert_allclose(after.fields[name], value, **digits)


def test_all_fields_at_once_and_nothing_else():
    before = compile_string(MODEL)
    changed = {name: change(before.fields[name]) for name, change in CHANGES.items()}
    for name in ("body_iquat", "jnt_axis", "light_dir"):
        changed[name] = before.fields[name]
    after = _written(MODEL, changed)
    for name, value in changed.items():
        np.testing.assert_allclose(after.fields[name], value, rtol=4e-16, err_msg=name)
    for name in ("jnt_limited", "actuator_ctrllimited", "geom_type", "jnt_type", "eq_type"):
        np.testing.assert_array_equal(after.fields[name], before.fields[name], err_msg=name)
    assert after.names == before.names


def test_single_precision():
    """Numbers that a model in float32 has not changed are left as they were."""
    before = compile_string(MODEL)
    names = [n for n in CHANGES if n != "eq_data"]
    same = {name: np.asarray(before.fields[name], np.float32) for name in names}
    after = _written(MODEL, same)
    for name in names:
        np.testing.assert_array_equal(after.fields[name], before.fields[name], err_msg=name)
    mass = same["body_mass"] * np.float32(1.1)
    after = _written(MODEL, {**same, "body_mass": mass})
    np.testing.assert_array_equal(np.float32(after.fields["body_mass"]), mass)


def test_options():
    flags = compile_string(MODEL).opt["disableflags"]
    opt = {"timestep": 0.003, "gravity": np.array([0, 1, -9]), "iterations": 7, "cone": 1}
    opt |= {"disableflags": flags ^ 0b10001, "enableflags": 2, "disableactuator": 6}
    after = _written(MODEL, {}, opt=opt, stat={"meanmass": 3.0, "extent": 5.0})
    for name, value in opt.items():
        np.testing.assert_array_equal(after.opt[name], value, err_msg=name)
    assert after.stat["extent"] == 5.0
    text = spec_from_tables(Spec.from_string(MODEL), {}, opt).to_xml()
    assert mujoco.MjModel.from_xml_string(text).opt.disableflags == opt["disableflags"]


def test_masses_stay_when_the_compiler_would_change_them():
    text = MODEL.replace(
        "<option", '<compiler settotalmass="7" boundmass=".2" inertiafromgeom="true"/><option', 1
    )
    mass = _only(compile_string(text).fields["body_mass"], slice(1, None))
    after = _written(text, {"body_mass": mass})
    np.testing.assert_array_equal(after.fields["body_mass"], mass)


def test_what_mjcf_cannot_say_is_refused_by_name():
    fields = compile_string(MODEL).fields
    with pytest.raises(ValueError, match=r"cannot express these values: geom_aabb \(row 0, 1\)"):
        _written(MODEL, {"geom_aabb": fields["geom_aabb"] * 2})
    with pytest.raises(ValueError, match=r"body_mass: has shape \(7,\), the model has \(4,\)"):
        _written(MODEL, {"body_mass": np.ones(7)})
    with pytest.raises(ValueError, match=r"dof_armature \(row 0, 1, 2, 3, 4\)"):
        _written(MODEL, {"dof_armature": np.arange(11.0) + 1})


def test_what_follows_from_other_numbers_may_be_there():
    """A model in which everything was worked out again is written like one in which it was not."""
    spec = Spec.from_string(MODEL)
    spec["body", "leg"].set("pos", [0, 0, 3])
    spec["geom", "bone"].set("density", 2000)
    wanted = compile_spec(spec).fields
    names = ("body_pos", "body_mass", "body_inertia", "body_subtreemass", "body_invweight0")
    after = _written(MODEL, {name: wanted[name] for name in names})
    for name in names:
        np.testing.assert_allclose(after.fields[name], wanted[name], rtol=1e-12, err_msg=name)
