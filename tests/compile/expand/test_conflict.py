"""Settings of an attached model that differ from the model's own, under each policy."""

import logging

import mujoco
import numpy as np
import pytest
from compile.oracle import _compare

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

CASES = {
    "smaller": ('<option timestep=".01"/>', '<option timestep=".003"/>'),
    "smaller already": ('<option timestep=".001"/>', '<option timestep=".003"/>'),
    "as by default": ('<option timestep=".002"/>', '<option timestep=".003"/>'),
    "only one": ("", '<option timestep=".003" gravity="0 0 -2"/>'),
    "larger": ('<option iterations="5"/>', '<option iterations="9"/>'),
    "no order": ('<option gravity="0 0 -2"/>', '<option gravity="0 0 -9.81"/>'),
    "words": ('<option integrator="RK4"/>', '<option integrator="Euler"/>'),
    "flags": (
        '<option><flag contact="disable"/></option>',
        '<option><flag gravity="disable" energy="enable"/></option>',
    ),
    "flag off": (
        '<option><flag contact="disable"/></option>',
        '<option><flag contact="enable"/></option>',
    ),
    "flag on": (
        '<option><flag contact="enable"/></option>',
        '<option><flag contact="disable"/></option>',
    ),
    "groups": ('<option actuatorgroupdisable="1"/>', '<option actuatorgroupdisable="2"/>'),
    "sizes": ('<size nuserdata="3" nuser_geom="3"/>', '<size nuserdata="5" nuser_geom="1"/>'),
    "free settings": ('<statistic extent="3"/>', '<statistic extent="5"/>'),
    "several": (
        '<option iterations="5" tolerance="1e-5" noslip_iterations="3"/>',
        '<option iterations="9" tolerance="1e-6" gravity="0 0 1"/>',
    ),
}


def models(own: str, other: str, policy: str) -> tuple[str, dict[str, bytes]]:
    text = (
        f'<mujoco>\n<compiler conflict="{policy}"/>{own}\n<asset><model name="m" file="m.xml"/>'
        '</asset>\n<worldbody>\n<attach model="m" prefix="a_"/></worldbody></mujoco>'
    )
    part = f'<mujoco>{other}<worldbody><body name="b"><geom size="1"/></body></worldbody></mujoco>'
    return text, {"m.xml": part.encode()}


@pytest.mark.parametrize("policy", ["warning", "merge", "error"])
@pytest.mark.parametrize("case", CASES)
def test_policies(case, policy, caplog):
    text, files = models(*CASES[case], policy)
    try:
        theirs = mujoco.MjModel.from_xml_string(text, files)
    except ValueError:
        with pytest.raises(ModelError, match=r"<string>:5: <attach>: .* in the attached model"):
            compile_string(text, files)
        return
    with caplog.at_level(logging.ERROR):
        _compare(compile_string(text, files), theirs, ())


def test_a_warning_says_which_value_counts(caplog):
    text, files = models(*CASES["smaller"], "warning")
    with caplog.at_level(logging.WARNING):
        assert np.isclose(compile_string(text, files).opt["timestep"], 0.01)
    assert "timestep is '0.01' here and '0.003' in the attached model" in caplog.text
