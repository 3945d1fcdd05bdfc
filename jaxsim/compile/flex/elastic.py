"""Elasticity of flexes: `flex_stiffness`, `flex_bending`, and what yields.

A triangle or tetrahedron of Saint Venant-Kirchhoff material with edges E_i at rest has the strain

    eps = 1/2 sum_i s_i T_i,   s_i = |e_i|^2 - |E_i|^2,   E_j . T_i E_j = delta_ij

so that its energy is a quadratic form of s / 2, whose coefficients are stored (upper triangle, row
by row). A shell bends about its edges, as two hinged triangles each; the quadratic form of a flat
hinge is that of Bergou et al., "A quadratic bending model for inextensible surfaces", 2006, with
the rigidity of a plate, D = E t^3 / (12 (1 - nu^2)). The form of a hinge that is folded at rest by
an angle a has a factor cos(a), and a number for the part that goes with sin(a).

Missing, so that these have no stiffness until the physics of flexes needs it: the walls of
interpolated shells, and the modes of a strain constraint, which MuJoCo keeps in the same fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.lattice import lattice_stiffness
from jaxsim.compile.flex.rods import rod_bending, twisted_chain
from jaxsim.compile.flex.rules import yield_strains

if TYPE_CHECKING:
    from jaxsim.compile.flex.flexes import Flex

# Numbers for an element: 3 or 6 edges give 6 or 21, and there is room for more.
_ROOM = {2: 21, 3: 24}
_THICKNESS = 6  # where a shell that yields in bending keeps its thickness, in the first element
_PER_EDGE = 17  # numbers for an edge that bends: (4, 4), and one for a reference that is not flat

_BENDING, _STRETCHING = 1, 2  # bits of flex_plasticmode


def elastic_fields(c: Compilation, flexes: Sequence[Flex]) -> dict[str, np.ndarray | int]:
    """The elastic and plastic fields of all flexes, by name."""
    stiffness = [_stiffness(f) for f in flexes]
    bending = [rod_bending(c, f) if f.dim == 1 else _bending(f) for f in flexes]
    mode = np.array([_plastic_mode(f) for f in flexes], np.int32)
    size = [_plastic_size(c, f, m) for f, m in zip(flexes, mode, strict=True)]
    start = c.fields["nplastic"]
    c.fields["nplastic"] = start + sum(size)
    return {
        "flex_stiffness": np.concatenate([*stiffness, np.zeros(0)]),
        "flex_stiffnessadr": _addresses([len(s) for s in stiffness]),
        "nflexstiffness": sum(len(s) for s in stiffness),
        "flex_bending": np.concatenate([*bending, np.zeros(0)]),
        "flex_bendingadr": _addresses([len(b) for b in bending]),
        "nflexbending": sum(len(b) for b in bending),
        "flex_yield": np.array([yield_strains(f) for f in flexes]).reshape(-1, 2),
        "flex_plasticmode": mode,
        "flex_plasticadr": _addresses(size, start),
    }


def _addresses(sizes: list[int], start: int = 0) -> np.ndarray:
    """First places of parts laid end to end; -1 for empty ones."""
    size = np.array(sizes, int)
    return np.where(size > 0, start + np.cumsum(size) - size, -1).astype(np.int32)


def _stiffness(f: Flex) -> np.ndarray:
    """Stretching: coefficients of each element, one after the other."""
    young = f.elasticity.get("young")
    if f.dim == 1 or f.rigid or young <= 0:
        return np.zeros(0)
    if f.order and not _is_solid(f):
        return np.zeros(0)
    if f.order:
        _, mu, lam = _material(f, solid=True)
        return lattice_stiffness(f, mu, lam)
    room = _ROOM[f.dim]
    content, mu, lam = _material(f)
    numbers = np.zeros((len(f.elem), room))
    if _plastic_mode(f) & _BENDING:
        numbers[0, _THICKNESS] = f.elasticity.get("thickness")
    stretches = f.dim == 3 or f.elasticity.get("elastic2d") in ("stretch", "both")
    if not stretches:
        return numbers.ravel()
    T = _dual_tensors(f)
    trace = np.einsum("neii->ne", T)
    K = mu * np.einsum("neij,nfji->nef", T, T) + 0.5 * lam * trace[:, :, None] * trace[:, None]
    K *= content[:, None, None]
    rows, columns = np.triu_indices(K.shape[1])
    numbers[:, : len(rows)] = K[:, rows, columns]
    return numbers.ravel()


def _material(f: Flex, solid: bool = False) -> tuple[np.ndarray, float, float]:
    """Volume of each element at rest [m^3], and Lame's parameters [Pa]; plane stress in a shell."""
    E, nu = f.elasticity.get("young"), f.elasticity.get("poisson")
    side = f.place[f.elem[:, 1:]] - f.place[f.elem[:, :1]]
    mu = E / (2 * (1 + nu))
    lam = E * nu / ((1 + nu) * (1 - 2 * nu))
    if solid:
        return np.zeros(0), mu, lam
    if f.dim == 3:
        return np.abs(np.linalg.det(side)) / 6, mu, lam
    area = 0.5 * np.linalg.norm(np.cross(side[:, 0], side[:, 1]), axis=1)
    return area * f.elasticity.get("thickness"), mu, E * nu / (1 - nu**2)


def _dual_tensors(f: Flex) -> np.ndarray:
    """T_i of each edge of each element, in the element's own frame, (nelem, nedge, dim, dim)."""
    edge = f.topology.edge[f.topology.elemedge]
    E = f.place[edge[:, :, 1]] - f.place[edge[:, :, 0]]
    if f.dim == 2:
        E = np.einsum("ndk,nek->ned", _planes(f), E)
    # A symmetric tensor is a vector of its entries; E.T E is linear in it.
    i, j = np.triu_indices(f.dim)
    weight = np.where(i == j, 1.0, 2.0)
    inverse = np.linalg.inv(E[:, :, i] * E[:, :, j] * weight)
    T = np.zeros((len(E), E.shape[1], f.dim, f.dim))
    T[:, :, i, j] = np.swapaxes(inverse, 1, 2)
    T[:, :, j, i] = T[:, :, i, j]
    return T


def _planes(f: Flex) -> np.ndarray:
    """Two unit vectors that span each triangle, (nelem, 2, 3)."""
    side = f.place[f.elem[:, 1:]] - f.place[f.elem[:, :1]]
    first = side[:, 0] / np.linalg.norm(side[:, 0], axis=1, keepdims=True)
    second = side[:, 1] - np.sum(side[:, 1] * first, axis=1, keepdims=True) * first
    return np.stack([first, second / np.linalg.norm(second, axis=1, keepdims=True)], axis=1)


def _bending(f: Flex) -> np.ndarray:
    """Bending of a shell: a quadratic form of the four vertices around each edge."""
    E, nu = f.elasticity.get("young"), f.elasticity.get("poisson")
    bends = f.dim == 2 and f.elasticity.get("elastic2d") in ("bend", "both")
    if not bends or f.order or f.rigid or E <= 0:
        return np.zeros(0)
    numbers = np.zeros((len(f.topology.edge), _PER_EDGE))
    inner = np.flatnonzero(f.topology.flap[:, 1] >= 0)
    hinge = f.place[np.concatenate([f.topology.edge, f.topology.flap], axis=1)[inner]]
    rigidity = E * f.elasticity.get("thickness") ** 3 / (12 * (1 - nu**2))
    x0, x1, x2, x3 = np.moveaxis(hinge, 1, 0)
    area = _area(x0, x1, x2) + _area(x0, x1, x3)
    near = _cot(x1 - x0, x2 - x0), _cot(x1 - x0, x3 - x0)
    far = _cot(x0 - x1, x2 - x1), _cot(x0 - x1, x3 - x1)
    k = np.stack([far[0] + far[1], near[0] + near[1], -near[0] - far[0], -near[1] - far[1]], axis=1)
    cosine, sine = _fold(x0, x1, x2, x3)
    scale = rigidity / area
    form = (scale * cosine)[:, None, None] * k[:, :, None] * k[:, None, :]
    numbers[inner, :16] = form.reshape(-1, 16)
    length = np.linalg.norm(x1 - x0, axis=1)
    numbers[inner, 16] = -scale * sine * k[:, 2] * k[:, 3] / length
    return numbers.ravel()


def _area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def _fold(x0, x1, x2, x3) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of the angle by which two triangles with the edge (x0, x1) are folded."""
    first, second = np.cross(x1 - x0, x2 - x0), np.cross(x3 - x0, x1 - x0)
    size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    along = (x1 - x0) / np.linalg.norm(x1 - x0, axis=1, keepdims=True)
    sine = np.sum(np.cross(second, first) * along, axis=1) / size
    return np.sum(first * second, axis=1) / size, sine


def _cot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Cotangent of the angle between two vectors."""
    return np.sum(u * v, axis=1) / np.linalg.norm(np.cross(u, v), axis=1)


def _plastic_mode(f: Flex) -> int:
    """Which deformations yield, of those that the flex resists."""
    stretch, bend = yield_strains(f)
    elastic2d = f.elasticity.get("elastic2d")
    if f.dim == 1 or f.rigid or f.elasticity.get("young") <= 0:
        return 0
    stretches = _is_solid(f) or elastic2d in ("stretch", "both")
    bends = f.dim == 2 and not f.order and elastic2d in ("bend", "both")
    mode = _STRETCHING if stretch > 0 and stretches else 0
    return mode | (_BENDING if bend > 0 and bends else 0)


def _is_solid(f: Flex) -> bool:
    """Whether it resists stretching as a solid; an interpolated surface does so with its inside."""
    return f.dim == 3 if not f.order else f.elasticity.get("elastic2d") == "none"


def _plastic_size(c: Compilation, f: Flex, mode: int) -> int:
    """Numbers of plastic state, or of the frames that a rod with twist carries along.

    A rod of n edges has two vectors for each, and the twist at rest of each inner vertex.
    """
    if f.dim == 1 and f.elastic:
        chain, _ = twisted_chain(c, f)
        return 0 if chain is None else 6 * (len(chain) - 1) + len(chain) - 2
    size = 0
    if mode & _STRETCHING:
        nx, ny, nz = f.cellcount
        faces = 2 * (ny * nz + nx * nz + nx * ny)
        parts = (nx * ny * nz if _is_solid(f) else faces) if f.order else len(f.elem)
        size += int(parts) * (6 if _is_solid(f) else 3)
    return size + (len(f.topology.edge) if mode & _BENDING else 0)
