"""Compute mass and inertia of bodies, from `<inertial>` or the geoms: `body_ipos` to
`body_inertia`.

The inertial frame of a body has its origin at the center of mass and its axes along the principal
axes of inertia. A body with one geom takes the geom's frame unchanged; with several, the total
tensor is diagonalized, largest moment first. The last digits decide the axes of equal moments, so
terms are added in MuJoCo's order.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.mesh.triangles import sum_in_order
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import pose_of, written_pose
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.compile.geometry.principal import principal_axes
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL, GeomType
from jaxsim.math.quaternion import quat_to_matrix
from jaxsim.spec import Body, SpecElement

_MIN_GEOM_MASS = 1e-14  # geoms of this mass or less [kg] count as massless
_INERTIA_ROUNDING = 1e-14  # rounding tolerance of a zero moment of inertia (MuJoCo's mjEPS)
_I, _J = np.array([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]).T


@declare_pass(needs="read_settings bodies geoms", gives="body")
def masses(c: Compilation) -> None:
    """Add `body_mass` [kg], `body_inertia` [kg m^2], `body_ipos` [m], `body_iquat`."""
    n = len(c.bodies)
    mass, inertia = np.zeros(n), np.zeros((n, 3))
    poses = [identity_pose() for _ in c.bodies]
    for body in c.bodies:
        own = inertia_of(c, body) if body.id or body.inertial else None
        if own is not None:  # the world of a URDF model may have an inertia, without effect
            own = apply_inertia_bounds(c, body, own) if body.id else own
            mass[body.id], inertia[body.id], poses[body.id] = own
    total = mass.sum()
    if c.settings.settotalmass > 0 and total > 0:
        scale = c.settings.settotalmass / max(total, MINVAL)
        mass, inertia = mass * scale, inertia * scale
    c.fields.update(
        body_mass=mass,
        body_inertia=inertia,
        body_ipos=np.array([pose.pos for pose in poses]),
        body_iquat=np.array([pose.quat for pose in poses]),
        body_matter=tuple(_inferred_inertia_data(c, body) for body in c.bodies),
    )


def _inferred_inertia_data(c: Compilation, body: Body) -> tuple:
    """Return the data from which the inertia of a body was inferred, for `set_inertia`; () if it
    was not.

    Lower bounds of mass and moments, and of each geom with mass: its id, mass if it was written,
    density, whether it is a shell, and for a mesh its volume and the moments of a unit mass.
    """
    settings, f = c.settings_of(body.element), c.fields
    rule = settings.inertiafromgeom if body.id else "false"
    inferred = rule == "true" or (rule == "auto" and body.inertial is None)
    if not inferred or settings.balanceinertia or c.settings.settotalmass > 0:
        return ()
    rows = []
    for i in _massive_geoms(c, body):
        element, mass = c.elements["geom"][i], float(c.geom_mass[i])
        written, density = element.get("mass"), float(element.get("density"))
        written = None if written is None or np.isnan(written) else float(written)
        shell, content, unit = element.get("shellinertia") == "true", 0.0, ()
        if f["geom_type"][i] in (GeomType.MESH, GeomType.SDF):
            content = mass / density if written is None else 0.0
            unit = tuple((c.geom_inertia[i] / mass).tolist())
        rows.append((int(i), written, density, shell, content, unit))
    return (settings.boundmass, settings.boundinertia, tuple(rows)) if rows else ()


_BodyInertia = tuple[float, np.ndarray, FramePose]


def apply_inertia_bounds(c: Compilation, body: Body, own: _BodyInertia) -> _BodyInertia:
    """Return mass and moments after the bounds of `<compiler>`, and balanced if requested."""
    mass, moments, pose = own
    settings = c.settings_of(body.element)
    moments = np.maximum(moments, settings.boundinertia)
    return max(mass, settings.boundmass), _balance_moments(c, body, moments), pose


def inertia_of(c: Compilation, body: Body) -> _BodyInertia:
    """Return the mass, principal moments and inertial frame of a body, by the rules of
    `inertiafromgeom`."""
    rule = c.settings_of(body.element).inertiafromgeom if body.id else "false"
    if rule == "true" or (rule == "auto" and body.inertial is None):
        inferred = _sum_geom_inertias(c, body)
        if inferred is not None:
            return inferred
    if body.inertial is not None:
        return _read_inertial(c, body.inertial)
    # Any frame would do without mass; MuJoCo takes the pose of the body itself.
    return 0.0, np.zeros(3), written_pose(c, body.element)


def _read_inertial(c: Compilation, element: SpecElement) -> _BodyInertia:
    pose = pose_of(c, element)
    mass = float(element.get("mass"))
    full, diagonal = element.get("fullinertia"), element.get("diaginertia")
    if full is None:
        return mass, np.zeros(3) if diagonal is None else np.array(diagonal, float), pose
    if element.own("diaginertia") is not None:
        c.fault(element, "both diaginertia and fullinertia are given; remove one of them")
    if not np.all(np.isfinite(full)):
        c.fault(element, f"fullinertia='{mjcf_numbers(full)}' must be finite numbers")
        return mass, np.zeros(3), pose
    xx, yy, zz, xy, xz, yz = full
    moments, quat = principal_axes(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    # the bounds repair moments that are zero up to rounding
    bound = c.settings_of(element).boundinertia
    least = -_INERTIA_ROUNDING * max(1.0, moments[0]) if bound > 0 else _INERTIA_ROUNDING
    if not moments[2] >= least:
        given = mjcf_numbers(moments)
        c.fault(
            element, f"fullinertia must be positive definite; its principal moments are '{given}'"
        )
    return mass, moments, pose.apply(FramePose(np.zeros(3), quat))


def _sum_geom_inertias(c: Compilation, body: Body) -> _BodyInertia | None:
    """Return the total inertia of a body's geoms; None if no geom of the selected groups has
    mass."""
    f, ids = c.fields, _geoms_in_groups(c, body)
    for i in ids[c.geom_mass[ids] < 0]:
        c.fault(c.elements["geom"][i], "mass and density must not be negative")
    ids = _massive_geoms(c, body)
    if len(ids) == 0:
        return None
    mass, inertia = c.geom_mass[ids], c.geom_inertia[ids]
    pos, quat = f["geom_pos"][ids], f["geom_quat"][ids]
    if len(ids) == 1:
        return float(mass[0]), inertia[0], FramePose(pos[0].copy(), quat[0].copy())

    total = sum_in_order(mass)
    com = sum_in_order(mass[:, None] * pos) / total
    parts = [_rotate_tensors(inertia, quat), _point_mass_tensors(mass, pos - com)]
    xx, yy, zz, xy, xz, yz = sum_in_order(np.stack(parts, axis=1).reshape(-1, 6))
    moments, axes = principal_axes(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return float(total), moments, FramePose(com, axes)


def _geoms_in_groups(c: Compilation, body: Body) -> np.ndarray:
    """Return the ids of the body's geoms in the groups used for its inertia."""
    f = c.fields
    first, last = c.settings_of(body.element).inertiagrouprange
    start, count = f["body_geomadr"][body.id], f["body_geomnum"][body.id]
    ids = np.arange(start, start + count) if count else np.zeros(0, int)
    return ids[(f["geom_group"][ids] >= first) & (f["geom_group"][ids] <= last)]


def _massive_geoms(c: Compilation, body: Body) -> np.ndarray:
    """Return the ids of those geoms that have mass."""
    ids = _geoms_in_groups(c, body)
    return ids[c.geom_mass[ids] > _MIN_GEOM_MASS]


def _rotate_tensors(inertia: np.ndarray, quat: np.ndarray) -> np.ndarray:
    """Return the components xx, yy, zz, xy, xz, yz of rotated tensors R diag(inertia) R', (n,
    6)."""
    R = quat_to_matrix(quat)
    terms = R[:, _I] * (R[:, _J] * inertia[:, None])
    return terms[..., 0] + terms[..., 1] + terms[..., 2]


def _point_mass_tensors(mass: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Return the tensor components of point masses: mass (arm' arm - arm arm'), (n, 6)."""
    x, y, z = arm.T
    own = mass * (y * y + z * z), mass * (x * x + z * z), mass * (x * x + y * y)
    return np.stack([*own, -mass * x * y, -mass * x * z, -mass * y * z], axis=1)


def _balance_moments(c: Compilation, body: Body, inertia: np.ndarray) -> np.ndarray:
    """Return moments that satisfy A + B >= C; invalid ones are averaged if requested, else
    reported."""
    with np.errstate(invalid="ignore"):  # comparisons of infinite moments are false
        if not np.any(inertia.sum() - 2 * inertia < -MINVAL):
            return inertia
    if c.settings_of(body.element).balanceinertia and np.all(np.isfinite(inertia)):
        return np.full(3, inertia.mean())
    c.fault(
        body.inertial or body.element,
        f"principal moments '{mjcf_numbers(inertia)}' are physically impossible: one exceeds the "
        "sum of "
        "the others; correct them, or set <compiler balanceinertia='true'/>",
    )
    return inertia
