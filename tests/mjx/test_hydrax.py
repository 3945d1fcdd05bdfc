"""The tasks of hydrax, written for MJX and unchanged: costs of its plans are those of MuJoCo in C.

hydrax is not a package of PyPI. HYDRAX is the folder of a checkout; PYTHONPATH has what it needs
besides (evosax, interpax, jaxkd, equinox, lineax).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mjx.hydrax_costs import SAMPLES, TASKS

PROGRAM = Path(__file__).with_name("hydrax_costs.py")


@pytest.mark.slow
@pytest.mark.skipif("HYDRAX" not in os.environ, reason="HYDRAX: a checkout of hydrax")
def test_costs_of_plans_are_those_of_mujoco():
    command = [sys.executable, "-m", "jaxsim.mjx", str(PROGRAM), os.environ["HYDRAX"], *TASKS]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"JAX_ENABLE_X64": "1"},
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {each["task"] for each in found} == set(TASKS)
    for each in found:
        assert len(each["cost"]) == SAMPLES
        # The crane meets constraints with one Newton iteration and five evaluations of the line
        # search, whose step length is MuJoCo's to a few digits only (docs/differences.md).
        rtol = 1e-4 if each["task"] == "crane" else 1e-6
        np.testing.assert_allclose(each["cost"], each["in C"], rtol=rtol, err_msg=each["task"])
    assert np.ptp([each["cost"] for each in found], axis=1).min() > 0  # the plans differ
