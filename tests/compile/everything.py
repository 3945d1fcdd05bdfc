"""A model with almost every element of MJCF, each of which compiles; for tests that change one."""

import struct
import zlib

EVERYTHING = """
    <mujoco model="m">
    <compiler autolimits="true"><lengthrange inttotal="2" interval="1"/></compiler>
    <option timestep="0.002"><flag contact="enable"/></option>
    <size nuserdata="1"/>
    <statistic meanmass="1"/>
    <default><geom rgba="1 0 0 1"/><joint armature="0.1"/>
    <default class="k"><geom/><joint/><site/><camera/><light/><pair/>
    <equality/>
    <tendon/><general/><position/><material/><mesh/><texture/></default></default>
    <asset><texture name="t" type="2d" builtin="checker" width="4" height="4"/>
    <material name="mat" texture="t"/>
    <mesh name="me" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <hfield name="hf" nrow="3" ncol="3" size="1 1 1 1"/></asset>
    <worldbody><light name="l" pos="0 0 1"/><camera name="c" pos="0 0 1"/>
    <geom name="floor" type="plane" size="1 1 1"/><geom name="gm" type="mesh" mesh="me"/>
    <geom name="gh" type="hfield" hfield="hf"/>
    <body name="a" pos="0 0 1"><freejoint name="fj"/><geom name="g0" size=".1" material="mat"/>
    <site name="s0"/>
    <body name="b" pos="0 0 1"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <joint name="j" range="-1 1"/><geom name="g1" type="capsule" size=".1 .2"/>
    <site name="s1" pos="0 .1 0"/><camera name="c1" mode="targetbody" target="a"/>
    <body name="d" pos="0 0 1"><joint name="js" type="slide"/>
    <geom name="g2" type="box" size=".1 .1 .1"/><site name="s2" pos=".1 0 0"/>
    <frame name="f" pos="0 0 1">
    <body name="e"><joint name="jb" type="ball"/><geom name="g3" type="sphere" size=".1"/>
    <site name="s3"/>
    </body></frame>
    </body>
    </body>
    </body>
    <body name="mo" mocap="true"><geom name="gmo" size=".1"/>
    </body>
    </worldbody>
    <contact><pair name="p" geom1="g0" geom2="g3"/><exclude name="ex" body1="a" body2="e"/>
    </contact>
    <equality><connect name="ec" body1="a" body2="e" anchor="0 0 0"/>
    <weld name="ew" body1="a" body2="e"/><joint name="ej" joint1="j" joint2="js"/>
    <tendon name="et" tendon1="ts" tendon2="tf"/></equality>
    <tendon><spatial name="ts" range="0 5"><site site="s0"/><geom geom="g3" sidesite="s3"/>
    <site site="s1"/><pulley divisor="2"/><site site="s0"/><site site="s2"/></spatial>
    <fixed name="tf"><joint joint="j" coef="1"/><joint joint="js" coef="1"/></fixed></tendon>
    <actuator><general name="ag" joint="j"/><motor name="am" joint="js"/>
    <position name="ap" joint="j"/><velocity name="av" joint="j"/>
    <intvelocity name="ai" joint="j" actrange="-1 1"/>
    <damper name="ad" joint="j" ctrlrange="0 1"/><cylinder name="ac" joint="j"/>
    <muscle name="amu" tendon="ts" lengthrange="0 1"/>
    <adhesion name="aa" body="b" ctrlrange="0 1"/>
    <dcmotor name="adc" joint="j" motorconst="1 1" resistance="1"/><pid name="apid" joint="j"/>
    <orientation name="ao" joint="jb"/></actuator>
    <sensor><touch name="z0" site="s0"/><accelerometer name="z1" site="s0"/>
    <velocimeter name="z2" site="s0"/><gyro name="z3" site="s0"/><force name="z4" site="s0"/>
    <torque name="z5" site="s0"/><magnetometer name="z6" site="s0"/>
    <camprojection name="z7" site="s0" camera="c"/><rangefinder name="z8" site="s0"/>
    <jointpos name="z9" joint="j"/><jointvel name="z10" joint="j"/>
    <tendonpos name="z11" tendon="ts"/><tendonvel name="z12" tendon="ts"/>
    <actuatorpos name="z13" actuator="ag"/><actuatorvel name="z14" actuator="ag"/>
    <actuatorfrc name="z15" actuator="ag"/><jointactuatorfrc name="z16" joint="j"/>
    <tendonactuatorfrc name="z17" tendon="ts"/><ballquat name="z18" joint="jb"/>
    <ballangvel name="z19" joint="jb"/><jointlimitpos name="z20" joint="j"/>
    <jointlimitvel name="z21" joint="j"/><jointlimitfrc name="z22" joint="j"/>
    <tendonlimitpos name="z23" tendon="ts"/><tendonlimitvel name="z24" tendon="ts"/>
    <tendonlimitfrc name="z25" tendon="ts"/>
    <framepos name="z26" objtype="body" objname="a" reftype="site" refname="s1"/>
    <framequat name="z27" objtype="body" objname="a"/>
    <framexaxis name="z28" objtype="body" objname="a"/>
    <frameyaxis name="z29" objtype="body" objname="a"/>
    <framezaxis name="z30" objtype="body" objname="a"/>
    <framelinvel name="z31" objtype="body" objname="a"/>
    <frameangvel name="z32" objtype="body" objname="a"/>
    <framelinacc name="z33" objtype="body" objname="a"/>
    <frameangacc name="z34" objtype="body" objname="a"/><subtreecom name="z35" body="a"/>
    <subtreelinvel name="z36" body="a"/><subtreeangmom name="z37" body="a"/>
    <insidesite name="z38" objtype="body" objname="a" site="s1"/>
    <distance name="z39" geom1="g0" geom2="g3"/><normal name="z40" geom1="g0" geom2="g3"/>
    <fromto name="z41" geom1="g0" geom2="g3"/>
    <contact name="z42" geom1="g0"/><e_potential name="z43"/><e_kinetic name="z44"/>
    <clock name="z45"/><user name="z46" dim="1"/></sensor>
    <keyframe><key name="k0" time="1"/></keyframe>
    <visual><global/><quality/><headlight/><map/><scale/><rgba/></visual>
    <custom><numeric name="n" data="1 2"/><text name="tx" data="x"/><tuple name="tu">
    <element objtype="body" objname="a"/></tuple></custom>
    </mujoco>
"""

# Elements that the model has not, because they need others, or a file of `FILES`.
REST = (
    """
    <mujoco>
      <compiler fusestatic="true"/>
      <default><default class="k"/></default>
      <worldbody>
        <body name="a" childclass="k">
          <freejoint group="1"/><geom size=".1"/>
          <frame name="f" childclass="k" scale="2" massscale="3" scaling="geometry">
            <body name="b"><joint/><geom size=".1"/></body>
            <replicate count="2" sep="-" offset="1 0 0" euler="0 0 1" childclass="k">
              <site name="r"/>
            </replicate>
          </frame>
          <body name="still" fuse="auto"><geom size=".1"/></body>
        </body>
        <frame name="h" pos="1 0 0"><site name="s"/><site name="t"/></frame>
        <frame name="g" scale="1"><attach frame="h" prefix="x"/></frame>
        <replicate count="2" offset="1 0 0"><site name="q"/></replicate>
      </worldbody>
      <equality><connect site1="s" site2="t"/><weld site1="s" site2="t"/></equality>
    </mujoco>""",
    """
    <mujoco>
      <asset>
        <model name="arm" file="arm.xml" content_type="text/xml"/>
        <mesh name="sphere" builtin="sphere" params="1"/>
        <mesh name="read" file="tetra.obj" content_type="model/obj"/>
        <hfield name="h" file="image.png" content_type="image/png" size="1 1 1 1"/>
        <texture name="c" type="cube" fileright="image.png" fileleft="image.png"
          fileup="image.png" filedown="image.png" filefront="image.png" fileback="image.png"/>
        <texture name="t" type="2d" file="image.png" hflip="true" vflip="true"/>
        <material name="m"><layer texture="t" role="rgb"/></material>
        <skin name="skin" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
          <bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>
        </skin>
      </asset>
      <worldbody>
        <attach model="arm" body="arm" prefix="p"/>
        <body name="a"><joint/><geom name="g" size=".1"/></body>
        <body name="b"><joint/><geom type="box" mesh="sphere" fitscale="2"/></body>
      </worldbody>
      <sensor>
        <distance body1="a" body2="b"/><normal body1="a" body2="b"/><fromto body1="a" body2="b"/>
        <contact body1="a"/><contact subtree1="a"/>
        <tactile name="skin" geom="g" mesh="sphere"/>
      </sensor>
    </mujoco>""",
    """
    <mujoco>
      <asset><mesh name="m" file="tetra.obj"/></asset>
      <worldbody>
        <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01">
          <edge equality="true"/><elasticity young="1" elastic2d="bend" thickness=".01"/>
          <contact/><pin id="0"/>
        </flexcomp>
        <flexcomp name="solid" type="grid" count="3 3 3" spacing=".1 .1 .1" dim="3" radius=".01"
          dof="trilinear" cellcount="1 1 1"><edge equality="strain"/></flexcomp>
        <flexcomp name="rope" type="grid" count="4 1 1" spacing=".1 .1 .1" dim="1" radius=".01">
          <edge stiffness="1" damping="1"/></flexcomp>
        <flexcomp name="rod" type="grid" count="4 1 1" spacing=".1 .1 .1" dim="1" radius=".01">
          <elasticity young="1" section="box" sectionsize=".01 .01"/></flexcomp>
        <flexcomp name="mesh" type="mesh" file="tetra.obj" dim="2" radius=".01"/>
        <flexcomp name="filled" type="mesh" file="tetra.obj" dim="3" radius=".01"
          origin=".2 .2 .2"/>
        <flexcomp name="direct" type="direct" dim="2" radius=".01"
          point="0 0 0 1 0 0 0 1 0" element="0 1 2"/>
      </worldbody>
    </mujoco>""",
    """
    <mujoco>
      <worldbody>
        <body><joint name="j" range="0 1"/><geom size=".1"/></body>
      </worldbody>
      <actuator><muscle joint="j"/></actuator>
    </mujoco>""",
    """
    <mujoco>
      <extension>
        <plugin plugin="mujoco.pid">
          <instance name="shared"><config key="kp" value="1"/></instance>
        </plugin>
        <plugin plugin="mujoco.sensor.touch_grid"/>
        <plugin plugin="mujoco.sdf.torus"><instance name="ring"/></plugin>
      </extension>
      <asset>
        <mesh name="m">
          <plugin plugin="mujoco.sdf.torus"><config key="radius1" value="1"/></plugin>
        </mesh>
        <mesh name="n"><plugin instance="ring"/></mesh>
      </asset>
      <worldbody>
        <body name="a"><joint name="j"/><geom size=".1"/><site name="s"/></body>
      </worldbody>
      <actuator>
        <plugin plugin="mujoco.pid" joint="j"><config key="kp" value="1"/></plugin>
        <plugin instance="shared" joint="j"/>
      </actuator>
      <sensor>
        <plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
          <config key="size" value="2 2"/><config key="fov" value="45 45"/>
        </plugin>
      </sensor>
    </mujoco>""",
)

# What needs code that no model file has, or none that we have.
_RING = '<plugin plugin="mujoco.sdf.torus"><config key="radius1" value="1"/></plugin>'
_DECLARED = """<extension>
    <plugin plugin="mujoco.sdf.torus"><instance name="ring"/></plugin></extension>"""
REFUSED = tuple(
    f"<mujoco>{_DECLARED}{part}</mujoco>"
    for part in (
        f"<worldbody><body>{_RING}</body></worldbody>",
        f'<worldbody><geom type="sdf">{_RING}</geom></worldbody>',
        '<worldbody><flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2"'
        f' radius=".01">{_RING}</flexcomp></worldbody>',
        '<worldbody><body><plugin instance="ring"/></body></worldbody>',
    )
)


def _png() -> bytes:
    """A gray image of two by two pixels."""
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0\1\2\0\3\4")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


FILES = {
    "image.png": _png(),
    "tetra.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n",
    "arm.xml": b"<mujoco model='arm'><worldbody><body name='arm'><geom size='1'/></body>"
    b"</worldbody></mujoco>",
}
