"""Parts of other models, attached, equal MuJoCo's."""

import pytest
from compile.oracle import assert_file_agrees

from jaxsim.compile import compile_file
from jaxsim.errors import ModelError

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
        ('<attach model="kid" body="z" prefix="p_"/>', "body='z' names no body of the model"),
        ('<attach model="who" body="b" prefix="p_"/>', "model='who' names no <model>"),
        ('<body name="a"><attach body="a" prefix="p_"/></body>', "attach what it stands in"),
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
    with pytest.raises(ModelError, match="is there a circle"):
        compile_file(str(main))
