"""Jacobians of contacts stored for the dofs that each contact touches.

The interface is that of `BasisJacobian` (constraint/jacobian.py), for models of many trees: 12
balls have 72 dofs, of which a contact touches 12.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import unrolled_sum
from jaxsim.arrays.dynamic import dynamic_update_slice_in_dim
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.node import node
from jaxsim.arrays.products import PerContact, chunks, gram_basis, values_of
from jaxsim.linalg.contact_blocks import ContactBlocks, gather_group, scatter_add_contacts
from jaxsim.linalg.operator import AnySymmetric
from jaxsim.transforms.materialize import is_unbatched, materialize
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


@node("dofs")
class GroupJacobian:
    """Contact Jacobian in the basis (normal, two tangents, spin, two rolls), by dof groups.

    Attributes:
      dofs: the dofs of each group, as in `Groups`.
      own: `[size, ncon, slots k, *W]`: entries for the groups that a contact touches, concatenated;
        0 for an empty slot, or for a repeated dof.
      group: the group of each slot, int `[ncon, *W]`, -1: none. In two slots the larger id is
        first.
      used: contacts up to the last active one in any world, int scalar; None: not known.
    """

    dofs: tuple[tuple[int, ...], ...]
    own: jax.Array
    group: tuple[jax.Array, ...]
    used: jax.Array | None

    @property
    def _group_index(self) -> np.ndarray:
        """Return the index of each dof among those of all groups, `[nv]`."""
        return np.unique(np.array(self.dofs).ravel(), return_index=True)[1]

    def times(self, x: Array) -> list:
        """Compute J x, `[nv, *W]` -> list of `[ncon, *W]`."""
        dofs = np.array(self.dofs)
        groups = gather_static(x, dofs.ravel()).reshape(*dofs.shape, *x.shape[1:])

        # Gather x of each contact's groups, and multiply; in chunks of contacts up to the last
        # used.
        def product(own: Array, group: tuple) -> Array:
            # x of the groups in each slot, side by side.
            moved = jnp.concatenate([gather_group(groups, g) for g in group], axis=1)
            moved = materialize(moved, own[0, 0])
            if (
                is_unbatched(own[0, 0])
                or own.shape[2] > tuning().max_unrolled_terms
                or not platform().recomputes
            ):
                return jnp.sum(own * moved[None], axis=2)
            return unrolled_sum(lambda j: own[:, :, j] * moved[None, :, j], own.shape[2])

        def put(out: Array, first: Array, own: Array, group: tuple) -> Array:
            return dynamic_update_slice_in_dim(out, product(own, group), first, axis=1)

        (size, count), chunk = self.own.shape[:2], tuning().contacts_per_chunk
        # All contacts at once, or chunks up to the last used one.
        if self.used is None or count <= chunk:
            return list(product(self.own, self.group))
        start = jnp.zeros((size, count + -count % chunk, *self.own.shape[3:]), self.own.dtype)
        return list(chunks(put, start, self.used, (self.own, 1), (self.group, 0))[:, :count])

    def transpose_times(self, f: list | PerContact, nv: int) -> Array:
        """Compute J' f, list of `[ncon, *W]` -> `[nv, *W]`."""
        number, k = len(self.dofs), len(self.dofs[0])

        # Scatter-add each slot to its group, then gather the dofs.
        def add(out: Array, _: Array | int, own: Array, f: list, group: tuple) -> Array:
            # Force of each slot, added to the vector of its group.
            f = values_of(f)
            push = materialize(sum(own[b] * f[b][:, None] for b in range(len(f))), own[0, 0])
            for s, of_slot in enumerate(group):
                out = scatter_add_contacts(out, push[:, s * k : (s + 1) * k], of_slot)
            return out

        start = jnp.zeros((number, k, *self.own.shape[3:]), self.own.dtype)
        out = chunks(add, start, self.used, (self.own, 1), (f, 0), (self.group, 0))
        return gather_static(out.reshape(number * k, *out.shape[2:]), self._group_index[:nv])

    def add_gram(self, H: AnySymmetric, weight: list | PerContact) -> AnySymmetric:
        """Return H + J' W J; W of each contact as nested lists over the basis of `[ncon, *W]`."""
        # Contribution to H as blocks between groups, where H supports them.
        between = ContactBlocks(self.dofs, self.own, self.group, weight, self.used)
        if H.supports(between):
            return H.add_contact_blocks(between)

        # Otherwise expand chunks of rows to all dofs.
        def add(H: Any, _: Array | int, own: Array, weight: list, group: tuple) -> Any:
            own, weight, group = materialize((own, values_of(weight), group), own[0, 0])
            part = replace(self, own=own, group=group, used=None)
            return gram_basis(H, materialize(part.basis, own[0, 0]), weight)

        out: AnySymmetric = chunks(add, H, self.used, *between.items)
        return out

    def with_contacts(self, new: Any, first: Array) -> "GroupJacobian":
        """Replace the rows of the contacts from index `first` on."""
        own = dynamic_update_slice_in_dim(self.own, new.own, first, axis=1)
        group = [
            dynamic_update_slice_in_dim(a, b, first, axis=0)
            for a, b in zip(self.group, new.group, strict=True)
        ]
        return replace(self, own=own, group=tuple(group))

    @property
    def basis(self) -> Array:
        """Return the full rows, `[size, ncon, nv, *W]`."""
        # Expand each slot to the columns of its group.
        k = len(self.dofs[0])
        owner = column(self._group_index // k, self.group[0]).astype(np.int32)
        columns = jnp.moveaxis(self.own, 2, 0)
        rows = []
        for s, group in enumerate(self.group):
            here = group[:, None] == owner[None]
            rows.append(
                jnp.where(
                    here,
                    jnp.moveaxis(gather_static(columns, s * k + self._group_index % k), 0, 2),
                    0,
                )
            )
        return sum(rows[1:], rows[0])
