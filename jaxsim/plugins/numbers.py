"""Parse numbers in the settings of plugins."""

import numpy as np

from jaxsim.extend.plugin import Config


def setting_numbers(config: Config, key: str, count: int) -> np.ndarray:
    """Return the first numbers of a setting; 0 for missing or invalid ones, as in MuJoCo."""
    out = np.zeros(count)
    for i, word in enumerate(config.get(key, "").split()[:count]):
        try:
            out[i] = float(word)
        except ValueError:
            break
    return out


def setting_number(config: Config, key: str) -> float:
    """Return the first number of a setting, or 0."""
    return float(setting_numbers(config, key, 1)[0])


def is_number(text: str) -> bool:
    """Return whether a setting is one number and nothing else."""
    try:
        float(text)
    except ValueError:
        return False
    return True
