"""Constraint rows of contacts: Jacobian of the basis, regularization, reference acceleration.

MuJoCo's documentation, Computation: Contact, Friction cones, Constraint space; corresponds to
`mj_instantiateContact`. On platforms that work in chunks, rows are built only up to the last active
contact (`used`).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_update_slice_in_dim
from jaxsim.arrays.products import chunks
from jaxsim.enums import ConeType, ConstraintType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.driver import CollisionResult, Contacts
from jaxsim.physics.collision.flex.flex_jacobian import flex_jacobian_shares
from jaxsim.physics.collision.smooth import smooth_distance
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.contact.group_jacobian import GroupJacobian
from jaxsim.physics.constraint.contact.jacobian import contact_jacobian
from jaxsim.physics.constraint.impedance import (
    ReferenceLaw,
    impedance,
    reference_law,
    regularization,
)
from jaxsim.physics.constraint.jacobian import BasisJacobian
from jaxsim.physics.constraint.rows import ContactRows, RowBlock
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def contact_rows(m: Model, d: Data, found: CollisionResult) -> ContactRows:
    """Build the rows of the contacts of a state.

    velocity along basis vector k = frame[k] . (v2 - v1)   at the contact point, k < 3
                                    frame[k-3] . (w2 - w1)                      k >= 3
    """
    c, size = found.contacts, basis_size(m)
    # Without chunks, or under differentiation, all contacts are processed.
    of_one = c.active.ndim == 1 and not platform().fuses_calls
    whole = of_one or is_differentiated() or not platform().chunks
    used = None if whole else _num_used(c.active)
    in_chunks = len(c.active) % tuning().contacts_per_chunk == 0
    if used is not None and found.packed and in_chunks:
        parts = _build_in_chunks(m, d, c, size, used)
    else:
        parts = _parts(m, d, c, size)
    return _block(m, c, parts, used)


def rows_at(
    m: Model, d: Data, c: Contacts, J: BasisJacobian | GroupJacobian, velocity: list
) -> ContactRows:
    """Build rows of contacts with a given Jacobian and velocity along their basis."""
    return _block(m, c, _parts_at(m, d, c, J, velocity), None)


def basis_size(m: Model) -> int:
    """Return the largest dimension that a contact of the model can have."""
    return int(collision_layout(m).pairs.dim.max())


def surface_force(c: Contacts, force: list) -> list:
    """Return the force between the surfaces: that of the rows, less the adhesion.

    The rows push the surfaces apart against the attraction, which is a passive force; the
    difference acts between the surfaces, and is attractive where the rows push less.
    """
    if c.adhesion is None:
        return force
    return [force[0] - jnp.where(c.active, c.adhesion, 0), *force[1:]]


def raise_reference_by_adhesion(
    c: Contacts, D: Array, push: Array, by_edge: bool, times: float = 1.0
) -> Array:
    """Return the normal's reference raised by R * adhesion, or by an edge's share of it.

    With the attraction as a passive force this moves the cone of forces down along the normal.
    MuJoCo's documentation, Computation: Constraint model, Adhesion. With `times` -1 the reference
    without the pull, from that with it.
    """
    # Only contacts with rows adhere.
    if c.adhesion is None:
        return push
    held = D > 0
    pull = jnp.where(held, c.adhesion, 0) / jnp.where(held, D, 1.0)
    if by_edge:
        pull = pull / jnp.where(c.dim == 1, 1, 2 * (c.dim - 1)).astype(pull.dtype)
    return push + times * pull


class _Parts(NamedTuple):
    """Computed fields of the rows: Jacobian, fields of Pyramid or Elliptic, and of Block."""

    J: BasisJacobian | GroupJacobian
    D: Any
    aref: list
    mu: list
    soft: jax.Array
    weight: jax.Array


def _num_used(active: Array) -> Array:
    """Count contacts up to the last active in some world: active `[ncon]` or `[ncon, W]`."""
    place = np.arange(1, len(active) + 1, dtype=np.int32)
    return jnp.max(jnp.where(active if active.ndim == 1 else active.any(axis=-1), place, 0))


def _build_in_chunks(m: Model, d: Data, c: Contacts, size: int, used: Array) -> _Parts:
    """Build the rows of contacts up to the last used one, in chunks; the rest is zero."""

    def build(part: Contacts) -> _Parts:
        return _parts(m, d, part, size)

    def put(out: _Parts, first: Array, part: Contacts) -> _Parts:
        new = build(part)
        rest = jax.tree.map(
            lambda a, b: dynamic_update_slice_in_dim(a, b, first, axis=0), out[1:], new[1:]
        )
        return _Parts(out.J.with_contacts(new.J, first), *rest)

    # Allocate zeros, and fill chunks up to the last used contact.
    shapes = jax.eval_shape(build, c)
    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    return chunks(put, start, used, (c, 0))


def _block(m: Model, c: Contacts, parts: _Parts, used: Array | None) -> ContactRows:
    # dimensions of the model's possible contacts; adhesion reduces them to 1
    dims = collision_layout(m).pairs.dim
    flat = c.dim == 1 if dims.max() > 1 and (dims.min() == 1 or c.adhesion is not None) else None
    pyramids = m.opt.cone == ConeType.PYRAMIDAL
    return RowBlock(
        ConstraintType.CONTACT_PYRAMIDAL if pyramids else ConstraintType.CONTACT_ELLIPTIC,
        (),
        replace(parts.J, used=used),
        (Pyramid if pyramids else Elliptic)(parts.D, parts.mu, flat, used),
        parts.aref,
        parts.soft,
        parts.weight,
    )


def _parts(m: Model, d: Data, c: Contacts, size: int) -> _Parts:
    J = contact_jacobian(m, d, c, size)
    return _parts_at(m, d, c, J, J.times(d.qvel))


def _parts_at(
    m: Model, d: Data, c: Contacts, J: BasisJacobian | GroupJacobian, velocity: list
) -> _Parts:
    size = len(velocity)
    if c.surfacevel is not None:  # friction acts on the relative velocity of the moving surfaces
        driven = zip(velocity[1:4], c.surfacevel, strict=False)
        velocity = [velocity[0], *(v + s for v, s in driven), *velocity[4:]]
    # Impedance and reference law of the normal.
    weight = _weight(m, d, c)
    violation, imp = _margin_violation(c)
    spring = _normal_reference_law(m, c, imp)
    # Friction coefficient of each basis vector; zero beyond the contact's own dimension.
    mu = [jnp.zeros_like(c.dist)] + [
        jnp.where(c.dim > k, c.friction[k - 1], 0) for k in range(1, size)
    ]
    soft = spring.softness(m)
    push = spring.reference(m, violation, velocity[0])
    if m.opt.cone == ConeType.PYRAMIDAL:
        # Pyramid: the first row of a contact with friction is an edge; its weight includes
        # friction.
        weight = weight * jnp.where(c.dim == 1, 1, 1 + c.friction[0] * c.friction[0])
        edges = _pyramid(m, c, regularization(soft, weight))
        rubs = [spring.reference(m, None, v) for v in velocity[1:]]
        aref = [raise_reference_by_adhesion(c, edges, push, by_edge=True), *rubs]
        return _Parts(J, edges, aref, mu, soft, weight)
    # Elliptic cone: friction rows have a regularization and damping of their own.
    slope = c.friction[0] * jnp.sqrt(1 / m.opt.impratio)
    D = _cone(m, c, regularization(soft, weight), mu)
    damper = _friction_law(m, c, imp)
    rubs = [damper.reference(m, None, v) for v in velocity[1:]]
    aref = [raise_reference_by_adhesion(c, D[0], push, by_edge=False), *rubs]
    return _Parts(J, D, aref, [slope, *mu[1:]], soft, weight)


def contact_law(m: Model, c: Contacts) -> tuple[ReferenceLaw, ReferenceLaw]:
    """Return the laws of contact normals, or of all edges of a pyramid, and of friction rows."""
    _, imp = _margin_violation(c)
    return _normal_reference_law(m, c, imp), _friction_law(m, c, imp)


def _normal_reference_law(m: Model, c: Contacts, imp: Array) -> ReferenceLaw:
    """Return the reference_law along the normal."""
    return reference_law(m, c.solref, c.solimp[1], imp, one_sided=True)


def _friction_law(m: Model, c: Contacts, imp: Array) -> ReferenceLaw:
    """Return the law of the friction rows of elliptic cones, with `solreffriction` if it is set."""
    # solreffriction (0, 0) means the normal's solref.
    own = (c.solreffriction[0] != 0) | (c.solreffriction[1] != 0)
    first, second = (
        reference_law(m, ref, c.solimp[1], imp) for ref in (c.solref, c.solreffriction)
    )
    damping = jnp.where(own, second.damping, first.damping)
    return ReferenceLaw(jnp.zeros_like(imp), damping, imp)


def _margin_violation(c: Contacts) -> tuple[Array, Array]:
    """Return the violation of each contact's margin, negative, and its impedance."""
    # Violation relative to the margin; smoothing weights the impedance.
    violation = c.dist - c.includemargin
    if c.smooth is None:
        return violation, impedance(c.solimp, violation)
    violation, weight = smooth_distance(violation, c.smooth, c.active)
    return violation, weight * impedance(c.solimp, violation)


def _pyramid(m: Model, c: Contacts, R: Array) -> Array:
    """Return D of pyramids: all edges share one regularization, that of the first edge rescaled."""
    slope = c.friction[0]
    R = jnp.where(c.dim == 1, R, 2 * slope * slope / m.opt.impratio * R)
    return jnp.where(c.active, 1 / jnp.where(c.active, R, 1.0), 0)


def _cone(m: Model, c: Contacts, R: Array, mu: list) -> list:
    """Return D over the basis: friction regularizations are tied to the normal's."""
    D = [jnp.where(c.active, 1 / R, 0)]
    # impratio scales the friction impedance; coefficients scale between directions.
    Rt = R / m.opt.impratio
    for k in range(1, len(mu)):
        ratio = jnp.where(mu[k] > 0, c.friction[0] / jnp.where(mu[k] > 0, mu[k], 1.0), 0)
        used = c.active & (c.dim > k)
        D.append(jnp.where(used, 1 / jnp.where(used, Rt * ratio * ratio, 1.0), 0))
    return D


def _weight(m: Model, d: Data, c: Contacts) -> Array:
    """Return the approximate inverse inertia at the contact, `body_invweight0` of both."""
    # Static tables: translational inverse weight per body.
    first, second = (body.take(m.body_invweight0[:, 0]) for body in c.body)
    if c.item is None:
        return first + second
    first, second = (
        jnp.where(c.each(geom) >= 0, weight, 0)
        for geom, weight in zip(c.geom, (first, second), strict=True)
    )
    return first + second + flex_jacobian_shares(m, d, c)[1]
