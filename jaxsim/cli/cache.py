"""Persistent compilation cache of the command line, in the user's cache directory."""

import hashlib
import os
import platform
import sys
import tempfile
from pathlib import Path

import jax

_MAX_CACHE_BYTES = 2**31  # size limit in bytes; the oldest programs are deleted first
_MIN_COMPILE_SECONDS = 0.0  # a small program takes 50 ms to compile, 2 ms to read


def keep_programs() -> None:
    """Enable JAX's compilation cache; a folder that the user has configured is kept."""
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        _delete_oldest_programs(folder, _MAX_CACHE_BYTES)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        remedy = "set XDG_CACHE_HOME, or give --no-cache"
        print(f"compiled programs are not kept: {error}; {remedy}", file=sys.stderr)
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_SECONDS)


def cache_folder() -> Path:
    """Return the cache folder for this machine, below the user's cache directory."""
    return user_cache(sys.platform) / "jaxsim" / _cpu_type()


def user_cache(system: str) -> Path:
    """Return the user's cache directory by the convention of an operating system."""
    if system == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if system == "darwin":
        return Path.home() / "Library" / "Caches"
    given = os.environ.get("XDG_CACHE_HOME", "")
    # XDG specification: a relative path is invalid and must be ignored.
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"


def _cpu_type() -> str:
    """Return a name for the CPU type: a home directory may be shared by machines of several
    types."""
    kind = f"{platform.machine()} {platform.processor()}"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(errors="replace").splitlines()
        kind += " ".join(sorted({x for x in lines if x.startswith(("flags", "Features"))}))
    return hashlib.sha256(kind.encode()).hexdigest()[:16]


def _delete_oldest_programs(folder: Path, most: int) -> None:
    """Delete the oldest programs until the rest fits in a number of bytes."""
    files = [(entry.stat(), entry.path) for entry in os.scandir(folder) if entry.is_file()]
    total = 0
    for status, path in sorted(files, key=lambda file: -file[0].st_mtime):
        total += status.st_size
        if total > most:
            Path(path).unlink(missing_ok=True)
