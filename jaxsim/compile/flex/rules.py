"""Checks of flexes: requirements of MuJoCo, and conflicts with the options of the model."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.cells import ORDERS, active_nodes
from jaxsim.compile.flex.flex import Flex
from jaxsim.enums import IntegratorType, JointType
from jaxsim.model.flex.kinds import asks_passive
from jaxsim.spec import SpecElement

_CONDIMS = (1, 3, 4, 6)
_IMPLICIT = (IntegratorType.IMPLICIT, IntegratorType.IMPLICITFAST)


def check_numbers(c: Compilation, e: SpecElement) -> None:
    """Check that the lists of a flex have valid lengths."""
    dim = e.get("dim")
    if dim not in (1, 2, 3):
        c.fault(e, f"dim='{dim}' must be 1 (rod), 2 (shell) or 3 (solid)")
        return
    for attr, width in (("vertex", 3), ("nodecoord", 3), ("texcoord", 2), ("element", dim + 1)):
        given = e.get(attr)
        if given is not None and len(given) % width:
            c.fault(e, f"{attr} needs {width} numbers each, got {len(given)} in all")
    bodies, vertices = len((e.get("body") or "").split()), _rows(e, "vertex", 3)
    if not bodies and not e.get("node"):
        c.fault(e, "it needs body, the bodies of its vertices")
    if vertices is not None and bodies not in (1, vertices):
        c.fault(e, f"body needs 1 name or one for each of {vertices} vertices, got {bodies}")
    count = bodies if vertices is None else vertices
    if count < dim + 1:
        c.fault(e, f"it has {count} vertices, but an element needs {dim + 1}")
    _check_nodes(c, e)
    _check_texture(c, e, count)


def _rows(e: SpecElement, attr: str, width: int) -> int | None:
    given = e.get(attr)
    return None if given is None else len(given) // width


def _check_nodes(c: Compilation, e: SpecElement) -> None:
    nodes, order = len((e.get("node") or "").split()), ORDERS.get(e.get("dof"), 0)
    if nodes and not order:
        c.fault(e, "node needs dof='trilinear' or 'quadratic', the order of the interpolation")
    if not order:
        return
    cells = np.ones(3, int) if e.get("cellcount") is None else np.array(e.get("cellcount"), int)
    if np.any(cells < 1):
        c.fault(e, "cellcount must be at least 1 along each axis")
        return
    expected = int(np.prod(order * cells + 1))
    if nodes != expected:
        c.fault(e, f"dof='{e.get('dof')}' and cellcount need {expected} nodes, got {nodes}")


def _check_texture(c: Compilation, e: SpecElement, vertices: int) -> None:
    texcoord, corner = _rows(e, "texcoord", 2), e.get("elemtexcoord")
    if corner is None:
        if texcoord is not None and texcoord != vertices:
            c.fault(e, f"texcoord needs 2 numbers for each of {vertices} vertices")
        return
    if texcoord is None:
        c.fault(e, "elemtexcoord needs texcoord, which it refers to")
    elif len(corner) != len(e.get("element")):
        c.fault(e, f"elemtexcoord needs {len(e.get('element'))} numbers, got {len(corner)}")
    elif np.any((corner < 0) | (corner >= texcoord)):
        c.fault(e, f"elemtexcoord refers to more than the {texcoord} texture coordinates there are")


def check_elements(c: Compilation, e: SpecElement, elem: np.ndarray, nvert: int) -> bool:
    """Return whether the vertices of each element exist and are different; report errors."""
    if np.any((elem < 0) | (elem >= nvert)):
        c.fault(e, f"element refers to a vertex that is not there; there are {nvert}, from 0")
        return False
    ordered = np.sort(elem, axis=1)
    repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(repeated):
        c.fault(e, f"element {repeated[0]} has a vertex twice")
        return False
    return True


def check_flex_options(c: Compilation, flex: Flex) -> None:
    """Check that the material and the contacts are valid for this flex and this model."""
    e = flex.element
    _check_material(c, flex)
    if flex.edge.get("stiffness") > 0 and flex.dim != 1:
        c.fault(e, "stiffness of edges is for dim='1'; use <elasticity>")
    integrator = c.opt["integrator"]
    if flex.elastic and integrator in _IMPLICIT:
        c.fault(e, "elasticity needs integrator='discrete', or 'Euler' with a small timestep")
    if flex.edge.get("stiffness") > 0 and _has_equality(c, e):
        c.fault(e, "an equality holds its edges, as their stiffness does; remove one of them")
    springs = flex.edge.get("stiffness") > 0 or flex.edge.get("damping") > 0
    if springs and integrator == IntegratorType.DISCRETE:
        c.fault(e, "springs and dampers of edges do not go with integrator='discrete'")
    asks = asks_passive(flex.contact.get("passive") == "true", flex.dim, flex.rigid)
    if asks and integrator != IntegratorType.DISCRETE:
        c.fault(flex.contact, "passive contacts need integrator='discrete'")
    _check_joints(c, flex)


def _check_material(c: Compilation, flex: Flex) -> None:
    e, elasticity, dim = flex.element, flex.elasticity, flex.dim
    if elasticity.get("elastic2d") != "none":
        if elasticity.get("thickness") <= 0:
            c.fault(e, "elastic2d needs a positive thickness")
        elif dim != 2 and not flex.order:
            c.fault(e, "elastic2d is for dim='2'")
    stretch, bend = yield_strains(flex)
    if min(stretch, bend) < 0:
        c.fault(e, "yield must not be negative; 0 turns yielding off")
    elif dim == 1 and max(stretch, bend) > 0:
        c.fault(e, "a rod does not yield; yield is for dim 2 and 3")
    elif bend > 0 and (dim != 2 or flex.order):
        c.fault(e, "only a shell that is not interpolated yields in bending; give one number")
    young, poisson = elasticity.get("young"), elasticity.get("poisson")
    if young > 0 and not 0 <= poisson < 0.5:
        c.fault(elasticity, f"poisson='{poisson:g}' must be at least 0 and less than 0.5")
    if young > 0 and dim > 1 and elasticity.get("elastic2d") != "bend" and _has_equality(c, e):
        c.fault(e, "an equality holds its edges or strain, as young does; remove one of them")
    boxed = flex.is_rod and elasticity.get("section") == "box"
    if boxed and min(elasticity.get("sectionsize")) <= 0:
        c.fault(elasticity, "section='box' needs sectionsize, two positive half sides")
    if elasticity.get("shear") < 0:
        c.fault(e, "shear must not be negative; 0 takes it from young and poisson")


def _has_equality(c: Compilation, e: SpecElement) -> bool:
    """Return whether an equality, active or not, refers to this flex."""
    equalities = (
        constraint
        for constraint in c.spec.section("equality")
        if constraint.tag in ("flex", "flexstrain")
    )
    return bool(e.name) and any(constraint.get("flex") == e.name for constraint in equalities)


def yield_strains(flex: Flex) -> tuple[float, float]:
    """Return `flex_yield`: strains of stretching and bending; shells use one number for both."""
    given = np.atleast_1d(flex.elasticity.get("yield"))
    own = flex.elasticity.own("yield")
    if own is not None and np.size(own) == 1:
        shell = flex.dim == 2 and not flex.order
        return float(given[0]), float(given[0]) if shell else 0.0
    return float(given[0]), float(given[1])


def _check_hold(c: Compilation, flex: Flex, three: np.ndarray) -> None:
    """Report a flex whose parent body moves but holds none of its points.

    The bodies of such a flex are points that slide freely, have no geoms, and are all children of
    the same body. The nodes of empty cells are fixed, but hold nothing.
    """
    bodies = flex.bodies
    if flex.order and flex.elasticity.get("elastic2d") == "none" and not three[bodies].all():
        points = LatticePoints(flex.dim, flex.rest_position, flex.elem)
        nodes = active_nodes(points, flex.node_place, flex.cellcount, flex.order)
        bodies = np.unique(flex.nodebody[nodes])
    parent = c.fields["body_parentid"]
    above = {int(parent[body]) for body in bodies}
    if not (three & (c.fields["body_geomnum"] == 0))[bodies].all() or len(above) > 1:
        return
    while above:
        for body in sorted(above):
            if c.fields["body_jntnum"][body]:
                c.fault(
                    flex.element,
                    f"body '{c.names['body'][body]}' has joints, but no point of the flex is fixed "
                    "to it; pin one with <pin>, or remove the joints",
                )
                return
        above = {int(parent[body]) for body in above} - {0}


def _check_joints(c: Compilation, flex: Flex) -> None:
    """Report joints of its bodies that are not allowed."""
    f = c.fields
    if flex.rigid:
        return
    slides = f["jnt_type"] == JointType.SLIDE
    three = np.bincount(f["jnt_bodyid"][slides], minlength=f["nbody"]) == 3
    _check_hold(c, flex, three)
    # Bodies that are only points of the flex get their damping from it.
    points = flex.bodies[f["body_geomnum"][flex.bodies] == 0]
    damped = slides & (f["dof_damping"][f["jnt_dofadr"]] > 0)
    for body in np.intersect1d(points, f["jnt_bodyid"][damped])[:1]:
        c.fault(
            flex.element,
            f"body '{c.names['body'][body]}' has slide joints with damping; remove it, and use the "
            "damping of <elasticity> or <edge>",
        )
