"""Files from where you keep them: here a dictionary, under the prefix `lab:`."""

import io

import jaxsim

FILES = {
    "lab:robot.xml": b"""<mujoco>
      <asset><mesh name="tip" file="lab:tip.obj"/></asset>
      <worldbody><body><freejoint/><geom type="mesh" mesh="tip"/></body></worldbody></mujoco>""",
    "lab:tip.obj": b"v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n",
}


def main():
    jaxsim.extend.register_provider("lab", open=lambda uri: io.BytesIO(FILES[uri]))
    m = jaxsim.load_model("lab:robot.xml")
    jaxsim.extend.unregister_provider("lab")
    print(f"a model of {m.nbody} bodies and a mesh of {m.nmeshvert} vertices")
    return m


if __name__ == "__main__":
    main()
