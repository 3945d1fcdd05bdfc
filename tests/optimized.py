"""Compilation as for users, for tests of independence of compiler options (conftest.py)."""

from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS

USUAL = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}
OPTIMIZED = {name: USUAL[name] for name in FAST_COMPILE_OPTIONS}
