"""The joint-space inertia matrix at `qpos0`, block by block, and its inverse.

M is block-diagonal over the kinematic trees, so it is stored as one dense block per tree, and
blocks of equal size are processed together: a chain of a thousand dofs is one large block, a
thousand free bodies are a batch of 6 x 6 blocks.

    M[i, j] = cdof[i] . I(body of i) cdof[j],    j an ancestor of i or i itself,

with I the composite inertia of the subtree that dof i moves (composite rigid body algorithm;
Featherstone, ch. 6.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from jaxsim.compile.reference.pose import Reference, subtree_sum
from jaxsim.enums import MINVAL
from jaxsim.math import quaternion

# A dof depends on others up to rounding if eliminating those leaves less than this fraction (of
# square roots) of its inertia.
_DEPENDENT_TOLERANCE = 1e-7


class MassMatrix:
    """M at the reference pose, with its inverse; `blocks` are the dofs of the trees."""

    def __init__(self, reference: Reference, armature: np.ndarray):
        """Compute M.

        Args:
          reference: the model at `qpos0`.
          armature: rotor inertia of each dof, including actuators, (nv,) [kg or kg m^2].
        """
        self.reference = reference
        self.nv = int(reference.fields["nv"])
        self.blocks = _tree_dofs(reference)
        self._home = np.zeros((self.nv, 2), dtype=np.int64)  # dof -> (block, index in it)
        for number, dofs in enumerate(self.blocks):
            self._home[dofs] = np.stack([np.full(len(dofs), number), np.arange(len(dofs))], axis=1)
        self.related = [self._same_branch(dofs) for dofs in self.blocks]
        self.M = self._composite(armature)
        self.roots: dict[int, np.ndarray] = {}  # for singular blocks: R with M^-1 = R^T R

    def _same_branch(self, dofs: np.ndarray) -> np.ndarray:
        """Return which pairs of dofs of a block are on one branch of the tree, bool (n, n)."""
        parents = self.reference.fields["dof_parentid"]
        above = np.zeros((len(dofs), len(dofs)), dtype=bool)
        for i, dof in enumerate(dofs):
            if parents[dof] >= 0:
                above[i] = above[self._home[parents[dof], 1]]
            above[i, i] = True
        return above | above.T

    def _composite(self, armature: np.ndarray) -> list[np.ndarray]:
        """Return the blocks of M."""
        fields, cdof = self.reference.fields, self.reference.cdof
        inertia = subtree_sum(fields["body_parentid"], _spatial_inertia(self.reference))
        force = np.einsum("nij,nj->ni", inertia[fields["dof_bodyid"]], cdof)
        blocks = []
        for dofs, related in zip(self.blocks, self.related, strict=True):
            # the composite inertia is that of the dof farther from the root: the larger index
            lower = np.tril(force[dofs] @ cdof[dofs].T * related)
            blocks.append(lower + np.tril(lower, -1).T + np.diag(armature[dofs]))
        return blocks

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of M, (nv,)."""
        return self._spread([np.diagonal(block) for block in self.M])

    def add_outer(self, dofs: np.ndarray, values: np.ndarray, scale: float) -> None:
        """Add scale * J J^T for a Jacobian J with `values` at `dofs`, within the sparsity pattern
        of M.

        As in MuJoCo, entries that a tendon's armature would add across branches or trees are
        dropped.
        """
        home = self._home[dofs]
        for number in np.unique(home[:, 0]):
            here = home[:, 0] == number
            place = np.ix_(home[here, 1], home[here, 1])
            outer = scale * np.outer(values[here], values[here])
            self.M[number][place] += outer * self.related[number][place]
        self.__dict__.pop("inverse", None)

    @cached_property
    def inverse(self) -> list[np.ndarray]:
        """Return the blocks of the inverse of M."""
        inverse: list[np.ndarray] = [np.zeros((0, 0))] * len(self.M)
        self.roots.clear()
        for alike in _group_by_size(self.M):
            blocks, singular = _invert(np.stack([self.M[k] for k in alike]))
            for number, block in zip(alike, blocks, strict=True):
                inverse[number] = block
            self.roots.update((alike[place], root) for place, root in singular.items())
        return inverse

    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of the inverse of M, (nv,)."""
        return self._spread([np.diagonal(block) for block in self.inverse])

    def solve(self, dofs: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the product of the inverse of M with sparse rows.

        Args:
          dofs: dofs of the nonzeros of the rows, (n,).
          values: the nonzeros, (k, n).

        Returns:
          The products, (k, nv).
        """
        out = np.zeros((len(values), self.nv))
        for home, here in self._split(dofs):
            out[:, self.blocks[home]] = (
                values[:, here] @ self.inverse[home][self._home[dofs[here], 1]]
            )
        return out

    def sandwich(self, dofs: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return J M^-1 J^T for sparse rows `values` (k, n) at `dofs` (n,); (k, k)."""
        out = np.zeros((len(values), len(values)))
        for home, here in self._split(dofs):
            place, row = self._home[dofs[here], 1], values[:, here]
            inverse = self.inverse[home]
            if home in self.roots:
                half = row @ self.roots[home][:, place].T
                out += half @ half.T
            else:
                out += row @ inverse[np.ix_(place, place)] @ row.T
        return out

    def _split(self, dofs: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the blocks of some dofs, with the positions of those dofs."""
        home = self._home[dofs, 0]
        for number in sorted(set(home.tolist())):
            yield number, np.flatnonzero(home == number)

    def _spread(self, values: list[np.ndarray]) -> np.ndarray:
        out = np.zeros(self.nv)
        for dofs, value in zip(self.blocks, values, strict=True):
            out[dofs] = value
        return out


def _tree_dofs(reference: Reference) -> list[np.ndarray]:
    """Return the dofs of each kinematic tree, ascending."""
    parents = reference.fields["dof_parentid"]
    root = np.arange(len(parents))
    for dof, parent in enumerate(parents):
        if parent >= 0:
            root[dof] = root[parent]
    order = np.argsort(root, kind="stable")
    cuts = np.flatnonzero(np.diff(root[order])) + 1
    return np.split(order, cuts) if len(order) else []


def _group_by_size(blocks: list[np.ndarray]) -> list[list[int]]:
    """Return the indices of the blocks, grouped by size."""
    groups: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        groups.setdefault(len(block), []).append(number)
    return list(groups.values())


def _invert(blocks: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Return the inverses of symmetric positive definite blocks (k, n, n), and roots of the
    singular ones."""
    diagonal = np.diagonal(blocks, axis1=1, axis2=2)
    # a dof without inertia gets MuJoCo's smallest inertia
    floor = np.maximum(diagonal, MINVAL)
    blocks = np.where(np.eye(blocks.shape[1], dtype=bool), floor[:, :, None], blocks)
    unit = 1.0 / np.sqrt(floor)
    try:
        factor = np.linalg.cholesky(blocks * unit[:, :, None] * unit[:, None, :])
        independent = (
            np.diagonal(factor, axis1=1, axis2=2).min(axis=1, initial=1.0) > _DEPENDENT_TOLERANCE
        )
        factor = np.linalg.inv(factor) * unit[:, None, :]
        inverse = np.swapaxes(factor, 1, 2) @ factor
    except np.linalg.LinAlgError:
        inverse, independent = np.zeros(blocks.shape), np.zeros(len(blocks), bool)
    roots = {int(k): _singular_root(blocks[k]) for k in np.flatnonzero(~independent)}
    for number, root in roots.items():
        inverse[number] = root.T @ root
    return inverse, roots


def _singular_root(block: np.ndarray) -> np.ndarray:
    """Return R with M^-1 = R^T R for a block (n, n) with dependent dofs, as in MuJoCo.

    Dofs are eliminated from the last to the first, M = L^T D L, and pivots are clamped to the
    smallest inertia. R = D^-1/2 L^-T avoids cancellation between directions without inertia.
    """
    L, D = np.tril(block), np.zeros(len(block))
    for dof in reversed(range(len(block))):
        D[dof] = max(L[dof, dof], MINVAL)
        L[:dof, :dof] -= np.tril(np.outer(L[dof, :dof], L[dof, :dof]) / D[dof])
        L[dof, : dof + 1] = np.append(L[dof, :dof] / D[dof], 1.0)
    inverse = np.eye(len(L))
    for dof in range(1, len(L)):
        inverse[dof, :dof] = -L[dof, :dof] @ inverse[:dof, :dof]
    return inverse.T / np.sqrt(D)[:, None]


def _spatial_inertia(reference: Reference) -> np.ndarray:
    """Return the spatial inertia of each body about the center of mass of its tree, (nbody, 6,
    6)."""
    f = reference.fields
    R = quaternion.quat_to_matrix(reference.world_rotation(np.arange(f["nbody"]), f["body_iquat"]))
    mass = f["body_mass"]
    arm = reference.xipos - reference.subtree_com[f["body_rootid"]]
    cross = _cross_product_matrix(arm)
    inertia = np.zeros((f["nbody"], 6, 6))
    inertia[:, :3, :3] = np.einsum("nij,nj,nkj->nik", R, f["body_inertia"], R)
    inertia[:, :3, :3] -= mass[:, None, None] * (cross @ cross)
    inertia[:, :3, 3:] = mass[:, None, None] * cross
    inertia[:, 3:, :3] = -mass[:, None, None] * cross
    inertia[:, 3:, 3:] = mass[:, None, None] * np.eye(3)
    return inertia


def _cross_product_matrix(v: np.ndarray) -> np.ndarray:
    """Return the matrices of the cross product with v, (n, 3) -> (n, 3, 3)."""
    out = np.zeros((len(v), 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return out - np.swapaxes(out, 1, 2)
