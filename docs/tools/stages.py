"""Generate the reference page of the stages of a step, from the table `STAGES`."""

from collections.abc import Iterator

import jaxsim
from jaxsim import stages, support
from jaxsim.model.data import Data
from jaxsim.physics.pipeline.row import StageRow
from jaxsim.physics.pipeline.stages import STAGES

_HEAD = """# Stages

Generated from the table `jaxsim/physics/pipeline/stages.py` by
`python docs/tools/reference.py stages`; do not edit.

A stage is a pure function `(m, d) -> d`; the first ones are in the order of a step. The table lists
the fields of `Data` and the internal values that a stage reads and writes;
`tests/physics/pipeline/test_stages.py` compares them with the traced program. A stage with a public
name can be called alone: pass a `Data` made with `make_data(m, keep=(...))` that carries the
fields.

| stage | public name | MuJoCo | computes something for | reads | writes |
| --- | --- | --- | --- | --- | --- |
"""


def reference() -> str:
    """Return the page, in Markdown."""
    return _HEAD + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    spaces = {"jaxsim": jaxsim, "jaxsim.stages": stages, "jaxsim.support": support}
    for name, row in STAGES.items():
        public = next((f"`{s}.{name}`" for s, m in spaces.items() if name in m.__all__), "")
        cells = [f"`{name}`", public, f"`{row.mujoco}`" if row.mujoco else "", _condition(row)]
        cells += [_fields(row.fields.reads), _fields(row.fields.writes)]
        yield f"| {' | '.join(cells)} |"


def _condition(row: StageRow) -> str:
    """Return the objects or the flag without which a model skips a stage."""
    if row.flag is not None:
        return f"flag {row.flag.name.lower()}"
    return ", ".join(f"`{name}`" for name in row.objects.split())


def _fields(names: frozenset[str]) -> str:
    """Return the names in the order in which Data declares them, internal values last."""
    return ", ".join(f"`{name}`" for name in (*Data.fields, *Data.working) if name in names)
