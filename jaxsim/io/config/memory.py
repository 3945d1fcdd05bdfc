"""Memory that settings ask for, compared with what there is before any of it is allocated."""

import os
from collections.abc import Mapping

import jax

from jaxsim.io.config.read import Places


def check_memory(places: Places, needs: Mapping[str, float]) -> None:
    """Refuse settings that need more memory than the devices have.

    Args:
      places: where the settings were written.
      needs: bytes by the setting that is to blame, as "worlds.count"; in order, each alone.

    Raises:
      ConfigError: one of them is too large; names the setting, what it needs and what there is.
    """
    have = memory()
    for key, need in needs.items():
        if not need <= have:
            raise places.error(key, f"needs {_told(need)} of memory, there are {_told(have)}")


def memory() -> float:
    """Return the bytes of memory of the devices that simulate."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return float(stats["bytes_limit"]) * jax.device_count()
    return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


def _told(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} PB"
