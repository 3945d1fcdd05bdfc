"""Features of a model that the physics cannot simulate yet, detected when a model is made.

A physics module that supports only part of MJCF has a function `(m) -> list[Refusal]`, listed in
`REFUSALS`, with one message for each unsupported feature: the element with its name, and the
remedy. The model stores them with their source locations: it can be inspected, changed and saved,
while `make_data` and the functions of the physics raise. Refusals that concern contacts are stored
separately: they hold only while the flags, at the time of the call, enable contacts. Clashes with
options are also computed at the time of the call (model/switch/clashes.py); only the locations of
those present at loading are stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jaxsim.errors import SourceLocation
from jaxsim.model.model import Model
from jaxsim.model.option import NO_CONTACTS
from jaxsim.model.switch.clashes import find_clashes
from jaxsim.physics.actuator import actuation, transmission
from jaxsim.physics.collision import contacts
from jaxsim.physics.flex import flex
from jaxsim.physics.passive import passive
from jaxsim.physics.sensor import sensor, tactile_plan
from jaxsim.physics.unsupported import Refusal

Refusals = tuple[tuple[str | None, int | None, str], ...]
ElementLocations = Mapping[str, Sequence[SourceLocation]]


def unsupported_features(
    m: Model, locations: ElementLocations, origin: str | None
) -> dict[str, Refusals]:
    """Return everything in a model that cannot be simulated, as tables of the structure.

    Args:
      m: the model.
      locations: source locations of the objects of each kind, by id; kinds may be absent.
      origin: the model's own file, for objects without a location.

    Returns:
      `refusals`: file, line and message of each; `contact_refusals`: those that hold with contacts
      enabled; `clash_places`: locations of clashes with the options.
    """

    def locate(found: Iterable[Refusal]) -> Iterator[tuple[str | None, int | None, str]]:
        for refusal in found:
            known = locations.get(refusal.kind or "", ())
            place = known[refusal.number] if refusal.number < len(known) else SourceLocation(origin)
            yield place.file, place.line, refusal.message

    touching = m.opt.replace(disableflags=m.opt.disableflags & ~NO_CONTACTS)
    with_contacts = m.replace_unchecked({"opt": touching}, native=False)
    clashes = (Refusal(c.message, c.kind, c.number) for c in find_clashes(m))
    return {
        "clash_places": tuple(locate(clashes)),
        "refusals": tuple(r for refusals in REFUSALS for r in locate(refusals(m))),
        "contact_refusals": tuple(
            r for refusals in _CONTACT_REFUSALS for r in locate(refusals(with_contacts))
        ),
    }


REFUSALS: tuple[Callable[[Model], Iterable[Refusal]], ...] = (
    transmission.unsupported_transmissions,
    passive.unsupported_passive_forces,
    flex.unsupported_flexes,
    actuation.unsupported_actuators,
    sensor.unsupported_sensors,
)
_CONTACT_REFUSALS: tuple[Callable[[Model], Iterable[Refusal]], ...] = (
    contacts.unsupported_contacts,
    tactile_plan.unsupported_tactile_geoms,
)
