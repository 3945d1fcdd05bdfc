"""Generate the reference page of the stages of a step, from the table `STAGES`."""

from collections.abc import Iterator

import jaxsim
from jaxsim import stages, support
from jaxsim.model.data import Data
from jaxsim.physics.stage import STAGES

_HEAD = """# Stages

Generated from the `@stage` declarations by `python docs/tools/reference.py stages`; do not edit.

A stage is a pure function `(m, d) -> d`. The table lists the fields of `Data` and the internal
values that a stage reads and writes; `tests/physics/test_stages.py` compares the declarations with
the traced program. A stage with a public name can be called alone: pass a `Data` made with
`make_data(m, keep=(...))` that carries the fields.

| stage | public name | reads | writes |
| --- | --- | --- | --- |
"""


def reference() -> str:
    """Return the page, in Markdown."""
    return _HEAD + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    for name, stage in STAGES.items():
        spaces = {"jaxsim": jaxsim, "jaxsim.stages": stages, "jaxsim.support": support}
        public = next((f"`{s}.{name}`" for s, m in spaces.items() if name in m.__all__), "")
        cells = [f"`{name}`", public, _fields(stage.reads), _fields(stage.writes)]
        yield f"| {' | '.join(cells)} |"


def _fields(names: frozenset[str]) -> str:
    """Return the names in the order in which Data declares them, internal values last."""
    return ", ".join(f"`{name}`" for name in (*Data.fields, *Data.working) if name in names)
