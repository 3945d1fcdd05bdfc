"""What the physics cannot run yet, found before the first step is traced.

A physics module that handles only a part of what MJCF can say has a function `refusals(m)`, which
gives one message for each thing it cannot simulate: the element with its name, and the remedy.
"""

from collections.abc import Callable, Iterable

from jaxsim.enums import EnableBit
from jaxsim.errors import ModelError, Place, Problem
from jaxsim.model import Model
from jaxsim.physics import actuation, integrate, passive, sensor, tendon, transmission
from jaxsim.physics.collision import contacts
from jaxsim.physics.constraint import equality

# flags that change the motion, and what they ask for
FLAGS = {
    EnableBit.SLEEP: "sleeping trees",
    EnableBit.DIAGEXACT: "the exact diagonal of the constraint inertia",
    EnableBit.IPC: "barrier contacts",
    EnableBit.SPECULATIVE: "speculative contacts",
}


def refuse_unsupported(m: Model, origin: str | None = None) -> None:
    """Raises ModelError with everything in the model that cannot be simulated."""
    place = Place(origin)
    problems = [Problem(place, message) for refusals in REFUSALS for message in refusals(m)]
    if problems:
        raise ModelError(problems)


def _options(m: Model) -> Iterable[str]:
    """Options that are not simulated."""
    for flag, meaning in FLAGS.items():
        if m.opt.enableflags & flag:
            name = str(flag.name).lower()
            yield f"option flag {name} ({meaning}) is not supported; remove {name}='enable'"
    if m.opt.noslip_iterations:
        yield "option noslip_iterations: the no-slip solver is not supported; set it to 0"


REFUSALS: tuple[Callable[[Model], Iterable[str]], ...] = (
    _options,
    integrate.refusals,
    tendon.refusals,
    transmission.refusals,
    passive.refusals,
    actuation.refusals,
    equality.refusals,
    contacts.refusals,
    sensor.refusals,
)
