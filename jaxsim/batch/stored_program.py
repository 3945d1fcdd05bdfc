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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental import serialize_executable
from jax.sharding import NamedSharding
from jax.stages import Compiled

from jaxsim.arrays.array import PyTree
from jaxsim.atomic_write import write_whole
from jaxsim.batch.program_key import NOT_DESCRIBED, array_kind, program_key, structures_in
from jaxsim.batch.tiered_program import ReplacedProgram, check_tier
from jaxsim.cache import bounded_cache
from jaxsim.io.phase import named_phase
from jaxsim.model.structure import Structure
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS, platform_name
from jaxsim.transforms.program_cache import MAX_PROGRAMS

_SWITCH = "JAXSIM_STORE_PROGRAMS"
_SUFFIX = ".jaxsim-program"
_MAGIC = b"jaxsim program 1\n"
_CHECKSUM_BYTES = hashlib.sha256().digest_size
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
        user that it calls by name, makes another program. Values that it closes over must be
        numbers, strings, numpy arrays or functions, and modules that it names must be those of
        Python, JAX, numpy or jaxsim, else the program is not kept.
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
    return prepare_program(function, arguments, version=version, name=name).compiled


class PreparedProgram(NamedTuple):
    """A program that can be called, and the time that it took [s]; 0 for phases not needed.

    Attributes:
      program: the program; it may become another one while it runs (`ReplacedProgram`).
      compiled: the program that it is at first.
      load_seconds, trace_seconds, compile_seconds: time of the phases.
    """

    program: Callable[..., Any]
    compiled: Compiled
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
) -> PreparedProgram:
    """Return a program, loaded from disk or compiled, in the tiers of tiered_program.py.

    Args:
      function, arguments, version, name: as for `load_or_compile`.
      tier: "optimized", "fast", or "auto": the optimized program if it is on disk, else the quickly
        compiled one, replaced while it runs.
    """
    check_tier(tier)
    what = name or getattr(function, "__name__", "the program")
    # Processes that work together keep to one program.
    is_quick = tier != "optimized" and platform_name() == "cpu" and jax.process_count() == 1
    files = _files_of(function, arguments, version)

    # Load the best program that is on disk.
    clock = time.perf_counter()
    may_be_optimized = tier != "fast" or not is_quick
    found = _read_if_kept(files.optimized if may_be_optimized else None, arguments, what)
    is_optimized = found is not None
    if found is None and is_quick:
        found = _read_if_kept(files.quick, arguments, what)
    load_seconds = time.perf_counter() - clock
    if found is not None and is_optimized:
        return PreparedProgram(found.program, found.program, load_seconds)

    shapes = jax.tree.map(_shape_of, arguments)  # without the numbers, which are memory
    lowered: list[jax.stages.Lowered] = []

    def lower() -> jax.stages.Lowered:
        """Trace the function, once."""
        if not lowered:
            lowered.append(jax.jit(function).lower(*shapes))
        return lowered[0]

    def optimize() -> Compiled:
        """Compile the optimized program, and keep it."""
        return _compile_and_keep(lower(), files.optimized, shapes, quick=False).program

    # Compile what can be called first.
    times = {"load_seconds": load_seconds}
    if found is None:
        clock = time.perf_counter()
        with named_phase(f"trace {what}"):
            lower()
        traced = time.perf_counter()
        file = files.quick if is_quick else files.optimized
        with named_phase(f"compile {what}"):
            found = _compile_and_keep(lower(), file, shapes, quick=is_quick)
        times = {"trace_seconds": traced - clock, "compile_seconds": found.compile_seconds}
    program: Callable[..., Any] = found.program
    if is_quick and tier == "auto":
        program = ReplacedProgram(program, found.compile_seconds, optimize, f"compile {what}")
    return PreparedProgram(program, found.program, **times)


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


def _files_of(function: Callable[..., Any], arguments: PyTree, version: str) -> _Files:
    """Return the files of a program."""
    options = jax.config.values
    folder, enabled = (
        options[f"jax_{name}"] for name in ("compilation_cache_dir", "enable_compilation_cache")
    )
    if os.environ.get(_SWITCH) == "0" or not enabled or not folder or "://" in folder:
        return _Files()
    key = program_key(function, arguments, version)
    if key is None:
        return _Files()
    return _Files(*(Path(folder) / f"{key}{tier}{_SUFFIX}" for tier in ("", "-fast")))


class _Found(NamedTuple):
    """A compiled program, and the time that it took to compile [s]."""

    program: Compiled
    compile_seconds: float


def _compile_and_keep(
    lowered: jax.stages.Lowered, file: Path | None, arguments: tuple, quick: bool
) -> _Found:
    """Compile a program, and write it to a file if it has one."""
    options = dict(FAST_COMPILE_OPTIONS) if quick else {}
    clock = time.perf_counter()
    if file is None:
        return _Found(lowered.compile(options or None), time.perf_counter() - clock)
    with _without_jax_cache() as hits:
        # An option at its default: JAX's cache has no program with it.
        program = lowered.compile({"xla_cpu_enable_fast_math": False, **options})
    found = _Found(program, time.perf_counter() - clock)
    if not hits:
        _write(file, arguments, found)
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


# Files: a checksum, the executable, and the tree of its results. Structures of the arguments are
# numbers in that tree.


def _read_if_kept(file: Path | None, arguments: tuple, what: str) -> _Found | None:
    """Return what `_read` does, as a named phase; None without a file."""
    if file is None:
        return None
    with named_phase(f"load {what}"):
        return _read(file, arguments)


def _read(file: Path, arguments: tuple) -> _Found | None:
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
        reader = _TreeReader(io.BytesIO(tree))
        reader.structures = structures_in(arguments)
        program = serialize_executable.deserialize_and_load(
            executable,
            jax.tree.structure((arguments, {})),
            jax.tree.structure(reader.load()),
            execution_devices=_devices(arguments),
        )
        os.utime(file)
    except (OSError, ValueError, jax.errors.JaxRuntimeError):
        return None  # absent, or made for another processor
    return _Found(program, compile_seconds)


def _write(file: Path, arguments: tuple, found: _Found) -> None:
    """Store a program, if it can be; a full disk is no reason to stop."""
    try:
        executable, _, result = serialize_executable.serialize(found.program)
        tree = io.BytesIO()
        writer = _TreeWriter(tree)
        writer.structures = structures_in(arguments)
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


def _devices(arguments: tuple) -> tuple[jax.Device, ...]:
    """Return the devices that run a program with these arguments, in the order of their mesh."""
    arrays = [leaf for leaf in jax.tree.leaves(arguments) if isinstance(leaf, jax.Array)]
    shardings = [a.sharding for a in arrays]
    meshes = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    if meshes:
        return tuple(meshes[0].devices.flat)
    return tuple(shardings[0].device_set) if shardings else (jax.devices()[0],)


class _TreeWriter(pickle.Pickler):
    """Writes a tree; structures among `structures` by their numbers."""

    structures: list[Structure]

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a structure."""
        return self.structures.index(value) if isinstance(value, Structure) else None


class _TreeReader(pickle.Unpickler):
    """Reads what `_TreeWriter` wrote."""

    structures: list[Structure]

    def persistent_load(self, number: int) -> Structure:
        """Return the structure of a number."""
        return self.structures[number]
