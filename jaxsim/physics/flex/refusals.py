"""What of flexes is not simulated, named."""

import numpy as np

from jaxsim.enums import EnableBit, GeomType, IntegratorType, JointType, SolverType
from jaxsim.model.model import Model
from jaxsim.model.switch.clashes import STRAIN
from jaxsim.physics.collision.flex.pairs import NEVER
from jaxsim.physics.discrete import is_discrete
from jaxsim.physics.refusal import Refusal, named, refuse

VELOCITY = (IntegratorType.IMPLICIT, IntegratorType.IMPLICITFAST)


def refusals(m: Model) -> list[Refusal]:
    """Flexes whose motion is not simulated."""
    return [refuse(m, "flex", f, what) for f in range(m.nflex) if (what := _lack(m, f))]


def contact_refusals(m: Model) -> list[Refusal]:
    """Flexes that may touch something."""
    return [refuse(m, "flex", f, what) for f in range(m.nflex) if (what := _touches(m, f))]


def _lack(m: Model, f: int) -> str:
    if m.flex_rigid[f]:
        return ""
    stretches = m.flex_stiffnessadr[f] >= 0 and m.flex_edgeequality[f] != STRAIN
    elastic = stretches or m.flex_bendingadr[f] >= 0
    if elastic and m.opt.integrator in VELOCITY:
        name = IntegratorType(m.opt.integrator).name.lower()
        return (
            f"elasticity cannot be used with the integrator '{name}', as in MuJoCo; use "
            "'discrete', 'Euler' or 'RK4'"
        )
    if m.opt.enableflags & EnableBit.IPC and m.flex_dim[f] == 2 and _rides(m, f):
        return (
            "under the flag ipc its bodies may move by slides of their own only, and what carries "
            "them not at all; attach it to what is fixed, or remove ipc='enable'"
        )
    if is_discrete(m) and (what := _discrete_lack(m, f, elastic)):
        return what
    return _misplaced(m, f)


def _rides(m: Model, f: int) -> bool:
    """Whether a flex is carried by what moves; MuJoCo takes some that slides may carry."""
    body = m.flex_vertbodyid[m.flex_vertadr[f] :][: m.flex_vertnum[f]]
    body = np.unique(body[body >= 0])
    own = np.isin(m.jnt_bodyid, body) & (m.jnt_type != JointType.SLIDE)
    return bool(own.any() or (m.body_treeid[m.body_parentid[body]] >= 0).any())


def _discrete_lack(m: Model, f: int, elastic: bool) -> str:
    """What MuJoCo refuses too."""
    if m.flex_edgestiffness[f] or m.flex_edgedamping[f]:
        return (
            "edge stiffness and damping cannot be used with the integrator 'discrete', as in "
            "MuJoCo; use elasticity, or edge equality='true'"
        )
    if not elastic:
        return ""
    if m.opt.solver == SolverType.PGS:
        return (
            "elasticity cannot be used with the integrator 'discrete' and solver='PGS', as in "
            "MuJoCo; use 'Newton' or 'CG'"
        )
    if m.opt.noslip_iterations:
        return (
            "elasticity cannot be used with the integrator 'discrete' and noslip_iterations, as "
            "in MuJoCo; set them to 0"
        )
    return ""


def _misplaced(m: Model, f: int) -> str:
    """MuJoCo takes a joint of a body with a node at its origin for three slides."""
    if not m.flex_interp[f]:
        return ""
    node = m.flex_nodeadr[f] + np.arange(m.flex_nodenum[f])
    body = m.flex_nodebodyid[node]
    place = np.asarray(m.flex_node).reshape(-1, 3)[node]
    odd = (m.body_dofnum[body] > 0) & ~np.isin(body, m.jnt_bodyid[_slides(m)])
    odd &= (place == 0).all(axis=1)
    if not odd.any():
        return ""
    where = named(m, "body", int(body[odd][0]))
    return f"a node at the origin of {where} needs that body to have three slide joints; move it"


def _slides(m: Model) -> np.ndarray:
    """Joints of the bodies that have three slides and nothing else."""
    slides = np.bincount(m.jnt_bodyid[m.jnt_type == JointType.SLIDE], minlength=m.nbody)
    good = (slides == 3) & (m.body_dofnum == 3)
    return np.flatnonzero(good[m.jnt_bodyid])


def _touches(m: Model, f: int) -> str:
    """What of the contacts of a flex is not simulated, or ""."""
    if not m.flex_touches[f]:
        return ""
    remedy = "keep them apart with contype and conaffinity"
    if m.flex_passive[f]:
        return "passive contacts are not supported; remove passive='true', or " + remedy
    if m.opt.enableflags & EnableBit.IPC and (m.flex_dim == 2).any():
        return (
            "contacts under the flag ipc are not supported in a model with shells; remove "
            "ipc='enable', or " + remedy
        )
    own, other = int(m.flex_contype[f]), int(m.flex_conaffinity[f])
    for g in range(m.ngeom):
        kind = GeomType(m.geom_type[g])
        meets = own & int(m.geom_conaffinity[g]) or int(m.geom_contype[g]) & other
        if meets and kind in NEVER and m.flex_dim[f] == 2:
            name = kind.name.lower()
            return f"it may touch {named(m, 'geom', g)}, and a flex and a {name} cannot; {remedy}"
    return ""
