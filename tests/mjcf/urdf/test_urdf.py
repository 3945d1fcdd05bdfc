"""URDF text becomes the element tree of an MJCF model; errors have location and remedy."""

import logging

import numpy as np
import pytest

from jaxsim.errors import ModelError
from jaxsim.mjcf import read_file, read_string
from jaxsim.mjcf.element import Element

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    "</inertial>"
)
BOX = '<geometry><box size="1 2 3"/></geometry>'
KEEP = '<mujoco><compiler fusestatic="false" discardvisual="false"/></mujoco>'


def link(name: str, inside: str = "") -> str:
    return f'<link name="{name}">{INERTIAL}{inside}</link>'


def joint(parent: str, child: str, inside: str = "", *, name: str = "", kind="revolute") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name or parent + child}" type="{kind}">{ends}{inside}</joint>'


def robot(*parts: str, settings: str = KEEP) -> str:
    return "\n".join(('<robot name="r">', settings, *parts, "</robot>"))


def world(text: str) -> Element:
    found = read_string(text).find("worldbody")
    assert found is not None
    return found


def faults(text: str) -> list[str]:
    with pytest.raises(ModelError) as caught:
        read_string(text)
    return [str(problem) for problem in caught.value.problems]


def test_defaults_of_the_compiler():
    compiler = read_string("<robot/>").find("compiler")
    expected = {"angle": "radian", "eulerseq": "XYZ", "fusestatic": "true", "discardvisual": "true"}
    assert compiler.attrs == expected


def test_the_extension_element_sets_them():
    settings = '<compiler angle="degree" meshdir="m" fusestatic="false"/><option timestep="0.1"/>'
    root = read_string(robot(settings=f"<mujoco>{settings}</mujoco>"))
    compiler = root.find("compiler").attrs
    assert (compiler["angle"], compiler["fusestatic"], compiler["meshdir"]) == (
        "radian",
        "false",
        "m",
    )
    assert root.find("option").attrs == {"timestep": 0.1}


def test_the_tree_follows_the_joints():
    bodies = world(robot(link("c"), link("b"), link("a"), joint("a", "b"), joint("a", "c")))
    (a,) = bodies.children
    assert [e.attrs["name"] for e in a.find_all("body")] == ["b", "c"]
    assert a.find_all("body")[0].find("joint").attrs["axis"].tolist() == [1, 0, 0]


def test_a_long_chain():
    n = 2000
    parts = [link(str(i)) for i in range(n)] + [joint(str(i), str(i + 1)) for i in range(n - 1)]
    assert sum(e.tag == "body" for e in world(robot(*parts)).walk()) == n


def test_the_world_is_a_link():
    box = f"<collision>{BOX}</collision>"
    tree = world(robot(link("world", box), link("a"), joint("world", "a", kind="floating")))
    assert [e.tag for e in tree.children] == ["inertial", "geom", "body"]
    assert tree.find("body").find("joint").attrs["type"] == "free"


def test_visuals_are_drawn_and_no_more():
    (body,) = world(robot(link("a", f'<visual name="v">{BOX}</visual>'))).children
    geom = body.find("geom").attrs
    assert (geom["contype"], geom["conaffinity"], geom["group"], geom["density"]) == (0, 0, 1, 0)
    assert geom["size"].tolist() == [0.5, 1, 1.5]


def test_discarded_visuals_leave_their_color():
    material = '<material name="m"><color rgba="1 0 0 1"/></material>'
    text = f"<visual><geometry/>{material}</visual><collision>{BOX}</collision>"
    (body,) = world(robot(link("a", text), settings="")).children
    (geom,) = body.find_all("geom")
    assert geom.attrs["rgba"].tolist() == [1, 0, 0, 1]


def test_meshes_are_named_after_their_files():
    def mesh(file: str, scale: str = "1 1 1") -> str:
        shape = f'<geometry><mesh filename="{file}" scale="{scale}"/></geometry>'
        return f"<collision>{shape}</collision>"

    files = (mesh("x/a.obj"), mesh("x/a.obj"), mesh("x/a.obj", "2 2 2"), mesh("a1.obj"))
    root = read_string(robot(link("a", "".join(files) + mesh("package://y/a.stl"))))
    meshes = root.find("asset").children
    assert [m.attrs["name"] for m in meshes] == ["a", "a1", "a1_1", "a2"]
    assert meshes[3].attrs["file"] == "package://y/a.stl"


def test_planar_joints():
    axis = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="2"/>'
    (a,) = world(robot(link("a"), link("b"), joint("a", "b", axis, kind="planar"))).children
    x, y, z = a.find("body").find_all("joint")
    assert [j.attrs["name"] for j in (x, y, z)] == ["ab_TX", "ab_TY", "ab_RZ"]
    assert (x.attrs["type"], y.attrs["type"], z.attrs["type"]) == ("slide", "slide", "hinge")
    assert x.attrs["range"].tolist() == [-1, 1]
    assert "range" not in y.attrs


def test_mimic_becomes_an_equality(caplog):
    rule = '<mimic joint="ab" multiplier="2" offset=".1"/>'
    parts = (link("a"), link("b"), link("c"), joint("a", "b"))
    (equality,) = read_string(robot(*parts, joint("a", "c", rule))).find("equality").children
    assert (equality.attrs["joint1"], equality.attrs["joint2"]) == ("ac", "ab")
    assert np.array_equal(equality.attrs["polycoef"], [0.1, 2, 0, 0, 0])
    with caplog.at_level(logging.WARNING):
        text = robot(*parts, joint("a", "c", '<mimic joint="zz"/>'))
        assert read_string(text).find("equality") is None
    assert "revolute" in caplog.text


def test_parts_of_other_tools_are_passed_over(caplog):
    listed = '<gazebo reference="a"><x/></gazebo><transmission/>'
    named = '<a:b xmlns:a="u"/>'
    with caplog.at_level(logging.WARNING):
        read_string(robot(link("a"), listed, named))
        assert caplog.text == ""
        read_string(robot(link("a", "<wobble/>"), '<link name="b" stiff="1"/>'))
    assert "<string>:3: <wobble> in <link> is not part of URDF and is ignored" in caplog.text
    assert "<string>:4: attribute 'stiff' of <link>" in caplog.text


def test_files_that_are_given_in_memory():
    files = {"r.urdf": robot(link("a")).encode()}
    assert read_file("r.urdf", files).attrs["model"] == "r"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("<lnk/>",), "<string>:3: <robot> has no element <lnk>; did you mean <link>?"),
        ((link("a"), link("a")), "exists already (first at <string>:3)"),
        (("<link/>",), "<link> needs the attribute 'name'"),
        ((link("a", "<visual/>"),), "<visual> needs the element <geometry>"),
        ((link("a", "<visual><geometry/></visual>"),), "has no shape; give one of box"),
        ((link("a", f"<visual>{BOX}<material/></visual>"),), "needs the attribute 'name'"),
        ((f'<link name="a">{INERTIAL * 2}</link>',), "has more than one <inertial>"),
        (('<link name="a"><inertial/></link>',), "needs the element <mass>"),
        ((link("a"), joint("a", "z")), "<child link='z'> of <joint name='az'> names no link"),
        ((link("a"), link("b"), '<joint name="j" type="fixed"/>'), "needs the element <parent>"),
        ((link("a"), link("b"), joint("a", "b", kind="hinge")), "type cannot be 'hinge'"),
        ((link("a"), link("b"), joint("a", "b", "<axis/>")), "needs the attribute 'xyz'"),
        (
            (link("a"), link("b"), joint("a", "b", '<axis xyz="1,0,0"/>')),
            "separate numbers by spaces",
        ),
        (
            (link("a"), link("b"), joint("a", "b", '<limit lowr="1"/>')),
            "has no attribute 'lowr'; did you mean 'lower'?",
        ),
        (
            (link("a"), link("b"), link("c"), joint("a", "c"), joint("b", "c")),
            "'c' is the child of <joint name='ac'> already",
        ),
        ((link("a"), link("b"), joint("a", "b"), joint("b", "a")), "form a loop"),
        ((link("a"), joint("a", "a")), "form a loop"),
        (
            (link("a"), link("world"), joint("a", "world")),
            "the world cannot move; make the joint fixed",
        ),
        (("<mujoco/>",), "has more than one <mujoco>"),
    ],
)
def test_faults(parts, message):
    found = faults(robot(*parts))
    assert message in found[0]
    assert found[0].startswith("<string>:")


def test_faults_of_the_settings():
    (fault,) = faults(robot(settings='<mujoco><compiler fusestatc="true"/></mujoco>'))
    assert "did you mean 'fusestatic'?" in fault
    (fault,) = faults(robot(settings="<mujoco><option/><option/></mujoco>"))
    assert "more than one <option>" in fault


def test_all_faults_at_once():
    assert len(faults(robot("<link/>", link("b", "<visual/>"), joint("q", "b")))) == 3
