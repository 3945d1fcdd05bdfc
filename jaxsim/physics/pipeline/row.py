"""Row of the table of stages: a function with the fields that it reads and writes.

Reads and writes of a function made of several stages follow from theirs: it reads what one of them
reads and none before it writes (`StageFields.then`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax

from jaxsim.enums import EnableBit
from jaxsim.model.data import ALWAYS_KEPT, Data
from jaxsim.model.model import Model


@dataclass(frozen=True)
class StageFields:
    """Fields of Data, and working values, that a function reads and writes.

    A field for times includes its low part in single precision (`jaxsim.model.data.LOW_PARTS`).
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> "StageFields":
        """Return the fields that a text "reads -> writes" names, separated by spaces."""
        reads, _, writes = text.partition("->")
        declared = cls(frozenset(reads.split()), frozenset(writes.split()))
        unknown = (declared.reads | declared.writes) - Data.fields.keys() - Data.working.keys()
        assert not unknown, f"Data has no {sorted(unknown)}"
        return declared

    def then(self, after: "StageFields") -> "StageFields":
        """Return what this function and then another one read and write together.

        self    reads a    writes b
        after   reads b c  writes d      ->  reads a c,  writes b d
        """
        return StageFields(self.reads | (after.reads - self.writes), self.writes | after.writes)

    @property
    def inputs(self) -> frozenset[str]:
        """Return what must exist before; a field both read and written is accumulated."""
        return self.reads - self.writes

    @property
    def needs(self) -> frozenset[str]:
        """Return the fields that it requires and that not every Data has."""
        return (self.inputs & Data.fields.keys()) - ALWAYS_KEPT

    @property
    def carries(self) -> frozenset[str]:
        """Return the fields a Data must keep to call the function alone and to hold its result."""
        return self.needs | (self.writes & Data.fields.keys())


@dataclass(frozen=True)
class StageRow:
    """One row of the table of stages (stages.py).

    Attributes:
      name: public name of the stage, or that of its function.
      fields: what it reads and writes. A field counts as read if some model's result depends on it.
      function: `(m, d, ...)`, batch axis last. None for a function that is made of stages, which
        has the same name.
      mujoco: function of MuJoCo with the same result; "": none.
      timer: MuJoCo's timer that includes it, `mjTIMER_...` without the prefix; "": none.
      objects: counts of the Model; if all are zero there is nothing to compute. "": always.
      flag: enable flag without which a step omits the stage; None: never.
      sleeping: what follows within a step, `(m, before, d) -> d` with the Data before the stages
        (sleeping.py); None: nothing.
    """

    name: str
    fields: StageFields
    function: Callable | None = None
    mujoco: str = ""
    timer: str = ""
    objects: str = ""
    flag: EnableBit | None = None
    sleeping: Callable[[Model, Data, Data], Data] | None = None

    def runs(self, m: Model) -> bool:
        """Return False if a step of the model omits the stage."""
        return self.flag is None or bool(m.opt.enableflags & self.flag)

    def has_objects(self, m: Model) -> bool:
        """Return False if the model has nothing that the stage computes."""
        return not self.objects or any(getattr(m, name) for name in self.objects.split())

    def call(self, m: Model, d: Data) -> Data:
        """Run the stage; profiles and programs show it under its name."""
        assert self.function is not None
        with jax.named_scope(self.name):
            done: Data = self.function(m, d)
        return done


def combined_fields(*rows: StageRow) -> StageFields:
    """Return what several stages, one after the other, read and write together."""
    total = StageFields()
    for row in rows:
        total = total.then(row.fields)
    return total
