"""A rope, a cloth, a block of jelly and two skins, among bodies that are drawn otherwise."""

SOFT = """<mujoco>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="1 .8 .3" width="16"
      height="96"/>
    <texture name="checks" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1" width="16"
      height="16"/>
    <material name="checks" texture="checks"/>
  </asset>
  <worldbody>
    <light pos="0 0 3" dir="0 0 -1"/>
    <geom type="plane" size="3 3 .1" pos="0 0 -.3"/>
    <body name="a"><freejoint/><geom size=".1"/></body>
    <flexcomp name="rope" type="grid" count="4 1 1" spacing=".2 .2 .2" dim="1" radius=".02"
      pos="0 1 1" rgba=".9 .2 .2 1"><edge equality="true"/>
      <contact contype="0" conaffinity="0"/></flexcomp>
    <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".2 .2 .2" dim="2" radius=".02"
      pos="0 0 1" material="checks"><edge equality="true"/>
      <contact contype="0" conaffinity="0"/></flexcomp>
    <flexcomp name="jelly" type="grid" count="3 2 2" spacing=".2 .2 .2" dim="3" radius=".02"
      pos="1 0 1" rgba=".2 .9 .2 1" flatskin="true"><edge equality="true"/>
      <contact contype="0" conaffinity="0" selfcollide="none"/></flexcomp>
    <body name="b" pos=".5 0 0"><freejoint/><geom size=".1"/></body>
  </worldbody>
  <deformable>
    <skin name="sail" inflate=".01" rgba="0 .2 .8 1" face="0 1 2"
      vertex="0 0 .5  .5 0 .5  .5 .5 .5">
      <bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>
    </skin>
    <skin name="flag" inflate=".03" rgba="1 .2 .3 1" group="1" face="0 1 2  0 2 3"
      vertex="0 0 .2  .5 0 .2  .5 .5 .2  0 .5 .4" texcoord="0 0 1 0 1 1 0 1">
      <bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 3" vertweight="1 .3 .5"/>
      <bone body="b" bindpos=".4 .1 0" bindquat="1 .2 0 0" vertid="1 2 3" vertweight=".7 1 .5"/>
    </skin>
  </deformable>
</mujoco>"""
