"""A shape of your own, by its signed distance: an ellipsoid with one flat end falls on a table."""

import jax.numpy as jnp

import jaxsim


def pebble(x, y, z, radius, flat):
    """An ellipsoid, half as high as wide, without what is below a plane; `flat` is its depth.

    A bound of the distance is enough: zero on the surface, negative inside, rising outwards.
    """
    round_ = (jnp.sqrt(x**2 + y**2 + (2 * z) ** 2 + 1e-12) - radius) / 2
    return jnp.maximum(round_, -z - flat)


def half_box(radius, flat):
    """Half the sides of a box about the origin that has all of it."""
    return radius, radius, radius / 2


jaxsim.extend.register_shape(
    "lab.pebble",
    {"radius": 0.1, "flat": 0.02},
    pebble,
    half_box,
    fault=lambda radius, flat: "" if flat < radius / 2 else "config 'flat' cuts nothing",
)

MODEL = """
<mujoco>
  <extension><plugin plugin="lab.pebble"><instance name="pebble"/></plugin></extension>
  <asset><mesh name="pebble"><plugin instance="pebble"/></mesh></asset>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body pos="0 0 .05"><freejoint/>
      <geom type="sdf" mesh="pebble"><plugin instance="pebble"/></geom></body>
  </worldbody>
</mujoco>
"""


def main():
    m = jaxsim.load_model(MODEL)
    d, _ = jaxsim.rollout(m, jaxsim.make_data(m), steps=400)
    height = float(d.qpos[2])
    print(f"it rests with its middle {height:.4f} m above the table, on {int(d.ncon)} contacts")
    return height


if __name__ == "__main__":
    main()
