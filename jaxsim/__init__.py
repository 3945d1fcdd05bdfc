"""A physics engine for articulated bodies with contacts, in pure JAX; it reads MuJoCo models.

The names here load models, simulate them and read their state. Other names are in namespaces, which
are imported when they are first used:

- `stages`: single stages of a step, MuJoCo's components;
- `support`: mass matrix, Jacobians, contact forces, rays, distances, total mass, profile;
- `functions`: functions of plain arrays; `derivative`: derivatives of a step; `enums`;
- `control`, `identify`, `envs`, `learn`, `view`: tasks on top of the physics;
- `extend`: plugins, shapes, colliders, file formats and sources of files;
- `mjx`: the names of MJX, for programs written for it.
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import jaxsim.plugins  # registers the bundled plugins
import jaxsim.xla
from jaxsim.assets.builtin import terrain as terrain
from jaxsim.assets.source.vfs import Vfs as Vfs
from jaxsim.batch.devices import over_devices as over_devices
from jaxsim.batch.log import log_warnings as log_warnings
from jaxsim.batch.loop import ControlLoop as ControlLoop
from jaxsim.batch.program import BatchProgram as BatchProgram
from jaxsim.batch.program import replicate as replicate
from jaxsim.batch.scan import rollout as rollout
from jaxsim.batch.trajectory import load_trajectory as load_trajectory
from jaxsim.compile import flatten as flatten
from jaxsim.errors import ConfigError as ConfigError
from jaxsim.errors import InputError as InputError
from jaxsim.errors import ModelError as ModelError
from jaxsim.io.bridge import get_data as get_data
from jaxsim.io.bridge import get_data_into as get_data_into
from jaxsim.io.bridge import make_data as make_data
from jaxsim.io.bridge import put_data as put_data
from jaxsim.io.bridge import put_model as put_model
from jaxsim.io.load import load_model as load_model
from jaxsim.io.recompile import recompile as recompile
from jaxsim.io.restructure import replace_structure as replace_structure
from jaxsim.io.save import save_model as save_model
from jaxsim.io.smooth_contacts import smooth_contacts as smooth_contacts
from jaxsim.io.write_back import write_back as write_back
from jaxsim.model.callbacks import Callbacks as Callbacks
from jaxsim.model.contact import Contact as Contact
from jaxsim.model.data import Data as Data
from jaxsim.model.data import SolverStat as SolverStat
from jaxsim.model.describe import bytes_per_world as bytes_per_world
from jaxsim.model.describe import describe as describe
from jaxsim.model.describe import warning_texts as warning_texts
from jaxsim.model.lookup import ctrl_index as ctrl_index
from jaxsim.model.lookup import dof_index as dof_index
from jaxsim.model.lookup import qpos_index as qpos_index
from jaxsim.model.lookup import sensor_data as sensor_data
from jaxsim.model.lookup import sensor_index as sensor_index
from jaxsim.model.model import Model as Model
from jaxsim.model.names import id2name as id2name
from jaxsim.model.names import name2id as name2id
from jaxsim.model.option import Option as Option
from jaxsim.model.option import Statistic as Statistic
from jaxsim.model.serialization.checkpoint import from_state_dict as from_state_dict
from jaxsim.model.serialization.checkpoint import state_dict as state_dict
from jaxsim.model.serialization.state import copy_state as copy_state
from jaxsim.model.serialization.state import extract_state as extract_state
from jaxsim.model.serialization.state import get_state as get_state
from jaxsim.model.serialization.state import set_state as set_state
from jaxsim.model.serialization.state import state_size as state_size
from jaxsim.model.warning import check_warnings as check_warnings
from jaxsim.model.warning import diverged as diverged
from jaxsim.model.warning import warning_counts as warning_counts
from jaxsim.physics.constants.set_const import set_const as set_const
from jaxsim.physics.public.api import forward as forward
from jaxsim.physics.public.api import inverse as inverse
from jaxsim.physics.public.api import step as step
from jaxsim.physics.public.make_data import reset_ctrl as reset_ctrl
from jaxsim.physics.public.make_data import reset_data as reset_data
from jaxsim.physics.public.make_data import reset_data_keyframe as reset_data_keyframe
from jaxsim.physics.public.make_data import set_keyframe as set_keyframe
from jaxsim.physics.public.split_step import step1 as step1
from jaxsim.physics.public.split_step import step2 as step2
from jaxsim.physics.query.capacities import suggest_capacities as suggest_capacities
from jaxsim.spec import Spec as Spec
from jaxsim.transforms.platform import for_platform as for_platform
from jaxsim.version import __version__ as __version__

if TYPE_CHECKING:  # imported when they are first used
    from jaxsim import control as control
    from jaxsim import derivative as derivative
    from jaxsim import enums as enums
    from jaxsim import envs as envs
    from jaxsim import extend as extend
    from jaxsim import functions as functions
    from jaxsim import identify as identify
    from jaxsim import learn as learn
    from jaxsim import mjx as mjx
    from jaxsim import stages as stages
    from jaxsim import support as support
    from jaxsim import view as view
    from jaxsim.view.picture.render import render as render

__all__ = [  # noqa: RUF022 (grouped)
    # load, save and exchange models
    "load_model",
    "save_model",
    "Spec",
    "Vfs",
    "terrain",
    "put_model",
    "put_data",
    "get_data",
    "get_data_into",
    "recompile",
    "replace_structure",
    "smooth_contacts",
    "write_back",
    "flatten",
    # records
    "Model",
    "Data",
    "Option",
    "Statistic",
    "Contact",
    "SolverStat",
    "Callbacks",
    "ModelError",
    "InputError",
    "ConfigError",
    # simulate
    "make_data",
    "step",
    "step1",
    "step2",
    "forward",
    "inverse",
    "set_const",
    # many steps, many worlds
    "rollout",
    "replicate",
    "over_devices",
    "BatchProgram",
    "ControlLoop",
    "for_platform",
    "load_trajectory",
    # state
    "reset_data",
    "reset_data_keyframe",
    "set_keyframe",
    "reset_ctrl",
    "get_state",
    "set_state",
    "copy_state",
    "extract_state",
    "state_size",
    "state_dict",
    "from_state_dict",
    # names
    "name2id",
    "id2name",
    "qpos_index",
    "dof_index",
    "ctrl_index",
    "sensor_index",
    "sensor_data",
    # inspect
    "describe",
    "bytes_per_world",
    "suggest_capacities",
    "check_warnings",
    "diverged",
    "warning_counts",
    "warning_texts",
    "log_warnings",
    "render",
    "__version__",
]

_NAMESPACES = frozenset(
    "control derivative enums envs extend functions identify learn mjx stages support view".split()
)
# Names of version 0.1 are aliases until 0.3: those of these namespaces, and renamed ones.
_MOVED_TO = ("stages", "support", "enums", "extend")
_RENAMED = {"sensor": "sensor_data", "check": "check_warnings", "Impl": "mjx.Impl"}

jaxsim.xla.tell_xla()


def __getattr__(name: str) -> Any:
    """Return a namespace, the renderer, or a name of version 0.1 with a warning."""
    if name in _NAMESPACES:
        return importlib.import_module(f"jaxsim.{name}")
    if name == "render":
        return importlib.import_module("jaxsim.view.picture.render").render
    for path in () if name.startswith("_") else _new_paths(name):
        namespace, _, new = f"jaxsim.{path}".rpartition(".")
        value = getattr(importlib.import_module(namespace), new, None)
        if getattr(value, "__module__", "").startswith("jaxsim."):
            text = f"jaxsim.{name} is now jaxsim.{path}; version 0.3 removes the old name"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return value
    raise AttributeError(f"module 'jaxsim' has no attribute '{name}'", name=name, obj=jaxsim)


def _new_paths(name: str) -> list[str]:
    """Return the paths that a name of version 0.1 may have now."""
    return [_RENAMED[name]] if name in _RENAMED else [f"{home}.{name}" for home in _MOVED_TO]


def __dir__() -> list[str]:
    return sorted([*__all__, *_NAMESPACES])
