"""Cameras and lights equal MuJoCo's."""

from compile.oracle import assert_agrees


def test_cameras():
    assert_agrees("""
        <mujoco>
          <visual><map znear=".02"/></visual>
          <default><camera fovy="30"/></default>
          <worldbody>
            <camera name="plain"/>
            <camera target="world" mode="track" projection="orthographic" fovy="3"/>
            <body name="a" pos="1 0 0">
              <geom size="1" pos="0 0 1"/>
              <camera mode="targetbody" target="a" resolution="10 20" output="rgb depth"/>
              <camera sensorsize="1 2" focal="3 4" principal=".1 .2" resolution="100 200"/>
              <camera sensorsize="1 2" focalpixel="3 4" principalpixel="1 2" resolution="100 200"/>
              <camera sensorsize="1 2" mode="trackcom" ipd=".1" user="1 2"/>
            </body>
          </worldbody>
        </mujoco>""")


def test_lights():
    assert_agrees("""
        <mujoco>
          <worldbody>
            <light name="plain"/>
            <light mode="targetbody" target="world" dir="1 1 1" pos="1 2 3" range="3" cutoff="3"
                   attenuation="1 2 3" exponent="2" active="false" castshadow="false"/>
            <light directional="true"/>
            <light type="directional"/>
            <light type="point" diffuse="1 0 0" ambient="0 1 0" specular="0 0 1" intensity="3"/>
          </worldbody>
        </mujoco>""")
