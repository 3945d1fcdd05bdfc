"""Compare the memory that settings require with the memory available, before allocation."""

import os
from collections.abc import Mapping

import jax

from jaxsim.io.config.read import SettingLocations


def check_memory(locations: SettingLocations, needs: Mapping[str, float]) -> None:
    """Reject settings that need more memory than the devices have.

    Args:
      locations: source locations of the settings.
      needs: required bytes by the responsible setting, as "worlds.count"; checked in order, each
        alone.

    Raises:
      ConfigError: a setting is too large; the message names it, its need and the memory available.
    """
    have = memory()
    for key, need in needs.items():
        if not need <= have:
            raise locations.error(
                key,
                f"needs {_format_gibibytes(need)} of memory, there are only "
                f"{_format_gibibytes(have)}",
            )


def memory() -> float:
    """Return the bytes of memory of the devices that simulate.

    All devices, and the machines of all processes, count as much as those of this process.
    Processes that share a machine without accelerators therefore count its memory several times.
    """
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return float(stats["bytes_limit"]) * jax.device_count()
    own = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    return own * jax.process_count()


def _format_gibibytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} PB"
