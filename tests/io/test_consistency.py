"""Models whose parts do not fit each other are refused, whichever part it is."""

import re

import numpy as np
import pytest
from mujoco.introspect.structs import STRUCTS

import jaxsim
from jaxsim.errors import AssetError
from jaxsim.io import tables
from jaxsim.io.consistency import check_consistency, check_structure
from jaxsim.model.structure import Structure
from jaxsim.model.switch.switches import FIXED_FIELDS, SWITCHES

RICH = """
<mujoco>
  <asset>
    <mesh name="tetrahedron" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <hfield name="hill" nrow="2" ncol="2" size="1 1 1 1"/>
    <texture name="flat" type="2d" builtin="flat" width="2" height="2"/>
    <material name="paint" texture="flat"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom type="hfield" hfield="hill" contype="0" conaffinity="0"/>
    <body name="ball">
      <freejoint/><geom name="ball" size=".1" material="paint"/><site name="s"/>
    </body>
    <body name="arm" pos="1 0 1">
      <joint name="hinge" range="-1 1"/>
      <geom type="mesh" mesh="tetrahedron" contype="0" conaffinity="0"/>
      <site name="end" pos=".1 0 0"/>
      <body>
        <joint name="slide" type="slide"/><geom name="drum" type="cylinder" size=".1 .1"/>
      </body>
    </body>
    <body name="moved" mocap="true"><site name="side"/></body>
  </worldbody>
  <tendon>
    <spatial name="rope">
      <site site="s"/><geom geom="drum" sidesite="side"/><site site="end"/>
    </spatial>
    <fixed name="sum"><joint joint="hinge" coef="1"/></fixed>
  </tendon>
  <equality>
    <connect body1="ball" anchor="0 0 0"/><joint joint1="hinge" joint2="slide"/>
  </equality>
  <contact>
    <exclude body1="ball" body2="arm"/><pair geom1="ball" geom2="floor"/>
  </contact>
  <actuator>
    <motor joint="hinge"/><position tendon="rope"/><general site="end" dyntype="filter"/>
  </actuator>
  <sensor>
    <jointpos joint="hinge"/><touch site="s"/><clock/>
    <framepos objtype="site" objname="end" reftype="body" refname="ball"/>
  </sensor>
  <custom>
    <numeric name="n" data="1 2"/><text name="t" data="abc"/>
    <tuple name="u"><element objtype="body" objname="arm"/></tuple>
  </custom>
  <keyframe><key/></keyframe>
</mujoco>
"""

# Counts that other parts of a model need not agree with: buffers, and the most there may be.
FREE = """nuserdata ncontact nnear nstart ngravcomp nhistory nmocap npluginstate npluginparam
nplastic nemax nM nD nB npolygonmax nmeshdegmax nflexelem nhullmost""".split()
OWN = re.compile(
    "wrap_sideid|kind_near|body_rest|hull_.*|geom_(hullid|prismnum)|mesh_(poly(place|quad)|faceorder)"
    "|plugin_param(adr|num)|actuator_states|eq_(elemid|modenum)|rod_.*|flex_(touches|boxed|prismnum|elemorder)"
)  # not of mjModel


@pytest.fixture(scope="module")
def rich() -> jaxsim.Model:
    m = jaxsim.load_model(RICH)
    check_consistency(m)
    return m


def forged(m: jaxsim.Model, **changed) -> str:
    """Return the error for a model with other tables."""
    with pytest.raises(AssetError) as caught:
        check_consistency(m.replace(structure=m.structure.replace(**changed)))
    return str(caught.value)


def test_every_table_is_known_to_the_check(rich):
    unknown = {
        name
        for name in rich.structure
        if name not in tables.COUNT_NAMES
        and name not in tables.TABLE_AXES
        and not re.fullmatch(tables.FLAG_PATTERN, name)
        and not name.startswith("flg_")
    }
    others = {"names", "refusals", "contact_refusals", "clash_places"}
    others |= {"body_matter", "stat_given", "plugin_keys", "collider_keys"}
    assert unknown == others
    declared = {f.name: getattr(f, "array_extent", None) for f in STRUCTS["mjModel"].fields}
    numbers = {"mjNTEXROLE": 10, "mjNSENS": 3}
    for name, axes in tables.TABLE_AXES.items():
        if not OWN.fullmatch(name):
            assert axes == tuple(numbers.get(n, n) for n in declared[name]), name


@pytest.mark.parametrize("name", tables.COUNT_NAMES)
def test_a_forged_count(rich, name):
    assert name in forged(rich, **{name: -1})
    assert name in forged(rich, **{name: 0.5})
    if name not in FREE:
        assert forged(rich, **{name: getattr(rich, name) + 1})


@pytest.mark.parametrize("name", tables.TABLE_AXES)
def test_a_forged_length(rich, name):
    value = getattr(rich, name)
    longer = value + b"0" if isinstance(value, bytes) else np.concatenate([value, value[-1:]])
    if len(longer) == len(value):
        longer = np.zeros((1, *value.shape[1:]), value.dtype)
    assert f"{name} " in forged(rich, **{name: longer})
    assert f"{name} " in forged(rich, **{name: 3})


REFERENCES = {
    **{name: count for names, count, _ in tables.IDS for name in names.split()},
    **{span.adr: span.total for span in tables.SPANS},
    **tables.SPAN_STARTS,
    **{row.name: "the kind of object" for row in tables.OBJECT_REFERENCES},
}


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("wrong", [-2, 10**6])
def test_a_forged_reference(rich, name, wrong):
    value = getattr(rich, name)
    for i in range(value.size):
        changed = value.copy()
        changed.flat[i] = wrong
        kind = next((row.kind for row in tables.OBJECT_REFERENCES if row.name == name), None)
        if kind in ("wrap_type", "sensor_objtype", "sensor_reftype", "geom_type") and value[i] < 0:
            continue  # there is no object
        if name == "actuator_trnid" and value.flat[i] < 0 and i % 2:
            continue
        assert name in forged(rich, **{name: changed})


@pytest.mark.parametrize("name", tables.ENUM_VALUES)
def test_a_forged_kind(rich, name):
    value = getattr(rich, name)
    if len(value):
        changed = value.copy()
        changed[0] = 99
        assert f"{name}[0] is 99, expected one of " in forged(rich, **{name: changed})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (3, "names is missing"),
        ((3,), "names has an entry '3'"),
        ((("body", (1, 2, 3, 4, 5)),), "a name of body is no text"),
        ((("body", ("world",)),), "1 names of body, nbody is 5"),
    ],
)
def test_forged_names(rich, names, message):
    assert message in forged(rich, names=names)
    assert "refusals has an entry" in forged(rich, refusals=((1, 2, 3),))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"body_parentid": [0, 0, 3, 2, 0]}, "body_parentid[2] is 3; a parent must precede"),
        ({"jnt_type": [3, 0, 3]}, "jnt_qposadr and its width"),
        ({"mesh_face": 9}, "mesh_face[0, 0] is 9, more than its owner has"),
        ({"mesh_polyvert": 9}, "mesh_polyvert[0] is 9, more than its owner has"),
        ({"mesh_extrema": 9}, "mesh_extrema[0, 0] is 9, more than its owner has"),
        ({"hfield_nrow": 9}, "hfield_adr and size"),
        ({"tex_width": 2**30}, "tex_adr and size"),
        ({"geom_dataid": 5}, "expected 0 to 0 (n"),
    ],
)
def test_parts_that_do_not_fit_each_other(rich, change, message):
    ((name, value),) = change.items()
    table = np.zeros_like(getattr(rich, name))
    table[...] = value
    assert message in forged(rich, **{name: table})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hull_cell", 2**20, "hull_cell"),
        ("hull_cell", 7, "hull_cell and its parts"),
        ("hull_part", -9, "hull_part"),
        ("hull_part", 2**20, "hull_part"),
        ("hull_vertid", 99, "hull_vertid"),
        ("geom_hullid", 1, "geom_hullid"),
        ("mesh_polyquad", 99, "mesh_polyquad"),
    ],
)
def test_tables_of_hulls(name, value, message):
    """Each would lead out of the table that it points into."""
    m = jaxsim.load_model(
        """<mujoco><asset><mesh name="a" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
        <geom type="plane" size="1 1 1"/><body><freejoint/><geom type="mesh" mesh="a"/></body>
        </worldbody></mujoco>"""
    )
    check_consistency(m)
    table = np.array(getattr(m, name))
    table.flat[-1] = value
    assert message in forged(m, **{name: table})


def test_activations_of_motors_that_do_not_fit():
    m = jaxsim.load_model(
        """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody><actuator>
        <motor joint="a"/><pid joint="a" ki="1"/></actuator></mujoco>"""
    )
    check_consistency(m)
    states = np.array(m.actuator_states)
    states[1] = True
    assert "actuator_states of item 1" in forged(m, actuator_states=states)


def test_a_missing_switch(rich):
    """Without a flag the program would stop in the middle of a trace."""
    s = rich.structure
    for switch in (*SWITCHES, *FIXED_FIELDS):
        rest = Structure({name: getattr(s, name) for name in s if name != switch.flag})
        with pytest.raises(AssetError, match=f"{switch.flag} is missing"):
            check_structure(rest)
