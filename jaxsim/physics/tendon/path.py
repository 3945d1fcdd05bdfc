"""Paths of tendons as tables: fixed terms, straight legs and legs that may wrap around a geom."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.pattern import SparsityPattern
from jaxsim.enums import WrapType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.topology import ancestors


@dataclass(frozen=True, eq=False)
class FixedTerms:
    """Terms `coefficient * joint position` of the fixed tendons.

    Attributes:
      tendon, wrap: tendon of each term, and index in the wrap tables (for its coefficient).
      qpos, dof: address of the joint in qpos and qvel.
    """

    tendon: np.ndarray
    wrap: np.ndarray
    qpos: np.ndarray
    dof: np.ndarray


@dataclass(frozen=True, eq=False)
class Legs:
    """Segments of spatial tendons between two sites, `[n]` each.

    Attributes:
      tendon: tendon of the leg.
      site0, site1: its ends.
      pulley: index in the wrap tables of the pulley whose divisor applies; -1: none.
      geom: wrapping geom; -1 for a straight leg.
      side: site that selects the side of the geom; -1: none.
      kind: WrapType of the geom.
      start, end: indices of its ends in the wrap tables.
    """

    tendon: np.ndarray
    site0: np.ndarray
    site1: np.ndarray
    pulley: np.ndarray
    geom: np.ndarray
    side: np.ndarray
    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.tendon)

    def where(self, mask: np.ndarray) -> "Legs":
        """Return the legs where a mask is True."""
        return Legs(*(getattr(self, n)[mask] for n in self.__dataclass_fields__))

    @classmethod
    def join(cls, groups: Sequence["Legs"]) -> "Legs":
        """Concatenate the legs of several groups."""
        columns = ([getattr(g, n) for g in groups] for n in cls.__dataclass_fields__)
        return cls(*(np.concatenate(column) for column in columns))


@cache_by_structure
def tendon_of_wrap(s: Structure) -> np.ndarray:
    """Return the tendon of each wrap object, [nwrap]."""
    return np.repeat(np.arange(s.ntendon), s.tendon_num)


@cache_by_structure
def fixed_terms(s: Structure) -> FixedTerms:
    """Return all terms of all fixed tendons."""
    wrap = np.flatnonzero(s.wrap_type == WrapType.JOINT)
    joint = s.wrap_objid[wrap]
    return FixedTerms(tendon_of_wrap(s)[wrap], wrap, s.jnt_qposadr[joint], s.jnt_dofadr[joint])


@cache_by_structure
def tendon_legs(s: Structure) -> Legs:
    """Return all legs: between two sites, straight or past one geom; a pulley starts a new path."""
    rows = []
    # Walk along the path: sites end legs, geoms are between two sites, pulleys restart.
    for t in range(s.ntendon):
        site, pulley, start, obstacle = -1, -1, -1, None
        for w in range(s.tendon_adr[t], s.tendon_adr[t] + s.tendon_num[t]):
            kind, obj = s.wrap_type[w], s.wrap_objid[w]
            if kind == WrapType.PULLEY:
                site, pulley = -1, w
            elif kind in (WrapType.SPHERE, WrapType.CYLINDER):
                obstacle = (obj, s.wrap_sideid[w], kind)
            elif kind == WrapType.SITE:
                if site >= 0:
                    way = obstacle or (-1, -1, WrapType.NONE)
                    rows.append((t, site, obj, pulley, *way, start, w))
                site, start, obstacle = obj, w, None
    table = np.array(rows, int).reshape(-1, 9)
    return Legs(*table.T)


@cache_by_structure
def leg_groups(s: Structure) -> list[tuple[WrapType, bool, Legs]]:
    """Return legs by type of geom and presence of a side site; straight legs first."""
    every = tendon_legs(s)
    groups = []
    for kind in (WrapType.NONE, WrapType.SPHERE, WrapType.CYLINDER):
        for sided in (False, True):
            chosen = every.where((every.kind == kind) & ((every.side >= 0) == sided))
            if len(chosen):
                groups.append((kind, sided, chosen))
    return groups


@cache_by_structure
def tendon_pattern(s: Structure) -> SparsityPattern:
    """Return the dofs that can change the length of each tendon.

    A dof that moves all bodies of a spatial tendon moves it as a whole.
    """
    mask = np.zeros((s.ntendon, s.nv), bool)
    terms = fixed_terms(s)
    # Fixed tendons: joints of their terms.
    mask[terms.tendon, terms.dof] = True
    moves = ancestors(s).astype(bool)
    every = tendon_legs(s)
    # Spatial tendons: dofs that move some but not all bodies of the path.
    for t in np.unique(every.tendon):
        path = every.where(every.tendon == t)
        site = np.concatenate([path.site0, path.site1])
        geom = path.geom[path.geom >= 0]
        body = np.concatenate([s.site_bodyid[site], s.geom_bodyid[geom]])
        mask[t] = moves[body].any(0) & ~moves[body].all(0)
    return SparsityPattern.of(mask)


def inverse_divisor(m: Model, group: Legs) -> Array:
    """Return a leg's weight in the length: 1 / divisor of the pulley before it, or 1."""
    if (group.pulley < 0).all():
        return jnp.ones((len(group), *m.wrap_prm.shape[1:]), m.wrap_prm.dtype)
    padded = jnp.concatenate([m.wrap_prm, jnp.ones_like(m.wrap_prm[:1])])
    return 1 / gather_static(padded, np.where(group.pulley < 0, m.nwrap, group.pulley))
