"""Error messages for names of MJX without a counterpart, with a replacement for each.

A missing attribute is an AttributeError, so that `hasattr` returns False. The statement `from
module import name` discards its message and then searches a submodule of that name; a module finder
raises the same message there.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from jaxsim.spelling import remedy

MJX_PACKAGE = "jaxsim.mjx"
_HULLS_HINT = "hulls of meshes are tables of the model, m.hull_*, which the compiler makes"
_RENDERER_HINT = "MJX-Warp's renderer; jaxsim.render(m, d, camera, width, height) draws"
_ENGINES_HINT = "one engine: its fields are those of Data, Model and Option"
_CONTACTS_HINT = (
    "contacts are found by jaxsim.mjx.collision(m, d); jaxsim.support.geom_distance(m, d, geom1, "
    "geom2) is the distance of two geoms; jaxsim.extend.register_collider adds a pair of shapes"
)
_ROWS_HINT = (
    "constraint rows: jaxsim.support.constraint_rows(m, d), or d.efc_* of a Data that keeps them"
)
_INTEGRATOR_HINT = "jaxsim.mjx.euler, implicit and rungekutta4 integrate"
_WRAPPING_HINT = (
    "jaxsim.mjx.tendon(m, d) finds the paths of tendons: d.wrap_xpos, d.ten_length, d.ten_J"
)

# replacement for the names of a module
MODULES = {
    "bvh": _RENDERER_HINT,
    "collision_convex": _CONTACTS_HINT,
    "collision_driver": _CONTACTS_HINT,
    "collision_primitive": _CONTACTS_HINT,
    "collision_sdf": _CONTACTS_HINT,
    "collision_types": _CONTACTS_HINT,
    "constraint": _ROWS_HINT,
    "dataclasses": "records are PyTreeNode, or a flax.struct or jax.tree_util dataclass",
    "derivative": "jaxsim.derivative.transition has the derivatives of a step",
    "forward": "jaxsim.mjx.forward(m, d) and its stages",
    "inverse": "jaxsim.mjx.inverse(m, d)",
    "io": "put_model, make_data, put_data, get_data, get_data_into of jaxsim.mjx",
    "math": "jaxsim.functions has MuJoCo's functions of plain arrays",
    "mesh": _HULLS_HINT,
    "passive": "jaxsim.mjx.passive(m, d): qfrc_spring, qfrc_damper, qfrc_gravcomp, qfrc_fluid of d",
    "ray": "jaxsim.mjx.ray(m, d, pnt, vec); jaxsim.support.ray_mesh, ray_hfield, ray_flex",
    "render": _RENDERER_HINT,
    "render_util": _RENDERER_HINT,
    "scan": "body_tree and flat",
    "sensor": "jaxsim.mjx.sensor_pos, sensor_vel and sensor_acc",
    "smooth": "the stages of jaxsim.mjx: kinematics, com_pos, crb, ...",
    "solver": "jaxsim.mjx.solve(m, d); its statistics are d.solver and d.solver_niter",
    "support": "the functions of jaxsim.mjx",
    "test_util": "benchmarks/throughput.py measures; models are files of your own",
    "types": "the records and enumerations of jaxsim.mjx",
}

# replacement for single names without a counterpart
MJX_REPLACEMENTS = {
    **dict.fromkeys(("DataCPP", "ModelCPP"), _ENGINES_HINT),
    **dict.fromkeys(
        "render render_with_segmentation create_render_context refit_bvh get_rgb get_depth "
        "get_segmentation".split(),
        _RENDERER_HINT,
    ),
    "ConvexMesh": _HULLS_HINT,
    "benchmark": "benchmarks/throughput.py",
    "deriv_smooth_vel": "jaxsim.derivative.transition has the derivatives of a step",
    "device_get_into": "get_data_into(data, model, d), or get_data(model, d)",
    "device_put": "put_model(model) of a mujoco.MjModel, put_data(model, data) of a mujoco.MjData",
    "tree_path_to_attr_str": "jax.tree_util.keystr(path)",
    **dict.fromkeys(("_advance", "_next_activation"), _INTEGRATOR_HINT),
    **dict.fromkeys(("wrap", "wrap_circle", "wrap_inside"), _WRAPPING_HINT),
    **dict.fromkeys(
        ("_getnum", "_getadr"), "counts and addresses are fields: m.njnt, m.name_jntadr"
    ),
    "_kbi": _ROWS_HINT,
    "_linesearch": "jaxsim.mjx.solve(m, d)",
    "contact_force_dim": "jaxsim.support.contact_forces(m, d): of all contacts, (ncon, 6)",
    "make_m": "jaxsim.mjx.crb(m, d).M, or jaxsim.mjx.full_m(m, d)",
    "tendon_dot": "the derivative of jaxsim.mjx.tendon(m, d).ten_J along d.qvel, by jax.jvp",
    "discrete_acc": "jaxsim.mjx.inverse(m, d) with the flag invdiscrete",
    "efc_order": "rows are in MuJoCo's order",
    "make_condim": "d.contact.dim has the dimensions of contacts",
    "has_cuda_gpu_device": "jax.devices('gpu')",
}

asked_names: dict[
    str, str
] = {}  # names without a counterpart that were looked up, with their messages


def missing_name_message(module: str, name: str) -> str:
    """Return the message for a name that a module of `jaxsim.mjx` lacks, and record the lookup."""
    inner = module.removeprefix(f"{MJX_PACKAGE}._src.")
    message = f"{module} has no {name!r}"
    if name in MJX_REPLACEMENTS:
        message += f": {MJX_REPLACEMENTS[name]}"
    elif inner in MODULES:
        message += f": {MODULES[inner]}"
    else:
        message += remedy(name, [n for n in dir(sys.modules[module]) if not n.startswith("_")])
    asked_names[f"{module}.{name}"] = message
    return message


class Finder(MetaPathFinder):
    """Module finder that raises for names that modules of `jaxsim.mjx` lack.

    Args:
      package: the name that programs import the package by.
    """

    def __init__(self, package: str = MJX_PACKAGE):
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None for modules outside the package.

        Raises:
          ImportError: the package has no such module.
        """
        parent, _, name = fullname.rpartition(".")
        if parent != self.package and not parent.startswith(f"{self.package}._src"):
            return None
        module = MJX_PACKAGE + parent.removeprefix(self.package)
        raise ImportError(missing_name_message(module, name), name=fullname)
