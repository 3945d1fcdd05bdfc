"""Warning for programs that import `jaxsim.mjx` but run Brax's environments on MJX.

`brax.envs.PipelineEnv(sys, backend="mjx")` imports MJX itself, whatever the program imports.
"""

import functools
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_BRAX_ENV_MODULE = "brax.envs.base"
_BRAX_WARNING = (
    'PipelineEnv(backend="mjx") runs on MJX, not on jaxsim: call '
    "jaxsim.envs.brax_pipeline.take_mjx_backend() before it, which makes it run on jaxsim"
)


def warn_about_pipeline_env() -> None:
    """Make PipelineEnv warn, now or when Brax is imported."""
    if _BRAX_ENV_MODULE in sys.modules:
        _patch_pipeline_env(sys.modules[_BRAX_ENV_MODULE])
    else:
        sys.meta_path.insert(0, Watch())


class Watch(MetaPathFinder):
    """Module finder for the module of PipelineEnv, with a loader that adds the warning."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None for any other module."""
        if fullname != _BRAX_ENV_MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = WarningLoader(spec.loader)
        return spec


class WarningLoader(Loader):
    """Module loader that adds the warning to PipelineEnv."""

    def __init__(self, inner: Loader):
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        self._inner.exec_module(module)
        _patch_pipeline_env(module)


def _patch_pipeline_env(module: Any) -> None:
    make, pipeline = module.PipelineEnv.__init__, module.m_pipeline

    @functools.wraps(make)
    def __init__(self: Any, sys: Any, backend: str = "mjx", *args: Any, **named: Any) -> None:
        if backend == "mjx" and module.m_pipeline is pipeline:
            warnings.warn(_BRAX_WARNING, stacklevel=2)
        make(self, sys, backend, *args, **named)

    module.PipelineEnv.__init__ = __init__
