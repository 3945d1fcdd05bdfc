"""What a stage of the physics reads and writes, declared where it is defined.

    @stage(reads="cdof cinert ten_J", writes="crb M")
    def crb(m: Model, d: Data) -> Data: ...

`tests/physics/test_stages.py` derives the truth from the traced program and compares. The public
functions know from it what a Data must carry (api.py), and so does the reference page. Profiles
and programs show each stage under its name.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax

from jaxsim.model.data import ALWAYS, Data

Function = TypeVar("Function", bound=Callable)


class Stage(NamedTuple):
    """Fields of Data, and working values, that a function reads and those that it writes.

    With a field that has times goes its low part in single precision (`jaxsim.model.data.LOW`).
    """

    reads: frozenset[str]
    writes: frozenset[str]

    @property
    def needs(self) -> frozenset[str]:
        """Fields without which it cannot work and that not every Data has.

        What it both reads and writes is put together piece by piece, and has no value before.
        """
        return (self.reads & Data.fields.keys()) - ALWAYS - self.writes

    @property
    def carries(self) -> frozenset[str]:
        """What a Data keeps for the function to be called alone, and to show its result."""
        return self.needs | (self.writes & Data.fields.keys())


STAGES: dict[str, Stage] = {}


def stage(*, reads: str, writes: str = "") -> Callable[[Function], Function]:
    """Declares what a function `(m, d, ...)` reads of `d` and what it writes, by name.

    A field counts as read if some model's result depends on it.
    """
    declared = Stage(frozenset(reads.split()), frozenset(writes.split()))
    unknown = (declared.reads | declared.writes) - Data.fields.keys() - Data.working.keys()
    assert not unknown, f"Data has no {sorted(unknown)}"

    def declare(function: Function) -> Function:
        name = function.__name__
        assert name not in STAGES, f"there is a stage {name} already"
        STAGES[name] = declared
        return jax.named_scope(name)(function)

    return declare
