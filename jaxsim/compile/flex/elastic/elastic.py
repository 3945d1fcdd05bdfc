"""Elasticity of flexes: `flex_stiffness`, `flex_bending`, and plasticity.

A triangle or tetrahedron of Saint Venant-Kirchhoff material with edges E_i at rest has the strain

    eps = 1/2 sum_i s_i T_i,   s_i = |e_i|^2 - |E_i|^2,   E_j . T_i E_j = delta_ij

so its energy is a quadratic form of s / 2, whose coefficients are stored (upper triangle, row by
row). A shell bends about its edges, as two hinged triangles each; the quadratic form of a flat
hinge is that of Bergou et al., "A quadratic bending model for inextensible surfaces", 2006, with
the rigidity of a plate, D = E t^3 / (12 (1 - nu^2)). The form of a hinge that is folded at rest by
an angle a has a factor cos(a), and a further coefficient for the term with sin(a).

An interpolated flex has a matrix for each cell (lattice.py) or wall (walls.py) instead. If a
constraint limits its strain, the modes of this matrix are stored instead (modes.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.elastic.lattice import lattice_stiffness
from jaxsim.compile.flex.elastic.modes import packed_modes
from jaxsim.compile.flex.elastic.rods import rod_bending, twisted_chain
from jaxsim.compile.flex.elastic.walls import (
    Wall,
    membrane_stiffness,
    plate_rigidity,
    wall_bending,
    walls,
    warp_mode,
)
from jaxsim.compile.flex.flex import Flex
from jaxsim.compile.flex.rules import yield_strains

# slots of an element: 3 or 6 edges give 6 or 21 coefficients, and MuJoCo allocates more
_STIFFNESS_SIZES = {2: 21, 3: 24}
_THICKNESS = 6  # slot of the thickness of a shell that yields in bending, in the first element
_PER_EDGE = 17  # slots of an edge that bends: (4, 4), and one for a reference that is not flat

_BENDING, _STRETCHING = 1, 2  # bits of flex_plasticmode

# Young's modulus [Pa] and Poisson's ratio of the modes of a strain constraint.
_STRAIN_MATERIAL = (10.0, 0.3)
_STIFFNESS_ROUNDING = 1e-12


def elastic_fields(c: Compilation, flexes: Sequence[Flex]) -> dict[str, np.ndarray | int]:
    """Return the elastic and plastic fields of all flexes, by name."""
    stiffness = [_stiffness(c, f) for f in flexes]
    bending = [rod_bending(c, f) if f.is_rod else _bending(f) for f in flexes]
    mode = np.array([_plastic_mode(f) for f in flexes], np.int32)
    size = [_plastic_size(c, f, m) for f, m in zip(flexes, mode, strict=True)]
    start = c.fields["nplastic"]
    c.fields["nplastic"] = start + sum(size)
    return {
        "flex_stiffness": np.concatenate([*stiffness, np.zeros(0)]),
        "flex_stiffnessadr": _part_addresses([len(s) for s in stiffness]),
        "nflexstiffness": sum(len(s) for s in stiffness),
        "flex_bending": np.concatenate([*bending, np.zeros(0)]),
        "flex_bendingadr": _part_addresses([len(b) for b in bending]),
        "nflexbending": sum(len(b) for b in bending),
        "flex_yield": np.array([yield_strains(f) for f in flexes]).reshape(-1, 2),
        "flex_plasticmode": mode,
        "flex_plasticadr": _part_addresses(size, start),
    }


def _part_addresses(sizes: list[int], start: int = 0) -> np.ndarray:
    """Return the start addresses of concatenated parts; -1 for empty ones."""
    size = np.array(sizes, int)
    return np.where(size > 0, start + np.cumsum(size) - size, -1).astype(np.int32)


def _stiffness(c: Compilation, f: Flex) -> np.ndarray:
    """Return the stretching coefficients of each element, concatenated."""
    young = f.elasticity.get("young")
    if f.order and is_strained(c, f):
        return _strained_modes(f)
    if f.is_rod or f.rigid or young <= 0:
        return np.zeros(0)
    if f.order:
        idle = f.elasticity.get("elastic2d") == "bend"
        return (
            np.zeros(0)
            if idle
            else _interpolated_stiffness(f, young, f.elasticity.get("poisson")).ravel()
        )
    stiffness_size = _STIFFNESS_SIZES[f.dim]
    content, mu, lam = _material(f)
    numbers = np.zeros((len(f.elem), stiffness_size))
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


def is_strained(c: Compilation, f: Flex) -> bool:
    """Return whether a constraint limits the strain of the flex."""
    return bool(f.element.name) and any(
        e.tag == "flexstrain" and e.get("flex") == f.element.name
        for e in c.spec.section("equality")
    )


def _interpolated_stiffness(f: Flex, young: float, poisson: float) -> np.ndarray:
    """Return minus the stiffness of each cell, or of each wall, (n, 3 nlocal, 3 nlocal)."""
    mu = young / (2 * (1 + poisson))
    if _is_solid(f):
        lam = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        n = 3 * (f.order + 1) ** 3
        return lattice_stiffness(f, mu, lam).reshape(-1, n, n)
    lam = young * poisson / (1 - poisson**2)
    return membrane_stiffness(f, mu, lam, f.elasticity.get("thickness"))


def _strained_modes(f: Flex) -> np.ndarray:
    """Return the modes of each cell or wall, of the material that MuJoCo assumes."""
    young, poisson, thickness = *_STRAIN_MATERIAL, f.elasticity.get("thickness")
    found: list[tuple[Wall | None, np.ndarray, np.ndarray]] = []
    numbers = []
    matrices = _interpolated_stiffness(f, young, poisson)
    elements = [None] * len(matrices) if _is_solid(f) else walls(f.cellcount)
    for K, wall in zip(matrices, elements, strict=True):
        alike = (
            modes
            for other, like, modes in found
            if _same_stiffness(K, like) and _parallel(wall, other)
        )
        modes = next(alike, None)
        if modes is None:
            twist = None if wall is None else warp_mode(f, wall, young, poisson, thickness)
            modes = packed_modes(K, twist)
            found.append((wall, K, modes))
        numbers.append(modes)
    return np.concatenate([*numbers, np.zeros(0)])


def _same_stiffness(K: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two cells have the same stiffness, up to rounding."""
    return bool(np.abs(K - other).max() <= _STIFFNESS_ROUNDING * np.abs(K).max())


def _parallel(wall: Wall | None, other: Wall | None) -> bool:
    return wall is None or other is None or wall.axis == other.axis


def _material(f: Flex) -> tuple[np.ndarray, float, float]:
    """Return element volumes at rest [m^3] and Lame's parameters [Pa]; plane stress in a shell."""
    E, nu = f.elasticity.get("young"), f.elasticity.get("poisson")
    side = f.rest_position[f.elem[:, 1:]] - f.rest_position[f.elem[:, :1]]
    mu = E / (2 * (1 + nu))
    if f.dim == 3:
        lam = E * nu / ((1 + nu) * (1 - 2 * nu))
        return np.abs(np.linalg.det(side)) / 6, mu, lam
    area = 0.5 * np.linalg.norm(np.cross(side[:, 0], side[:, 1]), axis=1)
    return area * f.elasticity.get("thickness"), mu, E * nu / (1 - nu**2)


def _dual_tensors(f: Flex) -> np.ndarray:
    """Return T_i of each edge of each element, in its own frame, (nelem, nedge, dim, dim)."""
    edge = f.topology.edge[f.topology.elemedge]
    E = f.rest_position[edge[:, :, 1]] - f.rest_position[edge[:, :, 0]]
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
    """Return two unit vectors that span each triangle, (nelem, 2, 3)."""
    side = f.rest_position[f.elem[:, 1:]] - f.rest_position[f.elem[:, :1]]
    first = side[:, 0] / np.linalg.norm(side[:, 0], axis=1, keepdims=True)
    second = side[:, 1] - np.sum(side[:, 1] * first, axis=1, keepdims=True) * first
    return np.stack([first, second / np.linalg.norm(second, axis=1, keepdims=True)], axis=1)


def _bending(f: Flex) -> np.ndarray:
    """Return the bending coefficients of a shell: a quadratic form in four vertices per edge."""
    E, nu = f.elasticity.get("young"), f.elasticity.get("poisson")
    bends = f.elasticity.get("elastic2d") in ("bend", "both")
    if not bends or f.rigid or E <= 0:
        return np.zeros(0)
    if f.order:
        return wall_bending(f, E, nu, f.elasticity.get("thickness"))
    if f.dim != 2:
        return np.zeros(0)
    numbers = np.zeros((len(f.topology.edge), _PER_EDGE))
    inner = np.flatnonzero(f.topology.flap[:, 1] >= 0)
    hinge = f.rest_position[np.concatenate([f.topology.edge, f.topology.flap], axis=1)[inner]]
    rigidity = plate_rigidity(E, nu, f.elasticity.get("thickness"))
    x0, x1, x2, x3 = np.moveaxis(hinge, 1, 0)
    area = _area(x0, x1, x2) + _area(x0, x1, x3)
    near = _cot(x1 - x0, x2 - x0), _cot(x1 - x0, x3 - x0)
    far = _cot(x0 - x1, x2 - x1), _cot(x0 - x1, x3 - x1)
    k = np.stack([far[0] + far[1], near[0] + near[1], -near[0] - far[0], -near[1] - far[1]], axis=1)
    cosine, sine = _dihedral_cos_sin(x0, x1, x2, x3)
    scale = rigidity / area
    form = (scale * cosine)[:, None, None] * k[:, :, None] * k[:, None, :]
    numbers[inner, :16] = form.reshape(-1, 16)
    length = np.linalg.norm(x1 - x0, axis=1)
    numbers[inner, 16] = -scale * sine * k[:, 2] * k[:, 3] / length
    return numbers.ravel()


def _area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def _dihedral_cos_sin(x0, x1, x2, x3) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of the dihedral angle of two triangles with the edge (x0, x1)."""
    first, second = np.cross(x1 - x0, x2 - x0), np.cross(x3 - x0, x1 - x0)
    size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    along = (x1 - x0) / np.linalg.norm(x1 - x0, axis=1, keepdims=True)
    sine = np.sum(np.cross(second, first) * along, axis=1) / size
    return np.sum(first * second, axis=1) / size, sine


def _cot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the cotangent of the angle between two vectors."""
    return np.sum(u * v, axis=1) / np.linalg.norm(np.cross(u, v), axis=1)


def _plastic_mode(f: Flex) -> int:
    """Return the bits of the deformations that yield, of those that the flex resists."""
    stretch, bend = yield_strains(f)
    elastic2d = f.elasticity.get("elastic2d")
    if f.dim == 1 or f.rigid or f.elasticity.get("young") <= 0:
        return 0
    stretches = _is_solid(f) or elastic2d in ("stretch", "both")
    bends = f.dim == 2 and not f.order and elastic2d in ("bend", "both")
    mode = _STRETCHING if stretch > 0 and stretches else 0
    return mode | (_BENDING if bend > 0 and bends else 0)


def _is_solid(f: Flex) -> bool:
    """Return whether it resists stretching as a solid, also an interpolated surface."""
    return f.dim == 3 if not f.order else f.elasticity.get("elastic2d") == "none"


def _plastic_size(c: Compilation, f: Flex, mode: int) -> int:
    """Return the size of the plastic state, or of the frames that a rod with twist stores.

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
