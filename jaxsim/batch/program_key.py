"""Keys of compiled programs: a hash of all that determines a program before it is traced.

These are the code of the function, what it reads by name, the shapes, dtypes and shardings of its
arguments, the static parts of these (the structure of a model), the trace context, JAX's options,
the versions of the packages, the sources of jaxsim, and the processor. A part that cannot be
described, such as an object of a user's class, has no key.
"""

import functools
import hashlib
import io
import os
import pickle
import platform
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
from jax.sharding import Mesh

from jaxsim.arrays.array import PyTree
from jaxsim.cache import bounded_cache
from jaxsim.extend.registry import has_extensions
from jaxsim.model.structure import Structure
from jaxsim.trace_context import trace_context
from jaxsim.transforms.platform import platform as platform_properties

# Options of JAX that change a program.
_JAX_OPTIONS = """jax_enable_x64 jax_default_matmul_precision jax_default_prng_impl jax_debug_nans
jax_debug_infs jax_disable_jit jax_threefry_partitionable jax_numpy_dtype_promotion
jax_num_cpu_devices""".split()

# Packages whose code is described by their version.
_VERSIONED_PACKAGES = ("jaxsim", "jax", "jaxlib", "numpy", "builtins")


class _Undescribed(Exception):
    """A part of a program that no key can describe."""


# What a pickler raises for such a part.
NOT_DESCRIBED = (_Undescribed, pickle.PicklingError, AttributeError, TypeError, ValueError)


def program_key(function: Callable[..., Any], arguments: PyTree, version: str) -> str | None:
    """Return the key of a program, a hexadecimal number; None if nothing describes it."""
    if jax.process_count() > 1 or has_extensions():
        return None
    try:
        of_arrays = [_describe_array(leaf) for leaf in jax.tree.leaves(arguments)]
        of_function = _describe_function(function, set())
        parts = version, of_function, of_arrays, _static_part(arguments), _environment()
        described, _ = _describe(parts)
        return hashlib.sha256(described).hexdigest()
    except NOT_DESCRIBED:
        return None


def structures_in(arguments: PyTree) -> list[Structure]:
    """Return the structures in the static part of some arguments, in a fixed order."""
    return _describe(_static_part(arguments))[1]


def _environment() -> tuple:
    """Return what determines programs besides functions and arguments."""
    options = [(name, getattr(jax.config, name, None)) for name in _JAX_OPTIONS]
    versions = jax.__version__, jaxlib.__version__, np.__version__, sys.version_info[:3]
    device = jax.devices()[0]
    machine = device.platform, device.device_kind, device.client.platform_version, _processor()
    flags = os.environ.get("XLA_FLAGS", ""), os.environ.get("JAX_PLATFORMS", "")
    traced = tuple(trace_context()), tuple(platform_properties())
    return traced, options, versions, machine, flags, _sources()


@bounded_cache(1)
def _processor() -> str:
    """Return a description of the processor, for whose instructions programs are compiled."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.exists() else []
    kinds = sorted({x for x in lines if x.startswith(("model name", "flags", "Features"))})
    return "\n".join([platform.machine(), platform.processor(), *kinds])


@bounded_cache(1)
def _sources() -> str:
    """Return a digest of the sources of jaxsim: a changed file makes other programs."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _describe_array(leaf: Any) -> tuple:
    """Return what a program depends on of an array: all but its numbers."""
    where = None
    if isinstance(leaf, jax.Array):
        sharding = leaf.sharding
        where = str(sharding), leaf.committed, sorted(map(str, sharding.device_set))
    shape, dtype, weak = array_kind(leaf)
    return shape, str(dtype), weak, where


def array_kind(leaf: Any) -> tuple[tuple[int, ...], Any, bool]:
    """Return shape, dtype and weak type of an array, or of one that is only described."""
    aval = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    return aval.shape, aval.dtype, bool(aval.weak_type)


def _describe_function(function: Any, seen: set[int]) -> tuple:
    """Return a description of a function: its code, and what it reads by name.

    Raises:
      _Undescribed: it reads something else than numbers, strings, arrays and functions.
    """
    if isinstance(function, functools.partial):
        parts = function.args, function.keywords
        return "partial", _describe_function(function.func, seen), _describe_value(parts, seen)
    found = _find_name(function)
    if found is not None:
        return found
    module, name = (str(getattr(function, f"__{n}__", "")) for n in ("module", "qualname"))
    if not isinstance(function, types.FunctionType):
        raise _Undescribed(name)
    if id(function) in seen:
        return module, name
    seen.add(id(function))
    # Values of the closure, defaults, and globals that the code names.
    code, everything = function.__code__, function.__globals__
    names = () if _is_versioned(str(everything.get("__name__"))) else sorted(_names(code))
    read = {n: everything[n] for n in names if n in everything}
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    values = cells, function.__defaults__, function.__kwdefaults__, read
    return module, name, _describe_code(code), _describe_value(values, seen)


def _find_name(function: Any) -> tuple[str, str] | None:
    """Return module and name under which a package with a version has a function, or None."""
    module, name = (str(getattr(function, f"__{n}__", "")) for n in ("module", "qualname"))
    if not _is_versioned(module):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is function:
        return module, name
    # A public function has the name of the one that it wraps.
    for module in sorted(n for n in sys.modules if n.partition(".")[0] == "jaxsim"):
        for name, value in sorted(vars(sys.modules[module]).items()):
            if value is function:
                return module, name
    return None


def _names(code: types.CodeType) -> set[str]:
    """Return the names that a code reads, those of functions inside of it included."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _describe_code(code: types.CodeType) -> tuple:
    """Return the instructions and constants of a code, without file and line."""
    constants = [
        _describe_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, constants


def _describe_value(value: Any, seen: set[int]) -> Any:
    """Return a description of a value that a function reads."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic, np.ndarray)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_describe_value(v, seen) for v in value]
    if isinstance(value, dict):
        return [(k, _describe_value(v, seen)) for k, v in sorted(value.items())]
    if isinstance(value, jax.tree_util.PyTreeDef):
        return jax.tree.unflatten(value, range(value.num_leaves))
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, Mesh):
        return value.axis_names, value.devices.shape, value.device_ids.tolist()
    if isinstance(value, types.ModuleType):
        # Through a module of the user the function may read anything.
        name = value.__name__
        if _is_versioned(name) or name.partition(".")[0] in sys.stdlib_module_names:
            return name
        raise _Undescribed(name)
    if type(value) is object:
        return "object"  # a sentinel
    if callable(value):
        return _describe_function(value, seen)
    raise _Undescribed(type(value))


def _is_versioned(module: str) -> bool:
    """Return whether versions describe the code of a module."""
    return module.partition(".")[0] in _VERSIONED_PACKAGES


class _Describer(pickle.Pickler):
    """Writes values as bytes that are equal in all processes for equal values.

    Attributes:
      structures: all structures that were written.
    """

    def __init__(self, file: io.BytesIO):
        super().__init__(file, protocol=5)
        self.fast = True  # the same bytes whether equal strings are one object or two
        self.structures: list[Structure] = []

    def reducer_override(self, value: Any) -> Any:
        """Write a structure by its tables; refuse classes and functions of users."""
        if isinstance(value, Structure):
            self.structures.append(value)
            return dict, ([(name, getattr(value, name)) for name in sorted(value)],)
        if isinstance(value, (type, types.FunctionType)) and not _is_versioned(value.__module__):
            raise _Undescribed(value)
        return NotImplemented


def _describe(value: Any) -> tuple[bytes, list[Structure]]:
    """Return the bytes that describe a value, and the structures in it."""
    file = io.BytesIO()
    writer = _Describer(file)
    writer.dump(value)
    return file.getvalue(), writer.structures


def _static_part(tree: PyTree) -> PyTree:
    """Return a tree whose arrays are replaced by numbers."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, range(len(leaves)))
