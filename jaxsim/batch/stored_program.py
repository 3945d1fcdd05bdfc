"""Compiled programs on disk: a later process neither traces nor compiles.

JAX's compilation cache is keyed by the lowered program, so a process that finds its program there
has traced and lowered it first: 3 s for a humanoid, 14 s for a hand with meshes. Here the key is
made of what determines the program before it is traced (program_key.py). Programs are kept where
JAX keeps its own, in the folder of the option `jax_compilation_cache_dir`; without that option, or
with the environment variable `JAXSIM_STORE_PROGRAMS=0`, nothing is kept. A program without a key,
or with callbacks to the host, is compiled as usual and not kept.
"""

import hashlib
import io
import os
import pickle
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable
from jax.sharding import NamedSharding, Sharding
from jax.stages import Compiled

from jaxsim.arrays.array import PyTree
from jaxsim.atomic_write import write_whole
from jaxsim.batch.program_key import NOT_DESCRIBED, array_kind, local_parts_of, program_key
from jaxsim.batch.tiered_program import (
    AwaitedProgram,
    ReplacedProgram,
    check_tier,
    start_in_thread,
)
from jaxsim.cache import bounded_cache
from jaxsim.io.phase import named_phase
from jaxsim.model.structure import Structure
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS, platform_name
from jaxsim.transforms.program_cache import MAX_PROGRAMS

_SWITCH = "JAXSIM_STORE_PROGRAMS"
_SUFFIX = ".jaxsim-program"
_MAGIC = b"jaxsim program 1\n"
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_MAX_FOLDER_BYTES = 2**30  # size limit; the programs that were not read for longest go first


def load_or_compile(
    function: Callable[..., PyTree], *arguments: PyTree, version: str = "", name: str = ""
) -> Compiled:
    """Return the compiled program of a function, from disk if an earlier process has compiled it.

    The first process traces and compiles as `jax.jit(function).lower(*arguments).compile()` does.
    Programs are kept in the folder of JAX's option `jax_compilation_cache_dir`, at most 1 GiB of
    them; a damaged file is replaced.

    Args:
      function: a pure function of pytrees of arrays. A change of its code, or of functions of the
        user that it calls by name, makes another program, as does another value that it closes
        over. Objects among these must be of classes of jaxsim, JAX or a library for learning,
        and modules that it names those of Python, JAX, numpy or jaxsim, else the program is not
        kept.
      arguments: values whose shapes, dtypes, shardings and static parts the program is made for.
      version: a word for what the function reads otherwise, such as methods of objects: another
        version is another program.
      name: what the program does, for reports on its compilation: "the rollout".

    Returns:
      The program; it takes arguments of the same shapes and raises TypeError for others.

    >>> import jax, jaxsim
    >>> jax.config.update("jax_compilation_cache_dir", "/tmp/programs")  # doctest: +SKIP
    >>> m = jaxsim.load_model("humanoid.xml")                             # doctest: +SKIP
    >>> step = jaxsim.support.load_or_compile(jaxsim.step, m, jaxsim.make_data(m))  # doctest: +SKIP
    """
    compiled: Compiled = prepare_program(function, arguments, version=version, name=name).compiled
    return compiled


class PreparedProgram(NamedTuple):
    """A program that can be called, and the time that it took [s]; 0 for phases not needed.

    Attributes:
      program: the program; it may become another one while it runs (tiered_program.py).
      compiled: the program that it is at first; None if a thread still compiles it.
      load_seconds, trace_seconds, compile_seconds: time of the phases.
    """

    program: Callable[..., Any]
    compiled: Any
    load_seconds: float = 0.0
    trace_seconds: float = 0.0
    compile_seconds: float = 0.0


def prepare_program(
    function: Callable[..., Any],
    arguments: tuple,
    *,
    version: str = "",
    name: str = "",
    tier: str = "optimized",
    options: Mapping[str, Any] = _NO_OPTIONS,
    background: bool = False,
) -> PreparedProgram:
    """Return a program, loaded from disk or compiled, in the tiers of tiered_program.py.

    Args:
      function, arguments, version, name: as for `load_or_compile`.
      tier: "optimized", "fast", or "auto": the optimized program if it is on disk, else the quickly
        compiled one, replaced while it runs. Platforms other than CPU always have the optimized
        program.
      options: arguments of `jax.jit`.
      background: compile in a thread; the first call waits for it. Other programs can be traced
        meanwhile.
    """
    check_tier(tier)
    what = name or getattr(function, "__name__", "the program")
    source = _Source(function, jax.tree.map(_shape_of, arguments), options)
    # Processes that work together keep to one program.
    is_quick = tier != "optimized" and platform_name() == "cpu" and jax.process_count() == 1
    files = _files_of(source, arguments, version)

    # Load the best program that is on disk.
    clock = time.perf_counter()
    may_be_optimized = tier != "fast" or not is_quick
    found = _read_if_kept(files.optimized if may_be_optimized else None, source, what)
    is_final = found is not None or not is_quick or tier != "auto"
    if found is None and is_quick:
        found = _read_if_kept(files.quick, source, what)
    load_seconds = time.perf_counter() - clock

    def finish(found: _Found) -> Callable[..., Any]:
        """Return a program that is replaced by the optimized one, unless it is final."""
        return found.program if is_final else _replaced(found, source, files.optimized, what)

    if found is not None:
        return PreparedProgram(finish(found), found.program, load_seconds)

    # Compile what can be called first.
    clock = time.perf_counter()
    with named_phase(f"trace {what}"):
        source.lower()
    times = {"trace_seconds": time.perf_counter() - clock}
    file = files.quick if is_quick else files.optimized
    if background:
        thread = start_in_thread(lambda: finish(_compile_and_keep(source, file, is_quick)))
        return PreparedProgram(AwaitedProgram(thread, f"compile {what}"), None, **times)
    with named_phase(f"compile {what}"):
        found = _compile_and_keep(source, file, is_quick)
    times["compile_seconds"] = found.compile_seconds
    return PreparedProgram(finish(found), found.program, **times)


def _replaced(found: "_Found", source: "_Source", file: Path | None, what: str) -> ReplacedProgram:
    """Return a quickly compiled program that is replaced by the optimized one, which is kept."""

    def optimize() -> Compiled:
        return _compile_and_keep(source, file, quick=False).program

    return ReplacedProgram(found.program, found.compile_seconds, optimize, f"compile {what}")


class _Source:
    """The function, arguments and options of a program.

    Args:
      function: the function.
      shapes: arguments without their numbers, which are memory.
      options: arguments of `jax.jit`.
    """

    def __init__(self, function: Callable[..., Any], shapes: tuple, options: Mapping[str, Any]):
        self.function, self.shapes, self.options = function, shapes, dict(options)
        self._lowered: jax.stages.Lowered | None = None

    def lower(self) -> jax.stages.Lowered:
        """Return the lowered program; it is traced once."""
        if self._lowered is None:
            self._lowered = jax.jit(self.function, **self.options).lower(*self.shapes)
        return self._lowered

    @property
    def local_parts(self) -> list[Any]:
        """Return the parts that each process makes for itself (program_key.py)."""
        return local_parts_of(self.function, self.shapes)

    @property
    def devices(self) -> tuple[jax.Device, ...]:
        """Return the devices that run the program, in the order of their mesh."""
        placed = (
            *jax.tree.leaves(self.options.get("in_shardings")),
            *map(_sharding_of, jax.tree.leaves(self.shapes)),
        )
        shardings = [s for s in placed if isinstance(s, Sharding)]
        meshes = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
        if meshes:
            return tuple(meshes[0].devices.flat)
        return tuple(shardings[0].device_set) if shardings else (jax.devices()[0],)


def _sharding_of(leaf: Any) -> Any:
    return getattr(leaf, "sharding", None)


def _shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
    """Return shape, dtype and sharding of an array."""
    shape, dtype, weak_type = array_kind(leaf)
    sharding = getattr(leaf, "sharding", None)
    if isinstance(leaf, jax.Array) and not leaf.committed:
        sharding = None  # JAX may move it
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type)


class StoredFunction:
    """A function whose programs are loaded from disk or compiled; a decorator.

    Programs of the most recently used argument structures, shapes and dtypes stay in memory.

    Args:
      function: as for `load_or_compile`.
      name: what the function does, for reports: "the simulation".
      tier: as for `prepare_program`.
    """

    def __init__(self, function: Callable[..., PyTree], name: str, tier: str = "optimized"):
        @bounded_cache(MAX_PROGRAMS)
        def program_of(structure: jax.tree_util.PyTreeDef, kinds: tuple) -> Callable[..., Any]:
            leaves = [jax.ShapeDtypeStruct(*kind[:2], weak_type=kind[2]) for kind in kinds]
            arguments = jax.tree.unflatten(structure, leaves)
            return prepare_program(function, arguments, name=name, tier=tier).program

        self._program_of = program_of

    def __call__(self, *arguments: PyTree) -> Any:
        """Return the result of the function."""
        leaves, structure = jax.tree.flatten(arguments)
        return self._program_of(structure, tuple(map(array_kind, leaves)))(*arguments)


class _Files(NamedTuple):
    """Files of a program; None if it is not kept."""

    optimized: Path | None = None
    quick: Path | None = None


def _files_of(source: _Source, arguments: PyTree, version: str) -> _Files:
    """Return the files of a program."""
    options = jax.config.values
    folder, enabled = (
        options[f"jax_{name}"] for name in ("compilation_cache_dir", "enable_compilation_cache")
    )
    if os.environ.get(_SWITCH) == "0" or not enabled or not folder or "://" in folder:
        return _Files()
    key = program_key(source.function, arguments, version, source.options)
    if key is None:
        return _Files()
    return _Files(*(Path(folder) / f"{key}{tier}{_SUFFIX}" for tier in ("", "-fast")))


class _Found(NamedTuple):
    """A compiled program, and the time that it took to compile [s]."""

    program: Compiled
    compile_seconds: float


def _compile_and_keep(source: _Source, file: Path | None, quick: bool) -> _Found:
    """Compile a program, and write it to a file if it has one."""
    lowered = source.lower()
    options = dict(FAST_COMPILE_OPTIONS) if quick else {}
    clock = time.perf_counter()
    if file is None:
        return _Found(lowered.compile(options or None), time.perf_counter() - clock)
    with _without_jax_cache() as hits:
        # An option at its default: JAX's cache has no program with it.
        program = lowered.compile({"xla_cpu_enable_fast_math": False, **options})
    found = _Found(program, time.perf_counter() - clock)
    if not hits:
        _write(file, source, found)
    return found


_compiling = threading.Lock()
_num_compiling = 0
_MIN_SECONDS = "jax_persistent_cache_min_compile_time_secs"
_usual_min_seconds = 0.0


@contextmanager
def _without_jax_cache() -> Iterator[list[str]]:
    """Compile without adding to JAX's cache; yields a list of programs that were read from it.

    An executable that JAX has read from its cache lacks parts when it is serialized again.
    """
    global _num_compiling, _usual_min_seconds
    hits: list[str] = []

    def listen(event: str, **_: Any) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            hits.append(event)

    # The option is that of all threads: the first one sets it, the last one restores it.
    with _compiling:
        if not _num_compiling:
            _usual_min_seconds = jax.config.values[_MIN_SECONDS]
            jax.config.update(_MIN_SECONDS, float("inf"))
        _num_compiling += 1
    jax.monitoring.register_event_listener(listen)
    try:
        yield hits
    finally:
        jax.monitoring.unregister_event_listener(listen)
        with _compiling:
            _num_compiling -= 1
            if not _num_compiling:
                jax.config.update(_MIN_SECONDS, _usual_min_seconds)


# Files: a checksum, the executable, and the tree of its results, with local parts as numbers.


def _read_if_kept(file: Path | None, source: _Source, what: str) -> _Found | None:
    """Return what `_read` does, as a named phase; None without a file."""
    if file is None:
        return None
    with named_phase(f"load {what}"):
        return _read(file, source)


def _read(file: Path, source: _Source) -> _Found | None:
    """Return a stored program; None if there is none, or the file is damaged."""
    try:
        content = file.read_bytes()
        if not content.startswith(_MAGIC):
            return None
        start = len(_MAGIC) + _CHECKSUM_BYTES
        packed = content[start:]
        if hashlib.sha256(packed).digest() != content[len(_MAGIC) : start]:
            return None
        executable, tree, compile_seconds = pickle.loads(zlib.decompress(packed))
        _register_lapack()
        reader = _TreeReader(io.BytesIO(tree))
        reader.local_parts = source.local_parts
        program = serialize_executable.deserialize_and_load(
            executable,
            jax.tree.structure((source.shapes, {})),
            jax.tree.structure(reader.load()),
            execution_devices=source.devices,
        )
        os.utime(file)
    except (OSError, ValueError, jax.errors.JaxRuntimeError):
        return None  # absent, or made for another processor
    return _Found(program, compile_seconds)


@bounded_cache(1)
def _register_lapack() -> None:
    """Let JAX find the functions of LAPACK, as it does when it lowers a program that calls one.

    A loaded program calls them too; before that they are null pointers.
    """
    if platform_name() == "cpu":
        jax.jit(jnp.linalg.cholesky).lower(np.eye(1, dtype=np.float32))


def _write(file: Path, source: _Source, found: _Found) -> None:
    """Store a program, if it can be; a full disk is no reason to stop."""
    try:
        executable, _, result = serialize_executable.serialize(found.program)
        tree = io.BytesIO()
        writer = _TreeWriter(tree)
        writer.local_parts = source.local_parts
        writer.dump(jax.tree.unflatten(result, range(result.num_leaves)))
        packed = zlib.compress(
            pickle.dumps((executable, tree.getvalue(), found.compile_seconds)), 1
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _MAGIC + hashlib.sha256(packed).digest() + packed)
        _delete_oldest(file.parent, _MAX_FOLDER_BYTES)
    except (OSError, NotImplementedError, jax.errors.JaxRuntimeError, *NOT_DESCRIBED):
        return  # no access, or the program has callbacks to this process


def _delete_oldest(folder: Path, most: int) -> None:
    """Delete the programs that were not read for longest, until the rest fits in `most` bytes."""
    files = [(f.stat(), f) for f in folder.glob("*" + _SUFFIX)]
    total = 0
    for status, file in sorted(files, key=lambda f: -f[0].st_mtime):
        total += status.st_size
        if total > most:
            file.unlink(missing_ok=True)


class _TreeWriter(pickle.Pickler):
    """Writes a tree; its local parts by their numbers."""

    local_parts: list[Any]

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a local part."""
        if isinstance(value, Structure):
            return self.local_parts.index(value)
        return next((k for k, part in enumerate(self.local_parts) if part is value), None)


class _TreeReader(pickle.Unpickler):
    """Reads what `_TreeWriter` wrote."""

    local_parts: list[Any]

    def persistent_load(self, number: int) -> Any:
        """Return the local part of a number."""
        return self.local_parts[number]
