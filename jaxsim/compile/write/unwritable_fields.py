"""Real-valued fields that no MJCF attribute can express, and why; see `write_back`.

Derived values are correct after a model is written and read again, and a value that does not follow
from the others is rejected.
"""

from __future__ import annotations

_FOLLOWS = "follows from the pose, mass and shape of the parts: set_const computes it"
_BOUNDS = "the bounds of a shape, which follow from its size"
_FRAME = "the compiler places a mesh by its inertia; change its file, or its geoms"
_REST = "follows from the flex in the reference pose"

UNWRITTEN: dict[str, str] = {
    "smooth": "an argument of loading, load_model(..., smooth=h); left out",
    "body_subtreemass": _FOLLOWS,
    "body_invweight0": _FOLLOWS,
    "body_margin": "the maximum over its geoms",
    "dof_invweight0": _FOLLOWS,
    "dof_M0": _FOLLOWS,
    "dof_length": _FOLLOWS,
    "geom_rbound": _BOUNDS,
    "geom_aabb": _BOUNDS,
    "cam_poscom0": _FOLLOWS,
    "cam_pos0": _FOLLOWS,
    "cam_mat0": _FOLLOWS,
    "light_poscom0": _FOLLOWS,
    "light_pos0": _FOLLOWS,
    "light_dir0": _FOLLOWS,
    "mesh_vert": _FRAME,
    "mesh_normal": _FRAME,
    "mesh_texcoord": "from the file of the mesh",
    "mesh_scale": _FRAME,
    "mesh_pos": _FRAME,
    "mesh_quat": _FRAME,
    "mesh_polynormal": _FRAME,
    "oct_aabb": "follows from the mesh",
    "oct_coeff": "follows from the mesh",
    "flex_size": _REST,
    "flex_vert0": _REST,
    "flex_node0": _REST,
    "flexedge_length0": _REST,
    "flexedge_invweight0": _REST,
    "flex_stiffness": "follows from the material: change <elasticity> and compile again",
    "flex_bending": "follows from the material: change <elasticity> and compile again",
    "flex_texcoord": "in the list or the file of the flex",
    "tendon_length0": _FOLLOWS,
    "tendon_invweight0": _FOLLOWS,
    "actuator_acc0": _FOLLOWS,
    "actuator_length0": _FOLLOWS,
    "meaninertia": _FOLLOWS,
    "plugin_state0": "computed by a plugin from its settings: `state`",
    "plugin_params": "computed by a plugin from its settings: `params`",
}

# Rows that cannot be written, of fields that otherwise can.
PARTLY: dict[str, str] = {
    "body_pos": "the world has no pose",
    "body_quat": "the world has no pose",
    "body_ipos": "the world has no inertia",
    "body_iquat": "the world has no inertia",
    "body_mass": "the world has no mass",
    "body_inertia": "the world has no inertia",
    "body_gravcomp": "the world has no weight",
    "qpos0": "of a free joint it is the pose of its body, of a ball joint it is none",
    "qpos_spring": "of a free or ball joint it is qpos0",
    "dof_damping": "the dofs of a joint have one",
    "dof_dampingpoly": "the dofs of a joint have one",
    "dof_armature": "the dofs of a joint have one",
    "dof_frictionloss": "the dofs of a joint have one",
    "dof_solref": "the dofs of a joint have one",
    "dof_solimp": "the dofs of a joint have one",
    "jnt_pos": "a free joint is at the origin of its body",
    "jnt_axis": "only hinges and slides have an axis",
    "jnt_springyield": "a free joint does not yield",
    "geom_size": "of a mesh or height field it follows from the asset",
    "geom_fluid": "virtual masses follow from the shape",
    "hfield_data": "heights are from 0 to 1, and take up all of that",
    "eq_data": "what is not the anchor, pose or polynomial of a constraint follows from the pose",
    "wrap_prm": "of a site or geom it is no number",
    "tendon_width": "a fixed tendon is not drawn",
    "tendon_rgba": "a fixed tendon is not drawn",
    "cam_fovy": "with a sensor it follows from its size and the focal length",
    "cam_intrinsic": "without a sensor it follows from <visual><map znear>",
    "flex_radius": "of a rod with a box section it follows from that",
    "skin_bonevertweight": "the weights of a vertex add up to 1",
}
