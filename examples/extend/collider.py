"""The contacts of two types of geoms by a function of your own."""

import jax

import jaxsim
from jaxsim.enums import GeomType


def plane_sphere(size1, pos1, mat1, size2, pos2, mat2):
    """The one point where a ball meets a plane: distance (1,), position and normal (1, 3)."""
    normal = mat1[:, 2]
    dist = normal @ (pos2 - pos1) - size2[0]
    return dist[None], (pos2 - normal * (size2[0] + dist / 2))[None], normal[None]


MODEL = """
<mujoco><worldbody>
  <geom type="plane" size="1 1 1"/><body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>
"""


def main():
    jaxsim.extend.register_collider(GeomType.PLANE, GeomType.SPHERE, plane_sphere, slots=1)
    m = jaxsim.load_model(MODEL)
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    print(f"{int(d.ncon)} contact, {float(d.contact.dist[0]):.3f} m deep")
    jaxsim.extend.unregister_collider(GeomType.PLANE, GeomType.SPHERE)
    return d.contact.dist


if __name__ == "__main__":
    main()
