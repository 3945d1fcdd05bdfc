"""Contact: the contacts of a world, padded to the model's capacity, and their unused slots."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.math.components import Components
from jaxsim.model.record.fields import array
from jaxsim.model.record.record import Record

NO_CONTACT_DISTANCE = 1e10  # `dist` of an unused contact slot [m]

# Flags of models that have the fields of contacts of flexes, and of passive contacts.
_FLEX_FLAGS = ("flex_touches",)
_PASSIVE_FLAGS = ("flex_passive",)


class Contact(Record):
    """Contacts, padded to the model's capacity; the first `ncon` are valid.

    In the other slots `dist` is `NO_CONTACT_DISTANCE`, `geom` and `efc_address` are -1, and all
    other values are undefined. A field is None if no contact of the model can use it (adhesion,
    surface velocity, flex).

    `force` is stored where it does not follow from `qacc`: with PGS, no-slip iterations, RK4, the
    discrete integrator or the flag diagexact. Otherwise it is None, and
    `jaxsim.support.contact_forces` computes it. `mu` and `H` are None unless
    `make_data(m, keep=[..., "contact.mu", "contact.H"])` names them. The property `exclude` is the
    reason why a contact has no rows: 1, it is in the gap; 3, no dof moves it; 4, it is passive;
    otherwise 0.
    """

    dist = array("ncontact", unit="m", doc="distance between the surfaces; negative: penetration")
    pos = array("ncontact", kind="vec", unit="m", doc="point midway between the surfaces")
    frame = array("ncontact", kind="rot", doc="rows: normal from geom 1 to geom 2, two tangents")
    geom = array("ncontact", 2, dtype="int", doc="ids of the geoms; -1: a flex, or no contact")
    flex = array("ncontact", 2, dtype="int", doc="ids of the flexes; -1: a geom", only=_FLEX_FLAGS)
    elem = array(
        "ncontact", 2, dtype="int", doc="elements in their flexes; -1: none", only=_FLEX_FLAGS
    )
    vert = array(
        "ncontact", 2, dtype="int", doc="vertices in their flexes; -1: none", only=_FLEX_FLAGS
    )
    passive = array(
        "ncontact", dtype="int", doc="1: it is a passive force, else 0", only=_PASSIVE_FLAGS
    )
    dim = array("ncontact", dtype="int", doc="dimension of the contact force: 1, 3, 4 or 6")
    includemargin = array(
        "ncontact", unit="m", doc="the contact exerts a force when dist is below this"
    )
    friction = array("ncontact", 5, doc="friction: tangent 1, 2, spin, roll 1, 2")
    solref = array("ncontact", 2, doc="reference, normal direction")
    solreffriction = array("ncontact", 2, doc="reference, friction directions")
    solimp = array("ncontact", 5, doc="impedance")
    adhesion = array(
        "ncontact",
        unit="N",
        doc="largest adhesive force",
        only=("geom_hasadhesion", "pair_hasadhesion"),
    )
    surfacevel = array(
        "ncontact",
        3,
        unit="m/s, rad/s",
        doc="surface velocity of 2 relative to 1, geoms at rest: tangents 1 and 2, spin",
        only=("geom_hassurfacevel",),
    )
    efc_address = array("ncontact", dtype="int", doc="index of its first row; -1: no rows")
    mu = array(
        "ncontact", doc="friction coefficient of the regularized cone; 0: no friction", keep=False
    )
    H = array(
        "ncontact",
        36,
        doc="Hessian of the cost of an elliptic contact in the middle zone of its cone, "
        "(dim, dim) in the first entries; else 0",
        keep=False,
    )
    force = array(
        "ncontact",
        6,
        unit="N, N m",
        doc="force and torque on geom 2, in the contact frame",
        only=("lists_contact_forces",),
    )

    @property
    def geom1(self) -> jax.Array:
        """Return the id of the first geom, (ncontact,)."""
        return self.geom[..., 0]

    @property
    def geom2(self) -> jax.Array:
        """Return the id of the second geom, (ncontact,)."""
        return self.geom[..., 1]

    @property
    def exists(self) -> jax.Array:
        """Return whether a slot holds a contact, bool (ncontact,)."""
        there = self.geom[..., 0] >= 0
        return there if self.flex is None else there | (self.flex[..., 0] >= 0)

    @property
    def exclude(self) -> jax.Array:
        """Return the reason why a contact has no rows (see the class), int (ncontact,)."""
        in_gap = self.dist >= self.includemargin
        if self.adhesion is not None:
            in_gap = in_gap & (self.adhesion == 0)
        none = jnp.where(in_gap, 1, 3)
        if self.passive is not None:
            none = jnp.where(self.passive > 0, 4, none)
        return jnp.where(self.efc_address >= 0, 0, none)

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError for an mjContact field that is absent here."""
        raise AttributeError(f"Contact has no field {name!r}")


# Fields of contacts that a Data has only if `keep` names them.
OPTIONAL_CONTACT_FIELDS = frozenset(
    f"contact.{n}" for n, field in Contact.fields.items() if not field.keep
)

# Values of an unused slot; those of all other fields are 0.
NO_CONTACT = {"dist": NO_CONTACT_DISTANCE, "geom": -1, "efc_address": -1}


def no_contacts(like: Contact) -> Contact:
    """Return as many unused contact slots as `like` has."""

    def zero(a):
        if not isinstance(a, Components):
            return jnp.zeros_like(a)
        one = jnp.zeros_like(a.parts[0])
        return a.map(lambda _: one)

    empty: Contact = jax.tree.map(zero, like, is_leaf=lambda a: isinstance(a, Components))
    return empty.replace(
        **{name: jnp.full_like(getattr(like, name), value) for name, value in NO_CONTACT.items()}
    )
