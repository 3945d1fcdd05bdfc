"""`mujoco.elasticity.cable`: bending and twisting stiffness of a chain of bodies.

MuJoCo 2.3 to 3.17 had this plugin (plugin/elasticity); MuJoCo 4.0 has one-dimensional flexes
instead. The theory is that of Kirchhoff rods. Bodies are connected by ball joints, and the rod lies
along their x axes. With w the rotation vector of a body relative to its parent, w0 that of the
stress-free shape, and L the distance of the two, the torque on the body, in the frame of its
parent, is

    t = -diag(G J, E Iy, E Iz) (w - w0) / L

and -t acts on the parent. J, Iy and Iz are those of the section of the body's first geom. The force
of the pair acts on the dofs of the ball joint alone: t, in the frame of the body.

t is the gradient of an energy where it is parallel to w, as in a rod that bends in a plane.
Otherwise it differs from a gradient in the second order of the angles between neighbors, w x t / 2:
along a closed path it may do work, here as in MuJoCo.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType, JointType
from jaxsim.extend.plugin import Attached, Config, Plugin
from jaxsim.math import Quat, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.plugins.numbers import is_number, setting_number

_ROUND_SECTIONS = (GeomType.CAPSULE, GeomType.CYLINDER)
_SECTION_TYPES = (*_ROUND_SECTIONS, GeomType.BOX)


class Cable(Plugin):
    """Elasticity with Young's modulus `bend` and shear modulus `twist` [Pa].

    The stress-free shape is that of the model's reference pose, or straight with `flat`. `vmax`
    controls visualization, and has no effect here.
    """

    name = "mujoco.elasticity.cable"
    settings = dict.fromkeys(("twist", "bend", "flat", "vmax"), "")

    def check(self, config: Config) -> str:
        """Check that the moduli are numbers."""
        for key in ("twist", "bend"):
            if config[key] and not is_number(config[key]):
                return f"config '{key}' must be a number, got '{config[key]}'"
        if config["flat"] not in ("", "true", "false"):
            return f"config 'flat' must be true or false, got '{config['flat']}'"
        return ""

    def lacks(self, m: Any, body: int) -> str:
        """Check that bodies have a section, and that those after the first of a chain have a ball
        joint."""
        if _section(m, body) not in _SECTION_TYPES:
            return "it needs a capsule, a cylinder or a box as its first geom"
        if m.body_plugin[m.body_parentid[body]] != m.body_plugin[body]:
            return ""
        if _last_joint(m, body) != JointType.BALL:
            return "it needs a ball joint, as its last joint"
        return "" if np.asarray(m.body_pos)[body].any() else "it is where its parent is; move it"

    def params(self, config: Config) -> dict[str, float]:
        """Return the moduli."""
        return {key: setting_number(config, key) for key in ("twist", "bend")}

    def passive(self, m: Model, d: Data, at: Attached) -> jax.Array:
        """Return the torques of all pairs, on the dofs of their joints, (nv,)."""
        body = _links(m, at.id)
        joint = m.body_jntadr[body] + m.body_jntnum[body] - 1
        adr = m.jnt_qposadr[joint][:, None] + np.arange(4)
        rest, turned = (Quat.from_array(a) for a in (m.body_quat[body], d.qpos[adr]))
        q = rest * turned.normalize()
        bent = q.rotation_vector()
        if at.config["flat"] != "true":
            bent = bent - rest.rotation_vector()
        twist, bend_y, bend_z = _section_moments(m, body)
        G, E = (at.params[key] for key in ("twist", "bend"))
        length = Vec.from_array(m.body_pos[body]).norm()
        stiffness = Vec(G * twist / length, E * bend_y / length, E * bend_z / length)
        pairs = zip(stiffness.parts, bent.parts, strict=True)
        torque = q.conj.rotate(Vec(*(-k * w for k, w in pairs)))
        dof = m.jnt_dofadr[joint][:, None] + np.arange(3)
        return jnp.zeros(m.nv, d.qpos.dtype).at[dof].set(torque.to_array())


def _links(m: Any, id: np.ndarray) -> np.ndarray:
    """Return the bodies whose parent belongs to the same cable."""
    return id[np.isin(m.body_parentid[id], id)]


def _section(m: Any, body: int) -> int:
    """Return the type of the first geom of a body, or -1."""
    return m.geom_type[m.body_geomadr[body]] if m.body_geomnum[body] else -1


def _last_joint(m: Any, body: int) -> int:
    """Return the type of the last joint of a body, or -1."""
    joints = m.body_jntnum[body]
    return m.jnt_type[m.body_jntadr[body] + joints - 1] if joints else -1


def _section_moments(m: Model, body: np.ndarray) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the torsion constant, and second moments of area about y and z, of sections (n,)
    [m^4].

    A circle of radius r: pi r^4 / 2 and pi r^4 / 4. A rectangle of half sizes h along y and w along
    z: 4/3 h w^3 and 4/3 w h^3; its torsion constant is Roark's (Formulas for Stress and Strain).
    """
    geom = m.body_geomadr[body]
    is_round = np.isin(m.geom_type[geom], _ROUND_SECTIONS)
    r, h, w = m.geom_size[geom].T
    circle = jnp.pi * r**4
    a, b = jnp.maximum(h, w), jnp.minimum(h, w)
    # a capsule has no third size; avoid a division by zero
    a = jnp.where(is_round, 1, a)
    twist = a * b**3 * (16 / 3 - 3.36 * b / a * (1 - b**4 / (12 * a**4)))
    return (
        jnp.where(is_round, circle / 2, twist),
        jnp.where(is_round, circle / 4, 4 / 3 * h * w**3),
        jnp.where(is_round, circle / 4, 4 / 3 * w * h**3),
    )
