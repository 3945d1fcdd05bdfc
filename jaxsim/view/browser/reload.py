"""Load the changed file of a running model, and keep its state."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxsim.errors import InputError
from jaxsim.io.load import load_model
from jaxsim.io.recompile import recompile
from jaxsim.model.allocate import check_supported, kept_names
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data
from jaxsim.spec import Spec

_STATE = ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")


def reload_model(path: str | Path, m: Model, d: Data) -> tuple[Model, Data, str]:
    """Load a model again, with the state of a world.

    Objects are matched by their names (`recompile`). Without names they are matched by their order
    if the numbers and types of joints, actuators and mocap bodies are the same, and otherwise the
    world starts again.

    Args:
      path: file of the model.
      m: the model that it contained before.
      d: a world of `m`.

    Returns:
      The new model, its world, and a report of which state was kept.

    Raises:
      ModelError: the file cannot be compiled.
      UnsupportedError: the model cannot be simulated.
      OSError: the file cannot be read.
    """
    spec = Spec.from_file(path)
    nameless = ""
    try:
        new, world = recompile(spec, m, d)
    except InputError:
        raise
    except ValueError as error:  # objects without names
        nameless = str(error)
    if not nameless:
        check_supported(new)
        return new, world, "reloaded, with the state of all objects that have the same names"
    new = load_model(spec)
    check_supported(new)
    world = make_data(new, kept_names(d))
    if not _same_joints(m, new):
        return new, world, "reloaded in the initial state: name all objects to keep it"
    state = {name: jnp.asarray(getattr(d, name), getattr(world, name).dtype) for name in _STATE}
    return new, world.replace(**state), "reloaded, with the state of joints in the same order"


def _same_joints(m: Model, new: Model) -> bool:
    """Return whether two models have the same layout of the state."""
    sizes = ("nq", "nv", "na", "nu", "nmocap")
    same = all(getattr(m, n) == getattr(new, n) for n in sizes)
    return same and np.array_equal(m.jnt_type, new.jnt_type)
