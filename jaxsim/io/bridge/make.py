"""The start of a world, of a Model or of MuJoCo's own model."""

from typing import Any

import jax

from jaxsim.io.bridge.choices import check_choices, on_device
from jaxsim.io.bridge.model import put_model
from jaxsim.model.allocate import Keep
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.make_data import make_data as make_data_of


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
      m: a Model; or a `mujoco.MjModel`, of which one is made as `put_model` makes it.
      keep: which results a step carries besides the state and the inputs: "default", what people
        commonly read; "all"; or a list of fields by name and of stages, `keep=["xpos", crb]`: what
        `jaxsim.crb` reads and writes. What is not kept costs no memory.
      device: where its arrays are to be; None: JAX's default.
      impl: "jax", as MJX has it: there is one engine.
      buffers: `nconmax`, `naconmax`, `naccdmax` and `njmax` of MJX. They have no effect, and a
        warning says so: room for contacts is part of the model.

    Returns:
      Data with `qpos = qpos0`, mocap bodies at their poses in the model and everything else zero.
      Trees that begin asleep do so, and keep what the forward dynamics finds for them.
      Use `jax.vmap` over a batch of qpos, or `jax.tree.map`, to make many worlds.

    Warns:
      UserWarning: a tree that should begin asleep cannot, because one that does not is tied to it.

    Raises:
      UnsupportedError: the model has what the physics cannot simulate; every such thing is listed
        with its place.
      ValueError: `keep` names a field that Data does not have.

    Example:
      >>> d = make_data(m, keep=("qacc", "xpos"))
      >>> d.qpos.shape, d.qacc.shape, d.sensordata is None
      ((1,), (1,), True)
    """
    check_choices("make_data", impl, buffers)
    return on_device(make_data_of(_model(m), keep), device)


def _model(m: Any) -> Model:
    """Return the Model; one that is made has constant arrays also while a program is traced."""
    if isinstance(m, Model):
        return m
    with jax.ensure_compile_time_eval():
        return put_model(m)
