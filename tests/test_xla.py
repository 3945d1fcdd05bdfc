"""XLA flags from the environment, in processes of their own."""

import os
import subprocess
import sys

import pytest

SAY = "import os, jaxsim; print(os.environ['XLA_FLAGS'])"


def flags(before: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", SAY],
        env=os.environ | {"XLA_FLAGS": before},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()


def test_options_are_added_to_those_of_the_user():
    assert flags("--xla_force_host_platform_device_count=2") == [
        "--xla_force_host_platform_device_count=2",
        "--xla_backend_extra_options=xla_cpu_disable_loop_unrolling",
        "--xla_cpu_prefer_vector_width=512",
    ]


@pytest.mark.parametrize("name", ["xla_backend_extra_options", "xla_cpu_prefer_vector_width"])
def test_user_option_is_not_overridden(name):
    assert [flag for flag in flags(f"--{name}=256") if name in flag] == [f"--{name}=256"]


OTHER = """
import os, sys
{first}
import jax, jax.numpy as jnp

def other(a, b):
    return jnp.cumsum(jnp.sin(a) @ b, axis=0) / (1 + jnp.abs(b).sum())

a = jnp.ones((8, 8))
sys.stdout.write(jax.jit(other).lower(a, a).compile().as_text() + os.environ.get("XLA_FLAGS", ""))
"""


def test_with_the_switch_another_function_compiles_to_the_same_program():
    """The import changes no setting of the process, so no program of anyone else."""
    environment = {**os.environ, "JAXSIM_XLA_FLAGS": "0", "JAX_PLATFORMS": "cpu"}
    environment.pop("XLA_FLAGS", None)
    before, after = (
        subprocess.run(
            [sys.executable, "-c", OTHER.format(first=first)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for first in ("", "import jaxsim")
    )
    assert "cumsum" in before
    assert before == after
