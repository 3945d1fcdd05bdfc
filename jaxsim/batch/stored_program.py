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
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental import serialize_executable
from jax.sharding import NamedSharding
from jax.stages import Compiled

from jaxsim.arrays.array import PyTree
from jaxsim.atomic_write import write_whole
from jaxsim.batch.program_key import NOT_DESCRIBED, array_kind, describe_static, program_key
from jaxsim.cache import bounded_cache
from jaxsim.io.phase import named_phase
from jaxsim.model.structure import Structure
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
        numbers, strings, numpy arrays or functions, else the program is not kept.
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
    return prepare_program(function, arguments, version, name).program


class PreparedProgram(NamedTuple):
    """A compiled program, and the time that it took [s]; 0 for phases that were not needed."""

    program: Compiled
    load_seconds: float
    trace_seconds: float
    compile_seconds: float


def prepare_program(
    function: Callable[..., Any], arguments: tuple, version: str = "", name: str = ""
) -> PreparedProgram:
    """Return what `load_or_compile` does, with the time of each phase."""
    what = name or getattr(function, "__name__", "the program")
    clock = [time.perf_counter()]
    file = _file_of(function, arguments, version)
    if file is not None:
        with named_phase(f"load {what}"):
            stored = _read(file, arguments)
        clock.append(time.perf_counter())
        if stored is not None:
            return PreparedProgram(stored, clock[1] - clock[0], 0.0, 0.0)
    with named_phase(f"trace {what}"):
        lowered = jax.jit(function).lower(*arguments)
    clock.append(time.perf_counter())
    with named_phase(f"compile {what}"):
        program, is_whole = _compile(lowered, use_cache=file is None)
    clock.append(time.perf_counter())
    if file is not None and is_whole:
        _write(file, arguments, program)
    return PreparedProgram(program, 0.0, clock[-2] - clock[-3], clock[-1] - clock[-2])


class StoredFunction:
    """A function whose programs are loaded from disk or compiled; a decorator.

    Programs of the most recently used argument structures, shapes and dtypes stay in memory.

    Args:
      function: as for `load_or_compile`.
      name: what the function does, for reports: "the simulation".
    """

    def __init__(self, function: Callable[..., PyTree], name: str):
        @bounded_cache(MAX_PROGRAMS)
        def program_of(structure: jax.tree_util.PyTreeDef, kinds: tuple) -> Compiled:
            leaves = [jax.ShapeDtypeStruct(*kind[:2], weak_type=kind[2]) for kind in kinds]
            return load_or_compile(function, *jax.tree.unflatten(structure, leaves), name=name)

        self._program_of = program_of

    def __call__(self, *arguments: PyTree) -> Any:
        """Return the result of the function."""
        leaves, structure = jax.tree.flatten(arguments)
        return self._program_of(structure, tuple(map(array_kind, leaves)))(*arguments)


def _file_of(function: Callable[..., Any], arguments: PyTree, version: str) -> Path | None:
    """Return the file of a program; None if it is not kept."""
    options = jax.config.values
    folder, enabled = (
        options[f"jax_{name}"] for name in ("compilation_cache_dir", "enable_compilation_cache")
    )
    if os.environ.get(_SWITCH) == "0" or not enabled or not folder or "://" in folder:
        return None
    key = program_key(function, arguments, version)
    return None if key is None else Path(folder) / (key + _SUFFIX)


def _compile(lowered: jax.stages.Lowered, use_cache: bool) -> tuple[Compiled, bool]:
    """Compile a program, with or without JAX's cache; and return whether it can be stored.

    An executable that JAX has read from its cache lacks parts when it is serialized again.
    """
    if use_cache:
        return lowered.compile(), False
    hits: list[str] = []

    def listen(event: str, **_: Any) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            hits.append(event)

    least = "jax_persistent_cache_min_compile_time_secs"
    before = jax.config.values[least]
    jax.monitoring.register_event_listener(listen)
    jax.config.update(least, float("inf"))
    try:
        # An option at its default: JAX's cache has no program with it.
        return lowered.compile({"xla_cpu_enable_fast_math": False}), not hits
    finally:
        jax.config.update(least, before)
        jax.monitoring.unregister_event_listener(listen)


# Files: a checksum, the executable, and the tree of its results. Structures of the arguments are
# numbers in that tree.


def _read(file: Path, arguments: tuple) -> Compiled | None:
    """Return a stored program; None if there is none, or the file is damaged."""
    try:
        content = file.read_bytes()
        if not content.startswith(_MAGIC):
            return None
        start = len(_MAGIC) + _CHECKSUM_BYTES
        packed = content[start:]
        if hashlib.sha256(packed).digest() != content[len(_MAGIC) : start]:
            return None
        executable, tree = pickle.loads(zlib.decompress(packed))
        reader = _TreeReader(io.BytesIO(tree))
        reader.structures = describe_static(arguments)[1]
        program = serialize_executable.deserialize_and_load(
            executable,
            jax.tree.structure((arguments, {})),
            jax.tree.structure(reader.load()),
            execution_devices=_devices(arguments),
        )
        os.utime(file)
    except (OSError, ValueError, jax.errors.JaxRuntimeError):
        return None  # absent, or made for another processor
    return program


def _write(file: Path, arguments: tuple, program: Compiled) -> None:
    """Store a program, if it can be; a full disk is no reason to stop."""
    try:
        executable, _, result = serialize_executable.serialize(program)
        tree = io.BytesIO()
        writer = _TreeWriter(tree)
        writer.structures = describe_static(arguments)[1]
        writer.dump(jax.tree.unflatten(result, range(result.num_leaves)))
        packed = zlib.compress(pickle.dumps((executable, tree.getvalue())), 1)
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
