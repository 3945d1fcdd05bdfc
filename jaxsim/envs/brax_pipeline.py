"""Physics pipeline for Brax's `PipelineEnv`, whose environments are written for Brax's backends.

    import jaxsim.envs.brax_pipeline as pipeline

    pipeline.register()                  # adds PipelineEnv(sys, backend="jaxsim")
    pipeline.take_mjx_backend()          # PipelineEnv(sys, backend="mjx") also runs jaxsim

The System stays Brax's. The Model is compiled from its `mj_model`; fields and options that differ
from `mj_model`, because an environment changed or randomized them, are taken from the System.
"""

import functools
from dataclasses import dataclass
from sys import modules
from types import ModuleType
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.cache import bounded_cache
from jaxsim.io.bridge import put_model
from jaxsim.mjx.stages import make_data
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.option import Option
from jaxsim.optional import require
from jaxsim.physics.public import api

_brax_base = require("brax.base", "brax")
envs = require("brax.envs.base", "brax")

BACKEND = "jaxsim"
_MAX_CACHED_MODELS = 8  # models that are cached with the MjModel of the System


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PipelineState(_brax_base.State):  # type: ignore[name-defined]
    """PipelineState of a pipeline: Brax's fields, and the fields of Data by their names.

    Attributes:
      data: state and results of the physics; `contact` are its contacts.
    """

    data: Data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "data":
            raise AttributeError(name)
        return getattr(self.data, name)

    def replace(self, **values: Any) -> Self:
        """Return a copy with some fields replaced; the next step recomputes Brax's fields."""
        own = {n: values.pop(n) for n in _PIPELINE_FIELDS & values.keys()}
        if values:
            own["data"] = self.data.replace(**values)
        return type(self)(**{n: own.get(n, getattr(self, n)) for n in (*_PIPELINE_FIELDS, "data")})


_PIPELINE_FIELDS = frozenset(("q", "qd", "x", "xd", "contact"))


def init(
    sys: Any,
    q: jax.Array,
    qd: jax.Array,
    act: jax.Array | None = None,
    ctrl: jax.Array | None = None,
    unused_debug: bool = False,
) -> PipelineState:
    """Return the state of a System at a configuration and velocity, with the results of `forward`.

    Args:
      sys: a `brax.System` that was loaded from an MjModel.
      q: configuration, (nq,).
      qd: velocity, (nv,).
      act: activations of actuators, (na,).
      ctrl: controls, (nu,).
      unused_debug: ignored, as in Brax.
    """
    m = model_of_system(sys)
    d = make_data(m).replace(qpos=q, qvel=qd)
    given = {"act": act, "ctrl": ctrl}
    d = d.replace(**{n: a for n, a in given.items() if a is not None})
    return _state(m, api.forward(m, d))


def step(
    sys: Any, state: PipelineState, act: jax.Array, unused_debug: bool = False
) -> PipelineState:
    """Return the state one time step later, with a control, (nu,)."""
    m = model_of_system(sys)
    return _state(m, api.step(m, state.data.replace(ctrl=act)))


def _state(m: Model, d: Data) -> PipelineState:
    """Return Brax's view of a Data: poses and velocities of the body frames, without the world."""
    angular, linear = d.cvel[1:, :3], d.cvel[1:, 3:]
    offset = d.xpos[1:] - d.subtree_com[m.body_rootid[1:]]
    return PipelineState(
        q=d.qpos,
        qd=d.qvel,
        x=_brax_base.Transform(pos=d.xpos[1:], rot=d.xquat[1:]),
        xd=_brax_base.Motion(ang=angular, vel=linear + jnp.cross(angular, offset)),
        contact=d.contact,
        data=d,
    )


def model_of_system(sys: Any) -> Model:
    """Return the Model of a `brax.System`.

    Raises:
      ValueError: the System was not loaded from an MjModel.
    """
    if sys.mj_model is None:
        raise ValueError("sys.mj_model: None; load the System by brax.io.mjcf")
    m = _model(sys.mj_model)
    opt = _changed_fields(Option, sys.opt, sys.mj_model.opt)
    values = _changed_fields(Model, sys, sys.mj_model)
    if opt:
        values["opt"] = m.opt.replace(**opt)
    return m.replace(**values) if values else m


@bounded_cache(_MAX_CACHED_MODELS)
def _model(model: Any) -> Model:
    with jax.ensure_compile_time_eval():
        return put_model(model)


def _changed_fields(record: type[Model] | type[Option], mine: Any, original: Any) -> dict[str, Any]:
    """Return the traced fields of a record that differ from those of the MjModel."""
    found = {}
    for name, field in record.fields.items():
        value = vars(mine).get(name)
        if value is None or field.nested is not None or not hasattr(original, name):
            continue
        if field.static:
            if int(value) != int(getattr(original, name)):
                found[name] = int(value)
        elif isinstance(value, jax.core.Tracer) or not _equals_original(
            value, getattr(original, name)
        ):
            found[name] = value
    return found


def _equals_original(value: Any, original: Any) -> bool:
    a = np.asarray(value)
    return np.array_equal(a, np.asarray(original).reshape(a.shape).astype(a.dtype))


def register() -> None:
    """Add the backend "jaxsim" to `PipelineEnv`."""
    old = envs.PipelineEnv.__init__
    if getattr(old, "knows_jaxsim", False):
        return

    @functools.wraps(old)
    def make(self: Any, sys: Any, backend: str = "mjx", *args: Any, **named: Any) -> None:
        old(self, sys, "mjx" if backend == BACKEND else backend, *args, **named)
        if backend == BACKEND:
            self._backend, self._pipeline = BACKEND, _this_module()

    make.knows_jaxsim = True  # type: ignore[attr-defined]
    envs.PipelineEnv.__init__ = make


def take_mjx_backend() -> None:
    """Run `PipelineEnv(sys, backend="mjx")` on jaxsim, for environments created afterwards."""
    register()
    vars(envs)["m_pipeline"] = _this_module()


def _this_module() -> ModuleType:
    return modules[__name__]
