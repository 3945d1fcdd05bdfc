"""Declaration of the fields that a stage reads and writes, at its definition.

    @stage(reads="cdof cinert ten_J", writes="crb M")
    def crb(m: Model, d: Data) -> Data: ...

`tests/physics/test_stages.py` derives reads and writes from the traced program and compares. The
public functions derive from it which fields a Data must carry (api.py), as does the reference page.
Profiles and programs show each stage under its name (`jax.named_scope`).
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax

from jaxsim.model.data import ALWAYS_KEPT, Data

_Function = TypeVar("_Function", bound=Callable)


class StageFields(NamedTuple):
    """Fields of Data, and working values, that a function reads and writes.

    A field for times includes its low part in single precision (`jaxsim.model.data.LOW_PARTS`).
    """

    reads: frozenset[str]
    writes: frozenset[str]

    @property
    def needs(self) -> frozenset[str]:
        """Return the fields that it requires and that not every Data has.

        A field both read and written is accumulated, and need not exist before.
        """
        return (self.reads & Data.fields.keys()) - ALWAYS_KEPT - self.writes

    @property
    def carries(self) -> frozenset[str]:
        """Return the fields a Data must keep to call the function alone and to hold its result."""
        return self.needs | (self.writes & Data.fields.keys())


STAGES: dict[str, StageFields] = {}


def stage(*, reads: str, writes: str = "") -> Callable[[_Function], _Function]:
    """Declare what a function `(m, d, ...)` reads of `d` and what it writes, by name.

    A field counts as read if some model's result depends on it.
    """
    declared = StageFields(frozenset(reads.split()), frozenset(writes.split()))
    unknown = (declared.reads | declared.writes) - Data.fields.keys() - Data.working.keys()
    assert not unknown, f"Data has no {sorted(unknown)}"

    def declare(function: _Function) -> _Function:
        name = function.__name__
        assert name not in STAGES, f"there is a stage {name} already"
        STAGES[name] = declared
        return jax.named_scope(name)(function)

    return declare
