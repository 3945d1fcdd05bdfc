"""XLA flags for CPU programs, set in the environment before the first compilation.

On a CPU the physics compiles to loops over worlds in a few large kernels
(transforms/cpu_fusion.py). By default LLVM unrolls short loops before it vectorizes, and
unrolls vectorized loops several times. Without this unrolling a step of the humanoid compiles in
half the time and runs faster; vectors of the full width of the CPU, instead of half of it, also
help (docs/numerics.md). XLA reads both settings only from the environment, when a process first
uses it, so they hold for everything the process compiles for a CPU. The environment variable
`JAXSIM_XLA_FLAGS=0` leaves the process as it is.
"""

import os

import jax

_SWITCH = "JAXSIM_XLA_FLAGS"
_XLA_OPTIONS = {
    "xla_backend_extra_options": "xla_cpu_disable_loop_unrolling",
    "xla_cpu_prefer_vector_width": "512",  # upper bound; XLA uses at most the width of the CPU
}
# XLA ends the process at an unknown flag, so later, untested versions get none of these flags. The
# first flag takes a list of arbitrary words.
_TESTED_VERSION = (0, 13)


def tell_xla() -> None:
    """Add the flags that are missing to `XLA_FLAGS`; flags set by the user are not changed.

    The environment variable `JAXSIM_XLA_FLAGS=0` disables this.

    Without effect if XLA was used before in this process: programs are then slower, and correct.
    """
    if os.environ.get(_SWITCH) == "0":
        return
    flags = os.environ.get("XLA_FLAGS", "")
    known = list(_XLA_OPTIONS.items())[: None if jax.__version_info__ < _TESTED_VERSION else 1]
    new = [f"--{name}={value}" for name, value in known if name not in flags]
    if new:
        os.environ["XLA_FLAGS"] = " ".join([flags, *new]).strip()
