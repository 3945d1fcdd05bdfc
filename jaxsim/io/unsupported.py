"""What the physics cannot run yet, found when a model is made.

A physics module that handles only a part of what MJCF can say has a function `refusals(m)`, which
gives one message for each thing it cannot simulate: the element with its name, and the remedy. The
model keeps them, with their places: it can be looked at, changed and saved, and `make_data` and the
functions of the physics refuse it. What concerns contacts is kept apart: it stands while the flags
of the model let it have contacts, as they are at the time of the call. What clashes with options is
found at the time of the call too (model/switch/clashes.py); kept are the places of what does when
the model is made.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jaxsim.errors import Place
from jaxsim.model.model import NO_CONTACTS, Model
from jaxsim.model.switch.clashes import clashing
from jaxsim.physics.actuator import actuation, transmission
from jaxsim.physics.collision import contacts
from jaxsim.physics.flex import refusals as flexes
from jaxsim.physics.passive import passive
from jaxsim.physics.refusal import Refusal
from jaxsim.physics.sensor import sensor, tactile_plan

Refusals = tuple[tuple[str | None, int | None, str], ...]
Places = Mapping[str, Sequence[Place]]


def unsupported(m: Model, places: Places, origin: str | None) -> dict[str, Refusals]:
    """Return everything in a model that cannot be simulated, as tables of the structure.

    Args:
      m: the model.
      places: where the objects of each kind were written, by id; kinds may be absent.
      origin: the model's own file, for what has no place.

    Returns:
      `refusals`: file, line and message of each; `contact_refusals`: of what would be one with
      contacts; `clash_places`: of what clashes with the options.
    """

    def placed(found: Iterable[Refusal]) -> Iterator[tuple[str | None, int | None, str]]:
        for refusal in found:
            known = places.get(refusal.kind or "", ())
            place = known[refusal.number] if refusal.number < len(known) else Place(origin)
            yield place.file, place.line, refusal.message

    touching = m.opt.replace(disableflags=m.opt.disableflags & ~NO_CONTACTS)
    with_contacts = m.converted({"opt": touching}, native=False)
    clashes = (Refusal(c.message, c.kind, c.number) for c in clashing(m))
    return {
        "clash_places": tuple(placed(clashes)),
        "refusals": tuple(r for refusals in REFUSALS for r in placed(refusals(m))),
        "contact_refusals": tuple(
            r for refusals in OF_CONTACTS for r in placed(refusals(with_contacts))
        ),
    }


REFUSALS: tuple[Callable[[Model], Iterable[Refusal]], ...] = (
    transmission.refusals,
    passive.refusals,
    flexes.refusals,
    actuation.refusals,
    sensor.refusals,
)
OF_CONTACTS: tuple[Callable[[Model], Iterable[Refusal]], ...] = (
    contacts.refusals,
    tactile_plan.refusals,
)
