"""What XLA is told about programs for a CPU, before it compiles the first one.

The physics on a CPU is loops over worlds in a few large kernels (physics/arrays/cpu_kernels.py).
LLVM writes short loops out, number by number, before it looks for vectors, and repeats the vectors
of others many times. Without that a step of the humanoid compiles in half the time and runs faster;
so it does with vectors as long as the CPU has, instead of half of these (docs/numerics.md). XLA
takes both from the environment alone, when a process first uses it: they hold for all that the
process compiles for a CPU.
"""

import os

import jax

OPTIONS = {
    "xla_backend_extra_options": "xla_cpu_disable_loop_unrolling",
    "xla_cpu_prefer_vector_width": "512",  # at most what the CPU has
}
# A flag that XLA does not know ends the process: later versions are not told what was not tried.
# The first is a list that any word may stand in.
TRIED = (0, 13)


def tell_xla() -> None:
    """Add to `XLA_FLAGS` what is not in there: who sets an option keeps it.

    Without effect where XLA was used before; programs are then slower, and correct.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    known = list(OPTIONS.items())[: None if jax.__version_info__ < TRIED else 1]
    new = [f"--{name}={value}" for name, value in known if name not in flags]
    if new:
        os.environ["XLA_FLAGS"] = " ".join([flags, *new]).strip()
