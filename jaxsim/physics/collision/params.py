"""Contact parameters of every candidate pair, from its geoms or from its `<pair>` element.

The rules are those of MuJoCo's documentation, Modeling: Contact parameters (`mj_contactParam`). The
values are leaves of the model and may differ between worlds, so they are mixed in the program;
which rule applies to a pair is static, because priorities are integers of the structure.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import MINMU, MINVAL, EnableBit
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.candidates.pairs import GeomPairs
from jaxsim.physics.collision.flex.pairs import surface_table
from jaxsim.physics.collision.smooth import extend_distance, smoothing_lengths


def has_adhesion(m: Model) -> bool:
    """Return whether a geom or `<pair>` of the model has adhesion, or may get it."""
    return bool(m.geom_hasadhesion.any() or m.pair_hasadhesion.any())


class ContactParams(NamedTuple):
    """Parameters of contacts, `[npairs, *W]` each; W may be 1, shared by all worlds.

    Attributes:
      margin: a contact pushes if its distance is below this [m].
      gap: it is detected if its distance is below margin + gap [m].
      friction: tangent 1, tangent 2, spin, roll 1, roll 2.
      solref, solimp: reference and impedance in the normal direction.
      solreffriction: reference in the friction directions; 0: as in the normal direction.
      adhesion: largest pulling force of a contact [N]; None if the model has no adhesion.
      smooth: smoothing length, over which a contact acts from a distance [m]; 0 for ordinary
        contacts; None if the model has no smooth contacts.
    """

    margin: jax.Array
    gap: jax.Array
    friction: tuple[jax.Array, ...]
    solref: tuple[jax.Array, ...]
    solreffriction: tuple[jax.Array, ...]
    solimp: tuple[jax.Array, ...]
    adhesion: jax.Array | None
    smooth: jax.Array | None = None

    @property
    def reach(self) -> Array:
        """Return the distance below which a contact is detected [m]."""
        return extend_distance(self.margin + self.gap, self.smooth)

    @property
    def acts(self) -> Array:
        """Return the distance below which a contact has constraint rows [m]."""
        return extend_distance(self.margin, self.smooth)


def contact_params(m: Model, pairs: GeomPairs) -> ContactParams:
    """Return the parameters of all pairs: mixed from geoms, of `<pair>`, or the override."""
    # Mix the geoms' parameters; `<pair>` elements and the override replace them.
    named = pairs.predefined >= 0
    mixed = _mix_parameters(m, pairs)
    if named.any():
        mixed = _select_pairs(named, _pair_parameters(m, pairs), mixed)
    if m.opt.enableflags & EnableBit.OVERRIDE:
        mixed = _option_parameters(m, mixed)
    alone = pairs.geom1 == pairs.geom2
    if alone.any():  # self-collision of a flex has no margin, else neighbors always touch
        none = jnp.zeros_like(mixed.margin)
        mixed = mixed._replace(
            margin=_select_pairs(alone, none, mixed.margin),
            gap=_select_pairs(alone, none, mixed.gap),
        )
    # Coefficients that share an array keep sharing it.
    least = {id(f): jnp.maximum(f, MINMU) for f in mixed.friction}
    return mixed._replace(
        friction=tuple(least[id(f)] for f in mixed.friction),
        smooth=smoothing_lengths(m, mixed.margin, mixed.adhesion, alone),
    )


def _mix_parameters(m: Model, pairs: GeomPairs) -> ContactParams:
    """Return the parameters of the geom of higher priority, or the mix for equal priority."""
    s = m.structure
    g1, g2 = pairs.geom1, pairs.geom2
    soft = bool((g2 >= s.ngeom).any())
    # Difference of priorities decides which geom's parameters apply.
    order = surface_table(s, "priority") if soft else s.geom_priority
    priority = order[g1] - order[g2]

    def both(name: str) -> tuple:
        """Return a field of the first and of the second geom."""
        field = getattr(m, f"geom_{name}")
        if soft:  # flexes are numbered after the geoms
            field = _concatenate_fields(field, _flex_field(m, name, field))
        return gather_static(field, g1), gather_static(field, g2)

    def by_priority(equal, one, two):
        """Select by priority: equal, higher in the first geom, higher in the second."""
        return _select_pairs(priority == 0, equal, _select_pairs(priority > 0, one, two))

    # Weight of the first geom in means.
    share = _solmix_share(*both("solmix"))
    share = by_priority(share, jnp.ones_like(share), jnp.zeros_like(share))

    # The mean of standard references; the minimum if one is in the direct (negative) format.
    ref1, ref2 = both("solref")
    standard = (ref1[:, 0] > 0) & (ref2[:, 0] > 0)
    solref = [
        by_priority(jnp.where(standard, _mean(share, a, b), jnp.minimum(a, b)), a, b)
        for a, b in zip(_parts(ref1), _parts(ref2), strict=True)
    ]
    # Impedances are averaged.
    imp1, imp2 = both("solimp")
    solimp = [_mean(share, a, b) for a, b in zip(_parts(imp1), _parts(imp2), strict=True)]
    # Friction is the maximum, margin, gap and adhesion are sums.
    fri1, fri2 = both("friction")
    slide, spin, roll = (
        by_priority(jnp.maximum(a, b), a, b)
        for a, b in zip(_parts(fri1), _parts(fri2), strict=True)
    )
    margin1, margin2 = both("margin")
    gap1, gap2 = both("gap")
    none = jnp.zeros_like(share)
    adhesion = None
    if _has_adhesion(s, pairs):
        stick1, stick2 = both("adhesion")
        adhesion = by_priority(stick1 + stick2, stick1, stick2)
    return ContactParams(
        margin1 + margin2,
        gap1 + gap2,
        (slide, slide, spin, roll, roll),
        tuple(solref),
        (none, none),
        tuple(solimp),
        adhesion,
    )


def _solmix_share(mix1: Array, mix2: Array) -> Array:
    """Return solmix1 / (solmix1 + solmix2) `[npairs, *W]`; 1/2 if both are zero."""
    some1, some2 = mix1 >= MINVAL, mix2 >= MINVAL
    share = mix1 / jnp.where(some1 | some2, mix1 + mix2, 1.0)
    alone = jnp.where(some1 == some2, 0.5, jnp.where(some1, 1.0, 0.0))
    return jnp.where(some1 & some2, share, alone)


def _flex_field(m: Model, name: str, like: Array) -> Array:
    """Return a field of the flexes, which have no adhesion."""
    if name == "adhesion":
        return jnp.zeros((m.nflex, *like.shape[1:]), like.dtype)
    return getattr(m, f"flex_{name}")


def _concatenate_fields(a: Array, b: Array) -> Array:
    """Concatenate two fields, broadcasting one that all worlds share."""
    worlds = jnp.broadcast_shapes(a.shape[1:], b.shape[1:])
    return jnp.concatenate([jnp.broadcast_to(x, (len(x), *worlds)) for x in (a, b)])


def _pair_parameters(m: Model, pairs: GeomPairs) -> ContactParams:
    """Return the parameters of `<pair>` elements; of the first one for pairs without an element."""
    k = np.maximum(pairs.predefined, 0)
    return ContactParams(
        gather_static(m.pair_margin, k),
        gather_static(m.pair_gap, k),
        _parts(gather_static(m.pair_friction, k)),
        _parts(gather_static(m.pair_solref, k)),
        _parts(gather_static(m.pair_solreffriction, k)),
        _parts(gather_static(m.pair_solimp, k)),
        gather_static(m.pair_adhesion, k) if _has_adhesion(m.structure, pairs) else None,
    )


def _has_adhesion(s: Structure, pairs: GeomPairs) -> bool:
    """Return whether some pair may have adhesion: by one of its geoms, or by its `<pair>`."""
    named = pairs.predefined >= 0
    has = np.append(s.geom_hasadhesion, np.zeros(s.nflex, bool))
    by_geom = has[pairs.geom1] | has[pairs.geom2]
    return bool(by_geom[~named].any() or s.pair_hasadhesion[pairs.predefined[named]].any())


def _option_parameters(m: Model, p: ContactParams) -> ContactParams:
    """Return the same parameters for all contacts, from `<option>`."""

    def same(values: Array) -> tuple[jax.Array, ...]:
        each = (values[k : k + 1] for k in range(values.shape[0]))
        return tuple(jnp.broadcast_to(v, p.margin.shape) for v in each)

    solref = same(m.opt.o_solref)
    return p._replace(
        margin=same(m.opt.o_margin)[0],
        friction=same(m.opt.o_friction),
        solref=solref,
        solreffriction=solref,
        solimp=same(m.opt.o_solimp),
    )


def _mean(share: Array, a: Array, b: Array) -> Array:
    """Return the weighted mean."""
    return share * a + (1 - share) * b


def _parts(field: Array) -> tuple[jax.Array, ...]:
    """Split `[n, k, *W]` into k arrays `[n, *W]`."""
    return tuple(field[:, k] for k in range(field.shape[1]))


def _select_pairs(mask: np.ndarray, yes: PyTree, no: PyTree) -> PyTree:
    """Select arrays or parameters by a static mask over the pairs."""
    if mask.all() or not mask.any():
        return yes if mask.all() else no
    return jax.tree.map(lambda a, b: jnp.where(column(mask, a), a, b), yes, no)
