"""All platform-dependent choices of the numerical code.

A program is compiled for the platform that it will run on: JAX's default, or another that
`for_platform` names, such as a GPU that the compiling machine does not have:

    with jaxsim.for_platform("cuda"):
        lowered = jax.jit(jaxsim.step).trace(m, d).lower(lowering_platforms=("cuda",))

    with jaxsim.for_platform("cuda", kernels=False):  # without the package's own GPU kernels
        ...

The platform is part of the trace context, so a program of one platform is never reused for
another. Thresholds that differ between platforms are fields of `Tuning` (tuning.py).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax

from jaxsim.cache import bounded_cache
from jaxsim.trace_context import trace_context, trace_with


class Platform(NamedTuple):
    """Choices for one platform.

    Attributes:
      recomputes: the compiler's fusion recomputes inexpensive values in each of their users, so
        values with many users are materialized by a branch (materialize.py).
      tiles: many worlds run in tiles that fit the cache of a core (layout.py).
      branches: a data-dependent branch is inexpensive; elsewhere it would wait for the host.
      scans: a scan over items is inexpensive; elsewhere one sort takes fewer kernels.
      chunks: contacts are processed in chunks up to the largest count of any world
        (arrays/products.py);
        elsewhere the whole capacity at once: a loop of unknown length would wait for the host.
      gathers: worlds may gather their own items of a table; a TPU fetches a tile of 1,024 numbers
        for each, where comparing the index with all items is one sum (arrays/gather.py).
      blocks: large linear systems are solved one after another, by blocks: the library would wake
        threads for each small one (linalg/cholesky.py).
      fuses_calls: programs run as a few large kernels, in which loops are inexpensive
        (cpu_fusion.py).
      kernels: how the package's own kernels run (pallas.py): "compiled" for a GPU, or "interpreted"
        on any platform, for tests; None: XLA compiles everything.
    """

    recomputes: bool
    tiles: bool
    branches: bool
    scans: bool
    chunks: bool
    gathers: bool
    blocks: bool
    fuses_calls: bool
    kernels: str | None = None


PLATFORMS = {
    "cpu": Platform(
        recomputes=True,
        tiles=True,
        branches=True,
        scans=True,
        chunks=True,
        gathers=True,
        blocks=True,
        fuses_calls=True,
    )
}
_OTHER_PLATFORM = Platform(
    recomputes=False,
    tiles=False,
    branches=False,
    scans=False,
    chunks=False,
    gathers=True,
    blocks=False,
    fuses_calls=False,
)
PLATFORMS["tpu"] = _OTHER_PLATFORM._replace(gathers=False)
_MIN_COMPUTE_CAPABILITY = 8.0  # lowest compute capability for the package's own GPU kernels
_PLATFORM_NAMES = ("cpu", "gpu", "cuda", "rocm", "tpu")

# XLA options for a program that runs for less time than it takes to compile.
FAST_COMPILE_OPTIONS: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,  # a step compiles in 12 to 20 % less time
}
if jax.__version_info__ < (0, 11):  # later versions have fusion emitters only
    FAST_COMPILE_OPTIONS["xla_cpu_use_fusion_emitters"] = False


def quick_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as one program, compiled quickly because it runs a few times.

    It is for set-up and results on the host, where each operation would be a program of its own.
    Unlike functions of `jax.jit` it cannot be called in a program.
    """
    return jax.jit(function, compiler_options=FAST_COMPILE_OPTIONS)


def for_platform(name: str, *, kernels: bool | None = None) -> AbstractContextManager:
    """Return a context in which programs are compiled for a platform.

    Args:
      name: the platform: "cpu", "cuda", "rocm" or "tpu".
      kernels: use the package's own GPU kernels where XLA would need many. They are compiled for
        "cuda"; on other platforms they are interpreted, slowly, for tests. None: use them if an
        NVIDIA GPU of compute capability 8.0 or higher is present.

    Raises:
      ValueError: the platform is unknown.
    """
    if name not in _PLATFORM_NAMES:
        raise ValueError(
            f"for_platform: {name!r} is no platform; expected one of {_PLATFORM_NAMES}"
        )
    return trace_with(platform=name, kernels=kernels)


def platform() -> Platform:
    """Return the choices for the platform of the program being traced."""
    name, kernels = platform_name(), trace_context().kernels
    found, nvidia = PLATFORMS.get(name, _OTHER_PLATFORM), name in ("gpu", "cuda")
    if kernels is None:
        kernels = nvidia and _supports_kernels()
    if not kernels:
        return found
    return found._replace(kernels="compiled" if nvidia else "interpreted")


def platform_name() -> str:
    """Return the platform of the program being traced: the one that is named, or JAX's default."""
    if trace_context().platform:
        return trace_context().platform
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else device.platform


@bounded_cache(1)
def _supports_kernels() -> bool:
    """Return whether a GPU is present that can compile the package's own kernels."""
    if jax.default_backend() != "gpu":
        return False
    device = jax.local_devices()[0]
    capability = getattr(device, "compute_capability", "0")
    return device.device_kind.startswith("NVIDIA") and float(capability) >= _MIN_COMPUTE_CAPABILITY
