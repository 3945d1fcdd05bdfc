"""Changed fields of cameras, skins, materials, height fields and flexes are written to MJCF."""

import re

import numpy as np
import pytest
from compile.everything import FILES

from jaxsim.compile import compile_string, spec_from_tables
from jaxsim.compile.run import run_passes
from jaxsim.compile.write.unwritable_fields import UNWRITTEN
from jaxsim.compile.write.write_back import _written_fields
from jaxsim.model.model import Model
from jaxsim.spec import Spec

MODEL = """
    <mujoco>
      <option integrator="Euler"/>
      <asset>
        <hfield name="h" file="image.png" size="1 1 1 1"/>
        <mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 2"/>
        <texture name="t" type="2d" builtin="checker" width="4" height="4"/>
        <material name="mat" texture="t" metallic=".5"/>
        <skin name="skin" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2" texcoord="0 0 1 0 0 1">
          <bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1" vertweight="1 1"/>
          <bone body="b" bindpos="1 0 0" bindquat="1 0 0 0" vertid="1 2" vertweight="3 1"/>
        </skin>
      </asset>
      <default><default class="lens"><camera focalpixel="30 40"/></default></default>
      <worldbody>
        <geom name="ground" type="hfield" hfield="h"/>
        <camera fovy="30"/>
        <camera class="lens" sensorsize=".02 .03" resolution="90 80"/>
        <body name="a" pos="0 0 1">
          <freejoint/><geom type="mesh" mesh="m" surfacevel="1 2 3 4 5 6"/>
          <geom size=".1" pos="0 0 1" fluidshape="ellipsoid" user="1"/>
          <body name="c"><joint name="s" type="slide"/><geom size=".1"/></body>
          <body name="b"><joint type="ball"/><geom type="box" size=".1 .2 .3"/></body>
        </body>
        <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01"
          pos="3 0 0"><elasticity young="100" thickness=".01" elastic2d="both" yield=".1 .2"/>
          <pin id="0"/></flexcomp>
        <flexcomp name="rope" type="grid" count="4 1 1" spacing=".1 .1 .1" dim="1" radius=".01"
          pos="3 0 0"><edge stiffness="1" damping="1"/></flexcomp>
      </worldbody>
      <tendon><fixed name="t"><joint joint="s" coef="1"/></fixed></tendon>
    </mujoco>"""


def _scaled(value, by=1.1):
    return (np.asarray(value) * by).astype(np.asarray(value).dtype)


def _first(value, change=_scaled):
    new = np.array(value)
    new[0] = change(new[0])
    return new


def _rotated(value):
    value = value + np.array([0, 0.1, 0.2, 0.3])
    return value / np.linalg.norm(value, axis=1, keepdims=True)


CHANGES = {
    "geom_fluid": lambda v: v * np.array([1] + [2] * 5 + [1] * 6),
    "geom_surfacevel": _scaled,
    "cam_fovy": _first,
    "cam_sensorsize": lambda v: v * np.float32([1.1, 1.2]),
    "cam_intrinsic": lambda v: v * np.float32([[1], [1.5]]),
    "hfield_size": _scaled,
    "hfield_data": lambda v: np.float32([1, 0.25, 0.5, 0]),
    "skin_rgba": lambda v: v * np.float32(0.9),
    "skin_inflate": lambda v: v + np.float32(0.1),
    "skin_vert": _scaled,
    "skin_texcoord": _scaled,
    "skin_bonebindpos": _scaled,
    "skin_bonebindquat": lambda v: _rotated(v).astype(np.float32),
    "skin_bonevertweight": lambda v: np.float32([1, 0.5, 0.5, 1]),
    "mat_metallic": _scaled,
    "mat_rgba": lambda v: v * np.float32(0.9),
    "mat_texrepeat": _scaled,
    "flex_radius": _scaled,
    "flex_rgba": lambda v: v * np.float32(0.9),
    "flex_friction": _scaled,
    "flex_solimp": lambda v: v * np.array([1, 1, 2, 1, 1]),
    "flex_damping": lambda v: v + 0.1,
    "flex_edgedamping": lambda v: _scaled(v, 3),
    "flex_yield": _scaled,
    "flex_vert": lambda v: v + np.array([0.01, 0, 0]) * (v != 0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_field_survives_writing_and_compiling(name):
    before = compile_string(MODEL, assets=FILES)
    value = CHANGES[name](before.fields[name])
    assert not np.array_equal(value, before.fields[name])
    spec = spec_from_tables(Spec.from_string(MODEL, files=FILES), {name: value})
    after = compile_string(spec.to_xml(), assets=FILES)
    np.testing.assert_allclose(after.fields[name], value, rtol=3e-7, atol=1e-15)


def test_every_leaf_is_written_or_has_a_reason_not_to_be_written():
    written = _written_fields(run_passes(Spec.from_string(MODEL, files=FILES)))
    leaves = {
        name
        for name, field in Model.fields.items()
        if field.nested is None and name not in ("structure", "opt", "stat")
    }
    assert leaves - written - UNWRITTEN.keys() == set()
    assert written & UNWRITTEN.keys() == set()


UNWRITABLE = {
    "cam_fovy": (lambda v: v + 1, r"cam_fovy \(row 1\): with a sensor it follows from its size"),
    "hfield_data": (lambda v: v * np.float32(0.5), "heights are from 0 to 1"),
    "geom_fluid": (lambda v: v * 2, "virtual masses follow from the shape"),
    "dof_M0": (lambda v: v * 2, "set_const computes it"),
    "body_mass": (lambda v: v + 1, r"body_mass \(row 0\): the world has no mass"),
    "dof_armature": (lambda v: v + np.arange(len(v)), "the dofs of a joint have one"),
    "jnt_springyield": (lambda v: v + 1, "a free joint does not yield"),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_change_that_mjcf_cannot_express_is_rejected_with_the_reason(name):
    change, words = UNWRITABLE[name]
    value = change(compile_string(MODEL, assets=FILES).fields[name])
    with pytest.raises(ValueError, match=words):
        spec_from_tables(Spec.from_string(MODEL, files=FILES), {name: value})


def test_a_skin_of_a_file_is_written_out_when_it_changes():
    number = {"i": np.int32, "f": np.float32}
    data = b"".join(
        np.array(values, number[kind]).tobytes()
        for kind, values in (("i", [3, 0, 1, 1]), ("f", range(9)), ("i", [0, 1, 2]))
    )
    data += b"a".ljust(40, b"\0") + np.float32([0, 0, 0, 1, 0, 0, 0]).tobytes()
    data += np.int32([3, 0, 1, 2]).tobytes() + np.float32([1, 1, 1]).tobytes()
    text = re.sub("<skin.*</skin>", '<skin file="s.skn"/>', MODEL, flags=re.DOTALL)
    files = {**FILES, "s.skn": data}
    value = _scaled(compile_string(text, assets=files).fields["skin_vert"])
    spec = spec_from_tables(Spec.from_string(text, files=files), {"skin_vert": value})
    assert "s.skn" not in spec.to_xml()
    after = compile_string(spec.to_xml(), assets=FILES)
    np.testing.assert_array_equal(after.fields["skin_vert"], value)
