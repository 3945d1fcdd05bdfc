"""Keys of compiled programs: a hash of all that determines a program before it is traced.

These are the code of the function, what it reads by name, the shapes, dtypes and shardings of its
arguments, the static parts of these (the structure of a model), the trace context, JAX's options,
the versions of the packages, the sources of jaxsim, and the processor. Objects that a function
reads, such as the planner of a control loop, are described by their attributes, their arrays by
their numbers: in the program these are constants. A program with a part that nothing describes,
such as an object of a user's class, has no key.
"""

import enum
import functools
import hashlib
import importlib.metadata
import io
import os
import pickle
import platform
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from jaxsim.arrays.array import PyTree
from jaxsim.cache import bounded_cache
from jaxsim.extend.registry import has_extensions
from jaxsim.model.structure import Structure
from jaxsim.trace_context import jax_options, trace_context
from jaxsim.transforms.platform import platform as platform_properties

# Packages whose code is described by their version, as are the modules of Python.
_LIBRARIES = "jax jaxlib numpy scipy flax optax optimistix equinox lineax rejax distrax".split()
_PYTHON_PACKAGES = frozenset({"jaxsim", *_LIBRARIES} - {"jaxlib", "numpy", "scipy"})
_VERSIONED_PACKAGES = frozenset(("jaxsim", *_LIBRARIES, *sys.stdlib_module_names))


class _Undescribed(Exception):
    """A part of a program that no key can describe."""


# What a pickler raises for such a part.
NOT_DESCRIBED = (
    _Undescribed,
    pickle.PicklingError,
    AttributeError,
    RecursionError,
    TypeError,
    ValueError,
)


def program_key(
    function: Callable[..., Any], arguments: PyTree, version: str, options: Any = None
) -> str | None:
    """Return the key of a program, a hexadecimal number; None if nothing describes it.

    Args:
      function, arguments: what the program is made of.
      version: a word for what the key does not describe otherwise.
      options: arguments of `jax.jit`.
    """
    if jax.process_count() > 1 or has_extensions():
        return None
    try:
        of_arrays = [_describe_array(leaf) for leaf in jax.tree.leaves(arguments)]
        parts = version, function, of_arrays, _static_part(arguments), options, _environment()
        described, _ = _describe(parts)
        return hashlib.sha256(described).hexdigest()
    except NOT_DESCRIBED:
        return None


def local_parts_of(function: Callable[..., Any], arguments: PyTree) -> list[Any]:
    """Return parts of a program that each process makes for itself, in a fixed order.

    These are the structures of models, and classes and functions that no module has by name.
    """
    return _describe((_static_part(arguments), function))[1]


def _environment() -> tuple:
    """Return what determines programs besides functions and arguments."""
    versions = [(n, importlib.metadata.version(n)) for n in _LIBRARIES if n in sys.modules]
    device = jax.devices()[0]
    machine = device.platform, device.device_kind, device.client.platform_version, _processor()
    flags = os.environ.get("XLA_FLAGS", ""), os.environ.get("JAX_PLATFORMS", "")
    traced = tuple(trace_context()), tuple(platform_properties())
    return traced, jax_options(), versions, sys.version_info[:3], machine, flags, _sources()


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


def _find_name(function: Any) -> tuple[str, str] | None:
    """Return module and name under which a package with a version has a function, or None."""
    module, name = (str(getattr(function, f"__{n}__", "")) for n in ("module", "qualname"))
    if not _is_versioned(module) or "<locals>" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is function:
        return module, name
    # A public function has the name of the one that it wraps, which another module has.
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
    constants = [_describe_code_constant(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def _describe_code_constant(value: Any) -> Any:
    """Return a description of a constant of a code; Python orders sets by a random hash."""
    if isinstance(value, types.CodeType):
        return _describe_code(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _is_versioned(module: str) -> bool:
    """Return whether versions describe the code of a module."""
    return module.partition(".")[0] in _VERSIONED_PACKAGES


def _is_of(packages: frozenset[str], kind: type) -> bool:
    """Return whether a class is defined in one of some packages."""
    return kind.__module__.partition(".")[0] in packages


class _Describer(pickle.Pickler):
    """Writes values as bytes that are equal in all processes for equal values.

    Attributes:
      local_parts: structures, and classes and functions that no module has by name.
    """

    def __init__(self, file: io.BytesIO):
        super().__init__(file, protocol=5)
        self.fast = True  # the same bytes whether equal strings are one object or two
        self.local_parts: list[Any] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # no other object gets the identity of a described one

    def persistent_id(self, value: Any) -> Any:
        """Return what is written for a value; None: what pickle writes.

        Raises:
          _Undescribed: nothing describes the value.
        """
        kind = type(value)
        if kind in _PLAIN_TYPES:
            return None
        if isinstance(value, type):
            _check_versioned(value.__module__, value)
            return None if _has_name(value) else self._describe_local_class(value)
        describe = next((f for t, f in _DESCRIPTIONS if isinstance(value, t)), None)
        if describe is None and kind.__name__ in _WRAPPERS:
            describe = _describe_wrapper
        if describe is None:
            _check_versioned(kind.__module__, value)
            if isinstance(value, _PICKLED_TYPES):
                return None
            describe = _describe_object
        if id(value) in self._seen:
            return "again", self._seen[id(value)]
        self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        if isinstance(value, Structure) or "<locals>" in getattr(value, "__qualname__", ""):
            self.local_parts.append(value)
        return describe(value)

    def _describe_local_class(self, value: type) -> Any:
        """Describe a class that a function of a library has made, by its fields."""
        if value not in self.local_parts:
            self.local_parts.append(value)
        fields = getattr(value, "__dataclass_fields__", None) or getattr(value, "_fields", None)
        if fields is None or not _is_of(_PYTHON_PACKAGES, value):
            raise _Undescribed(value)
        return "class", value.__module__, value.__qualname__, list(fields)


# Containers and values that pickle writes alike in all processes.
_PLAIN_TYPES = frozenset(
    (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, type(...), slice)
)
# Values of versioned classes whose parts pickle writes.
_PICKLED_TYPES = (
    tuple,
    enum.Enum,
    OrderedDict,
    defaultdict,
    deque,
    PurePath,
    types.SimpleNamespace,
)
_BASES = ("abc", "collections.abc", "typing")  # modules of classes without attributes
# Types that wrap a function: those of `jax.jit` and `functools.lru_cache`.
_WRAPPERS = ("PjitFunction", "_lru_cache_wrapper")


def _check_versioned(module: str, value: Any) -> None:
    """Raise _Undescribed unless versions describe the code of a module."""
    if not _is_versioned(module):
        raise _Undescribed(value)


def _has_name(kind: type) -> bool:
    """Return whether a module has a class by its name, so that another process finds it."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


def _describe_structure(value: Structure) -> Any:
    return "structure", [(name, getattr(value, name)) for name in sorted(value)]


def _describe_numpy(value: np.ndarray | np.generic) -> Any:
    if value.dtype.hasobject:
        return "objects", value.shape, value.tolist()
    return "numpy", str(value.dtype), value.shape, type(value).__name__, value.tobytes()


def _describe_constant(value: jax.Array) -> Any:
    """Describe an array that a program holds as a constant, by its numbers."""
    if isinstance(value, jax.core.Tracer):
        raise _Undescribed(value)
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return "key", str(value.dtype), jax.random.key_data(value)
    return "array", _describe_array(value), np.asarray(value)


def _describe_function(function: types.FunctionType) -> Any:
    """Describe a function by its code, and what it reads by name."""
    found = _find_name(function)
    if found is not None:
        return found
    # Values of the closure, defaults, and globals that the code names.
    code, everything = function.__code__, function.__globals__
    module = sys.modules.get(str(everything.get("__name__")))
    # A file of the user may have the name of a package.
    versioned = module is not None and everything is vars(module) and _is_versioned(module.__name__)
    names = () if versioned else sorted(_names(code))
    read = [(n, everything[n]) for n in names if n in everything]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    values = cells, function.__defaults__, function.__kwdefaults__, read
    return function.__module__, function.__qualname__, _describe_code(code), values


def _describe_builtin(function: Any) -> Any:
    found = _find_name(function)
    if found is None:
        raise _Undescribed(function)
    return found


def _describe_method(method: types.MethodType) -> Any:
    return "method", method.__func__, method.__self__


def _describe_partial(function: functools.partial) -> Any:
    return "partial", function.func, function.args, sorted(function.keywords.items())


def _describe_wrapper(function: Any) -> Any:
    """Describe a function that `jax.jit` or a cache has wrapped."""
    return _find_name(function) or ("wrapper", function.__wrapped__)


def _describe_module(module: types.ModuleType) -> str:
    """Describe a module; through one of the user a function may read anything."""
    _check_versioned(module.__name__, module)
    return module.__name__


def _describe_set(value: set | frozenset) -> Any:
    return "set", sorted(_describe(item)[0] for item in value)


def _describe_mapping(value: types.MappingProxyType) -> Any:
    return "mapping", list(value.items())


def _describe_tree(value: jax.tree_util.PyTreeDef) -> Any:
    return "tree", jax.tree.unflatten(value, range(value.num_leaves))


def _describe_mesh(value: Mesh) -> Any:
    return "mesh", value.axis_names, value.devices.shape, value.device_ids.tolist()


def _describe_sharding(value: NamedSharding) -> Any:
    return "sharding", value.mesh, str(value.spec), value.memory_kind


def _describe_dtype(value: np.dtype) -> str:
    return str(value)


def _describe_device(value: jax.Device) -> Any:
    return "device", value.platform, value.id


def _describe_object(value: Any) -> Any:
    """Describe an object of jaxsim or of a library by its attributes.

    Raises:
      _Undescribed: it is an object of Python or of C code, whose contents may be hidden.
    """
    kind = type(value)
    if kind is object:
        return "object"  # a sentinel
    bases = [c for c in kind.__mro__[:-1] if c.__module__ not in _BASES]
    if not all(_is_of(_PYTHON_PACKAGES, c) for c in bases):
        raise _Undescribed(value)
    slots = sorted({n for c in kind.__mro__ for n in _slots_of(c) if hasattr(value, n)})
    attributes = {n: getattr(value, n) for n in slots} | getattr(value, "__dict__", {})
    return "object", kind, sorted(attributes.items())


def _slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots that a class declares."""
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


_DESCRIPTIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Structure, _describe_structure),
    ((np.ndarray, np.generic), _describe_numpy),
    (jax.Array, _describe_constant),
    (types.FunctionType, _describe_function),
    (types.MethodType, _describe_method),
    ((types.BuiltinFunctionType, np.ufunc), _describe_builtin),
    (functools.partial, _describe_partial),
    (types.ModuleType, _describe_module),
    ((set, frozenset), _describe_set),
    (types.MappingProxyType, _describe_mapping),
    (jax.tree_util.PyTreeDef, _describe_tree),
    (Mesh, _describe_mesh),
    (NamedSharding, _describe_sharding),
    (np.dtype, _describe_dtype),
    (jax.Device, _describe_device),
)


def _describe(value: Any) -> tuple[bytes, list[Any]]:
    """Return the bytes that describe a value, and its local parts."""
    file = io.BytesIO()
    writer = _Describer(file)
    writer.dump(value)
    return file.getvalue(), writer.local_parts


def _static_part(tree: PyTree) -> PyTree:
    """Return a tree whose arrays are replaced by numbers."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, range(len(leaves)))
