"""Create Data from a Model or a `mujoco.MjModel`."""

from typing import Any

import jax

from jaxsim.io.bridge.mjx_arguments import check_choices, move_to_device
from jaxsim.io.bridge.model import put_model
from jaxsim.model.allocate import Keep
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data as make_data_of


def make_data(
    m: Any,
    keep: Keep = "default",
    *,
    device: Any = None,
    impl: Any = None,
    **buffers: int | None,
) -> Data:
    """Return the state of one world at the reference configuration, at rest.

    Args:
      m: a Model; or a `mujoco.MjModel`, which is first converted by `put_model`.
      keep: results that a step carries besides the state and the inputs: "default", the commonly
        used ones; "all"; or a list of field names and of stages, `keep=["xpos", crb]`: the fields
        that `jaxsim.stages.crb` reads and writes. A field that is not kept costs no memory.
      device: device of its arrays; None: JAX's default.
      impl: "jax", accepted for MJX programs: there is one implementation.
      buffers: `nconmax`, `naconmax`, `naccdmax` and `njmax` of MJX. They have no effect, and a
        warning is issued: the contact capacity is part of the model.

    Returns:
      Data with `qpos = qpos0`, mocap bodies at their poses in the model and everything else zero.
      Trees with the sleep policy `init` start asleep, with their forward dynamics computed.
      Use `jax.vmap` over a batch of qpos, or `jax.tree.map`, to make many worlds.

    Warns:
      UserWarning: a tree that should start asleep cannot, because it is coupled to one that does
        not.

    Raises:
      UnsupportedError: the model has features that the physics cannot simulate; the message lists
        all of them with file and line.
      ValueError: `keep` names a field that Data does not have.

    Example:
      >>> d = make_data(m, keep=("qacc", "xpos"))
      >>> d.qpos.shape, d.qacc.shape, d.sensordata is None
      ((1,), (1,), True)
    """
    check_choices("make_data", impl, buffers)
    return move_to_device(make_data_of(_model(m), keep), device)


def _model(m: Any) -> Model:
    """Return the Model; a converted one has constant arrays even while a program is traced."""
    if isinstance(m, Model):
        return m
    with jax.ensure_compile_time_eval():
        return put_model(m)
