"""What the numerical code does differently on different platforms: decided here, nowhere else.

A program is made for the platform that it will run on. Unless told otherwise that is JAX's default;
`for_platform` names another, such as a GPU that is not in the machine that compiles:

    with jaxsim.for_platform("cuda"):
        lowered = jax.jit(jaxsim.step).trace(m, d).lower(lowering_platforms=("cuda",))

    with jaxsim.for_platform("cuda", kernels=False):  # without kernels of our own
        ...

Programs made before are not used again for another platform: the name is part of JAX's caches.
"""

from contextlib import AbstractContextManager
from typing import NamedTuple

import jax

from jaxsim.cache import bounded


class Platform(NamedTuple):
    """How code is best written for a platform.

    Attributes:
      recomputes: the compiler's fusion recomputes cheap values in each of their users, so that what
        has many users is made in a branch of its own (pin.py, once.py).
      tiles: many worlds are taken in parts that fit the cache of a core (native.py).
      branches: a branch that depends on data is cheap; elsewhere it would wait for the host.
      scans: a scan over items is cheap; elsewhere one sort takes fewer kernels.
      chunks: contacts are taken a few at a time, as far as some world has one (products.py);
        elsewhere all places at once: a loop of unknown length would wait for the host.
      gathers: each world may choose its own items of a table; a TPU fetches a tile of 1,024 numbers
        for each, where comparing the choice with all items is one sum (select.py).
      blocks: large systems of equations are solved one after another, by blocks: the library would
        wake threads for each small one (factor.py).
      in_kernels: programs run as a few large kernels, in which loops cost nothing (cpu_kernels.py).
      lanes: how many pairs of shapes are searched at a time (arrays/lanes.py).
      few: the same where a lane has tables of its own, which on a CPU have to stay in its cache.
      kernels: how kernels of our own run (kernel.py): "compiled" for a GPU, or "interpreted"
        anywhere, for tests; None: what they do is left to XLA.
    """

    recomputes: bool
    tiles: bool
    branches: bool
    scans: bool
    chunks: bool
    gathers: bool
    blocks: bool
    in_kernels: bool
    lanes: int
    few: int
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
        in_kernels=True,
        lanes=128,
        few=64,
    )
}
ELSEWHERE = Platform(
    recomputes=False,
    tiles=False,
    branches=False,
    scans=False,
    chunks=False,
    gathers=True,
    blocks=False,
    in_kernels=False,
    lanes=16384,
    few=16384,
)
PLATFORMS["tpu"] = ELSEWHERE._replace(gathers=False)
OLDEST = 8.0  # compute capability that kernels of our own need
NAMES = ("cpu", "gpu", "cuda", "rocm", "tpu")

# Options for XLA of a program that runs for less time than it takes to compile.
QUICK: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
if jax.__version_info__ < (0, 11):  # later ones know no other way to compile fusions
    QUICK["xla_cpu_use_fusion_emitters"] = False

_told = jax.make_user_context(default_value=("", None))


def for_platform(name: str, *, kernels: bool | None = None) -> AbstractContextManager:
    """A context in which programs are made for a platform: "cpu", "cuda", "rocm" or "tpu".

    Args:
      name: the platform.
      kernels: use kernels of our own for what XLA makes many of. They are compiled for "cuda"; on
        other platforms they are interpreted, which shows what they compute, slowly. None: where
        there is a GPU that they were made for (NVIDIA, from compute capability 8.0).

    Raises:
      ValueError: there is no such platform.
    """
    if name not in NAMES:
        raise ValueError(f"for_platform: {name!r} is no platform; expected one of {NAMES}")
    return _told((name, kernels))


def platform() -> Platform:
    """How to write code for the platform that the program being made is for."""
    name, kernels = _told.value
    name = name or _default()
    found, nvidia = PLATFORMS.get(name, ELSEWHERE), name in ("gpu", "cuda")
    if kernels is None:
        kernels = nvidia and _takes_kernels()
    if not kernels:
        return found
    return found._replace(kernels="compiled" if nvidia else "interpreted")


def _default() -> str:
    """The platform on which JAX runs programs unless told otherwise."""
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else device.platform


@bounded(1)
def _takes_kernels() -> bool:
    """Whether a GPU is here for which kernels of our own can be compiled."""
    if jax.default_backend() != "gpu":
        return False
    device = jax.local_devices()[0]
    capability = getattr(device, "compute_capability", "0")
    return device.device_kind.startswith("NVIDIA") and float(capability) >= OLDEST
