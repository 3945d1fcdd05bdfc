"""The reference page of the records is that of the field tables, and explains every symbol."""

from pathlib import Path

import pytest
from tools.fields import COUNTS, reference

from jaxsim.io.load import load_model
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data, SolverStat
from jaxsim.model.model import Model
from jaxsim.model.option import Option, Statistic
from jaxsim.physics.public.make_data import make_data

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/fields.md"
BALL = "<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
SHELL = """<mujoco><option integrator="discrete"><flag ipc="enable"/></option><worldbody>
<flexcomp name="shell" type="grid" dim="2" count="2 2 1"/></worldbody></mujoco>"""
SLEEP = "<option><flag sleep='enable'/></option><worldbody>"
RECORDS = (Data, Contact, SolverStat, Option, Statistic, Model)


def test_the_page_is_current():
    assert PAGE.read_text() == reference(), "write it again: python docs/tools/reference.py fields"


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_every_field_has_a_row_and_a_meaning(record):
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    for name, field in record.fields.items():
        assert field.doc, name
        assert any(row.startswith(f"| `{name}` |") and field.doc in row for row in rows), name


def test_the_counts_are_those_of_the_shapes():
    symbols = {n for r in RECORDS for f in r.fields.values() for n in f.shape if isinstance(n, str)}
    assert symbols == COUNTS.keys()


def test_what_is_said_to_be_kept_is_kept():
    """The column `kept` against what `make_data` really allocates."""
    model = load_model(BALL)
    least, usual = make_data(model, keep=()), make_data(model)
    part = reference().partition("## Data\n")[2].partition("\n## ")[0]
    kept = {}
    for line in part.splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            kept[cells[0]] = cells[4]
    assert kept.keys() == Data.fields.keys()
    asleep = BALL.replace("<worldbody>", SLEEP).replace("<body>", "<body sleep='init'>")
    flagged = {"sleep": make_data(load_model(asleep)), "ipc": make_data(load_model(SHELL))}
    for name in ("time_low", "history_low"):  # in single precision only
        assert kept.pop(name) == "always"
        assert getattr(usual, name) is None
    for name, said in kept.items():
        if ", with " in said:
            assert getattr(usual, name) is None, name
            assert getattr(flagged[said.rpartition(" ")[2]], name) is not None, name
            continue
        assert (getattr(least, name) is not None) == (said == "always"), name
        assert (getattr(usual, name) is not None) == (said != "if asked"), name
