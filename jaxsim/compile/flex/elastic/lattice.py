"""Stiffness matrices of interpolated solids: `flex_stiffness`, one matrix for each cell.

Linear elasticity of an isotropic solid, with shape functions N_a that are products of Lagrange
polynomials (any text on finite elements):

    K[a i, b j] = - integral of  lam d_i N_a d_j N_b + mu d_j N_a d_i N_b
                                 + mu delta_ij grad N_a . grad N_b

over the part of the cell that the flex fills. The integrand is a polynomial of twice the order
along each axis, so its values at as many Gauss points determine it; the weights are the integrals
of the Lagrange polynomials of these points.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.compile.flex.filling import add_void_density, filling
from jaxsim.compile.flex.flex import Flex


def lattice_stiffness(f: Flex, mu: float, lam: float) -> np.ndarray:
    """Return the stiffness matrices of all cells, concatenated; zeros for empty cells.

    Args:
      f: an interpolated flex.
      mu, lam: Lame parameters of the solid [Pa].

    Returns:
      The matrices (3 nlocal, 3 nlocal) of the nodes of each cell, as one vector [N/m].
    """
    # Gauss points and weights on [0, 1], enough for a polynomial of twice the order.
    box = f.node_place.min(axis=0), f.node_place.max(axis=0)
    n = 2 * f.order + 1
    node, weight = np.polynomial.legendre.leggauss(n)
    node, weight = 0.5 * (node + 1), 0.5 * weight
    full = np.einsum("i,j,k->ijk", weight, weight, weight).reshape(1, -1)
    # Weights of the points of each cell: integrals over the part that the flex fills.
    if f.dim == 1:  # a rod fills its cells
        content, filled = full, np.ones(int(np.prod(f.cellcount)), bool)
    else:
        points = LatticePoints(f.dim, f.rest_position, f.elem)
        content, filled = filling(
            points, box, f.cellcount, f.order, lambda t: lagrange(node, t)[0], 2 * f.order
        )
    # Sum of the weighted integrands; an empty cell has weight 0.
    size = (box[1] - box[0]) / f.cellcount
    weights = np.where(filled[:, None], add_void_density(content, full), 0.0) * np.prod(size)
    form = _forms(node, f.order, size, mu, lam)
    return -(weights @ form.reshape(len(form), -1)).ravel()


def _forms(node: np.ndarray, order: int, size: np.ndarray, mu: float, lam: float) -> np.ndarray:
    """Return the integrand of K at each Gauss point, (npoint, 3 nlocal, 3 nlocal).

    Args:
      node: Gauss points along an axis, (n,).
      order: order of the shape functions.
      size: edges of a cell, (3,) [m].
      mu, lam: Lame parameters [Pa].
    """
    # Shape functions and their gradients are products over the axes.
    N, D = lagrange(np.linspace(0.0, 1.0, order + 1), node)

    def product(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.einsum("pi,qj,rk->pqrijk", x, y, z).reshape(len(node) ** 3, -1)

    grad = np.stack([product(D, N, N), product(N, D, N), product(N, N, D)], axis=-1) / size
    # The three terms of the integrand.
    form = lam * np.einsum("qai,qbj->qaibj", grad, grad)
    form += mu * np.einsum("qaj,qbi->qaibj", grad, grad)
    dot = mu * np.einsum("qak,qbk->qab", grad, grad)
    form += dot[:, :, None, :, None] * np.eye(3)[:, None, :]
    return form.reshape(len(grad), 3 * grad.shape[1], -1)


def lagrange(node: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Lagrange polynomials of some nodes, and their derivatives, (..., nnode) each.

    Args:
      node: nodes, (nnode,).
      t: where they are evaluated, (...).
    """
    # Polynomial i is the product of (t - node_j) / (node_i - node_j) over j != i.
    gap = node[:, None] - node
    np.fill_diagonal(gap, 1.0)
    factor = (np.asarray(t)[..., None, None] - node) / gap  # [..., i, j]
    k = len(node)
    own = np.eye(k, dtype=bool)
    value = np.where(own, 1.0, factor).prod(axis=-1)
    # Product rule: one term for each factor, replaced by its derivative.
    slope = np.zeros_like(value)
    for j in range(k):
        rest = np.where(own | (np.arange(k) == j), 1.0, factor).prod(axis=-1)
        slope += np.where(np.arange(k) == j, 0.0, rest / gap[:, j])
    return value, slope
