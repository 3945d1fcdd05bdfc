"""One module decides by platform, and users can override the platform of a program."""

from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import _supports_kernels as takes_kernels
from jaxsim.transforms.platform import for_platform, platform

pytestmark = pytest.mark.kernels

PACKAGE = Path(jaxsim.__file__).parent


def branches(function, *args) -> int:
    """Conditionals in the program of a function."""
    return str(jax.make_jaxpr(function)(*args)).count("cond[")


def test_a_program_is_made_for_the_platform_that_is_named():
    x = jnp.ones((3, 8))

    def pinned(x):
        return materialize(2 * x, x)

    assert branches(pinned, x) == 1  # these tests run on a CPU
    with for_platform("cuda"):
        assert not platform().branches
        assert branches(pinned, x) == 0
    assert platform().branches


def test_what_was_compiled_for_another_platform_is_not_used_again():
    made = []

    @jax.jit
    def double(x):
        made.append(platform().recomputes)
        return 2 * x

    double(1.0)
    with for_platform("tpu"):
        double(1.0)
    double(2.0)
    assert made == [True, False]


def test_a_step_can_be_lowered_for_a_device_that_is_not_here():
    m = jaxsim.load_model("<mujoco><worldbody><body><joint/><geom size='.1' pos='.2 0 0'/></body>"
                          "</worldbody></mujoco>")  # fmt: skip
    d = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(8))
    step = jax.vmap(jaxsim.step, (None, 0))
    here = jax.jit(step).trace(m, d).lower().as_text()
    with for_platform("cuda"):
        there = jax.jit(step).trace(m, d).lower(lowering_platforms=("cuda",)).as_text()
    assert there.count("stablehlo.case") < here.count("stablehlo.case")


@pytest.mark.parametrize(
    ("kind", "capability", "kernels"),
    [("NVIDIA H200", "9.0", "compiled"), ("NVIDIA T4", "7.5", None), ("AMD MI300", "gfx9", None)],
)
def test_kernels_of_our_own_are_for_the_gpus_they_were_made_for(
    monkeypatch, kind, capability, kernels
):
    there = SimpleNamespace(device_kind=kind, compute_capability=capability, platform="gpu")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: [there])
    takes_kernels.cache_clear()
    try:
        assert platform().kernels == kernels
        with for_platform("cuda", kernels=False):
            assert platform().kernels is None
        with jax.default_device("cpu"):
            assert platform().kernels is None
            assert platform().tiles
    finally:
        takes_kernels.cache_clear()


def test_an_unknown_platform_is_refused():
    with pytest.raises(ValueError, match="'quantum' is no platform; expected one of"):
        for_platform("quantum")


def test_only_the_platform_module_queries_the_backend():
    asking = {p.name for p in PACKAGE.rglob("*.py") if "default_backend" in p.read_text()}
    assert asking == {"platform.py"}
