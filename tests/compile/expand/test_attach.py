"""Parts of other models, attached, equal MuJoCo's."""

import pytest
from compile.images import skn
from compile.oracle import assert_agrees, assert_file_agrees, refusal

from jaxsim.compile import compile_file, compile_spec, compile_string, flatten
from jaxsim.errors import ModelError
from jaxsim.spec import Spec

CHILD = """
    <mujoco model="kid">
      <compiler angle="radian" eulerseq="zyx"/>
      <option timestep="0.002"/>
      <default>
        <geom size="0.3"/>
        <joint damping="2"/>
        <motor gear="7"/>
        <default class="c"><geom size=".4"/></default>
      </default>
      <worldbody>
        <geom name="wg"/>
        <frame name="fr" pos="0 0 1">
          <body name="b" euler="0 .5 1.57">
            <joint name="j" range="-1 1"/>
            <geom name="g"/>
            <geom class="c"/>
            <site name="s"/>
            <body name="b2" pos="1 0 0" childclass="c"><joint name="j2" type="ball"/><geom/></body>
          </body>
        </frame>
        <body name="o"><joint name="jo"/><geom/><site name="so"/></body>
      </worldbody>
      <actuator><motor name="m" joint="j"/><motor name="mo" joint="jo"/></actuator>
      <sensor>
        <jointpos name="sj" joint="j"/>
        <framepos name="fs" objtype="site" objname="s" reftype="site" refname="so"/>
        <clock name="ck"/>
      </sensor>
      <tendon><spatial name="t"><site site="s"/><site site="so"/></spatial></tendon>
      <contact>
        <exclude name="e" body1="b" body2="world"/>
        <exclude name="e2" body1="b" body2="o"/>
      </contact>
      <equality><weld name="w" body1="b"/><weld name="w2" body1="b" body2="o"/></equality>
      <custom>
        <numeric name="n" data="1"/>
        <tuple name="tu"><element objtype="site" objname="s"/></tuple>
      </custom>
      <keyframe><key name="k" qpos=".1 .6 .8 0 0 .3" qvel="1 2 3 4 5" ctrl="5 6"/></keyframe>
    </mujoco>"""

PARTS = {
    "body": '<attach model="kid" body="b" prefix="p_"/>',
    "world": '<attach model="kid" prefix="p_"/>',
    "frame": '<attach model="kid" frame="fr" prefix="p_"/>',
    "inside a body": '<body name="x"><joint name="jx"/><geom/>'
    '<attach model="kid" body="b2" prefix="p_"/></body>',
    "in a frame with a class": '<frame childclass="p" euler="0 0 90">'
    '<attach model="kid" body="b" prefix="p_"/></frame>',
    "own body": '<body name="a"><joint name="ja"/><geom/></body><attach body="a" prefix="p_"/>',
    "own frame": '<frame name="f" pos="1 0 0"><geom name="q"/></frame>'
    '<frame pos="0 1 0"><attach frame="f" prefix="p_"/></frame>',
}


def _write(folder, parts: str) -> str:
    (folder / "child.xml").write_text(CHILD)
    main = folder / "main.xml"
    main.write_text(f"""
        <mujoco>
          <default>
            <geom size="1"/>
            <joint damping="9"/>
            <default class="p"><geom size="2"/></default>
          </default>
          <asset><model name="kid" file="child.xml"/></asset>
          <worldbody>{parts}<body><joint/><geom/></body></worldbody>
        </mujoco>""")
    return str(main)


@pytest.mark.parametrize("parts", PARTS)
def test_parts(tmp_path, parts):
    assert_file_agrees(_write(tmp_path, PARTS[parts]))


_BODY = '<joint name="j{0}"/><geom name="g{0}" size="1"/><site name="s{0}"/><site name="t{0}"/>'


@pytest.mark.parametrize(
    "rest",
    [
        '<equality><weld body1="ba" body2="br"/><weld body1="br"/></equality>',
        '<tendon><spatial><site site="sa"/><site site="sr"/></spatial></tendon>',
        '<tendon><spatial><site site="sa"/><geom geom="gr" sidesite="sr"/><site site="ta"/>'
        "</spatial></tendon>",
        '<tendon><spatial><site site="sa"/><geom geom="ga" sidesite="tr"/><site site="ta"/>'
        "</spatial></tendon>",
        '<contact><pair geom1="ga" geom2="gr"/><exclude body1="ba" body2="br"/></contact>',
        '<contact><pair geom1="gz" geom2="gr"/><exclude body1="bz" body2="br"/></contact>',
        '<sensor><distance geom1="ga" geom2="gr"/><distance geom1="gr" geom2="gz"/></sensor>',
        '<actuator><general site="sa" refsite="sr"/><general site="sr" refsite="tr"/></actuator>',
    ],
)
def test_references_across_an_attached_part_are_resolved(tmp_path, rest):
    """It is attached with its own part if the rest precedes the `<attach>`."""
    a, r, z = (f'<body name="b{name}">{_BODY.format(name)}</body>' for name in "arz")
    place = '<frame pos="9 0 0"><attach body="br" prefix="p_"/></frame>'
    path = tmp_path / "a.xml"
    path.write_text(f"<mujoco><worldbody>{a}{r}{place}{z}</worldbody>{rest}</mujoco>")
    assert_file_agrees(str(path))


def test_attached_models_keep_their_classes_apart(tmp_path):
    """Each has its main class, and a class inherits from what stands before it."""
    (tmp_path / "c.xml").write_text(
        '<mujoco model="c"><default><geom margin=".3"/>'
        '<default class="k"><geom gap=".1"/></default></default>'
        '<default><geom size=".1"/></default><worldbody><body name="c">'
        '<geom size=".2"/><geom class="k" size=".2"/></body></worldbody></mujoco>'
    )
    (tmp_path / "b.xml").write_text(
        '<mujoco model="b"><default><geom gap=".2"/></default>'
        '<asset><model name="c" file="c.xml"/></asset><worldbody><body name="b">'
        '<geom size=".1"/><attach model="c" body="c" prefix="c_"/></body></worldbody></mujoco>'
    )
    attach = '<frame><attach model="b" body="b" prefix="{}"/></frame>'
    path = tmp_path / "a.xml"
    path.write_text(
        '<mujoco><default><geom priority="2"/></default>'
        '<asset><model name="b" file="b.xml"/></asset><worldbody><geom size=".1"/>'
        f"{attach.format('p_')}{attach.format('q_')}</worldbody></mujoco>"
    )
    assert_file_agrees(str(path))


def test_bones_in_files_are_renamed(tmp_path):
    bones = [("b", [0, 0, 0], [1, 0, 0, 0], [0, 1, 2], [1, 1, 1])]
    data = skn([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [], [[0, 1, 2]], bones)
    (tmp_path / "s.skn").write_bytes(data)
    (tmp_path / "c.xml").write_text(
        '<mujoco model="c"><asset><skin name="s" file="s.skn"/></asset>'
        '<worldbody><body name="b"><geom size=".1"/></body></worldbody></mujoco>'
    )
    (tmp_path / "d.xml").write_text(
        '<mujoco model="d"><asset><model name="c" file="c.xml"/></asset><worldbody>'
        '<body name="d"><attach model="c" body="b" prefix="c_"/></body></worldbody></mujoco>'
    )
    path = tmp_path / "a.xml"
    path.write_text(
        '<mujoco><asset><model name="c" file="c.xml"/><model name="d" file="d.xml"/></asset>'
        '<worldbody><frame><attach model="c" body="b" prefix="p_"/></frame>'
        '<frame><attach model="d" body="d" prefix="d_"/></frame></worldbody></mujoco>'
    )
    ours = assert_file_agrees(str(path))
    spec = flatten(Spec.from_file(path))
    again = compile_spec(Spec.from_string(spec.to_xml(), spec.files))
    assert again.fields["skin_bonebodyid"].tolist() == ours.fields["skin_bonebodyid"].tolist()


def test_replicated_attachments(tmp_path):
    (tmp_path / "leg.xml").write_text("""
        <mujoco model="leg">
          <worldbody>
            <body name="leg"><joint name="hip"/><geom size=".1" pos="0 0 -.2"/></body>
          </worldbody>
          <actuator><motor name="drive" joint="hip"/></actuator>
          <keyframe><key name="up" qpos=".5" ctrl="1"/></keyframe>
        </mujoco>""")
    main = tmp_path / "main.xml"
    main.write_text("""
        <mujoco>
          <asset><model name="leg" file="leg.xml"/></asset>
          <worldbody>
            <replicate count="4" euler="0 0 90" sep="-">
              <frame pos="1 0 0"><attach model="leg" body="leg" prefix="a_"/></frame>
            </replicate>
          </worldbody>
        </mujoco>""")
    compiled = assert_file_agrees(str(main))
    assert compiled.names["actuator"] == ("a_drive-0", "a_drive-1", "a_drive-2", "a_drive-3")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            '<attach model="kid" body="z" prefix="p_"/>',
            "body='z' names no body of the attached model; correct the name",
        ),
        ('<attach model="who" body="b" prefix="p_"/>', "model='who' names no <model>"),
        ('<body name="a"><attach body="a" prefix="p_"/></body>', "attach its own parent"),
        ('<attach body="a" prefix="p_"/><body name="a"/>', "<body name='a'> is defined after it"),
        (
            '<attach frame="a" prefix="p_"/><frame name="a"/>',
            "<frame name='a'> is defined after it",
        ),
    ],
)
def test_faults(tmp_path, parts, message):
    with pytest.raises(ModelError, match=message):
        compile_file(_write(tmp_path, parts))


def test_a_circle_of_models_is_refused(tmp_path):
    main = tmp_path / "main.xml"
    main.write_text("""
        <mujoco model="self">
          <asset><model name="again" file="main.xml"/></asset>
          <worldbody><attach model="again" prefix="p_"/></worldbody>
        </mujoco>""")
    with pytest.raises(ModelError, match="check for a cycle"):
        compile_file(str(main))


@pytest.mark.parametrize("auto", [True, False])
def test_a_range_needs_a_flag_where_its_own_model_says_so(auto):
    """One of the two models has autolimits off; that of the actuator counts."""
    kid = (
        f'<mujoco><compiler autolimits="{str(auto).lower()}"/><worldbody><body>'
        '<joint name="j"/><geom size=".1"/></body></worldbody>'
        '<actuator><motor joint="j" ctrlrange="-1 1"/></actuator></mujoco>'
    )
    text = (
        f'<mujoco><compiler autolimits="{str(not auto).lower()}"/><asset>'
        '<model name="k" file="kid.xml"/></asset><worldbody><attach model="k" prefix="p"/>'
        "</worldbody></mujoco>"
    )
    files = {"kid.xml": kid.encode()}
    if auto:
        assert assert_agrees(text, files=files).fields["actuator_ctrllimited"].all()
        return
    message = refusal(text, files)
    assert message is not None
    assert "ctrllimited" in message
    with pytest.raises(ModelError, match="it has ctrlrange but not ctrllimited"):
        compile_string(text, files)
