"""What of flexes is not simulated, named."""

import numpy as np

from jaxsim.enums import EnableBit, IntegratorType, JointType, SolverType
from jaxsim.model.model import Model
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
    elastic = m.flex_stiffnessadr[f] >= 0 or m.flex_bendingadr[f] >= 0
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
    """What keeps a flex with contacts from being simulated, or ""."""
    own, other = int(m.flex_contype[f]), int(m.flex_conaffinity[f])
    remedy = "contacts of flexes are not supported; give it contype='0' and conaffinity='0'"
    for g in range(m.ngeom):
        if own & int(m.geom_conaffinity[g]) or int(m.geom_contype[g]) & other:
            return f"it may touch {named(m, 'geom', g)}, and {remedy}"
    for e in range(m.nflex):
        if e != f and (own & int(m.flex_conaffinity[e]) or int(m.flex_contype[e]) & other):
            return f"it may touch {named(m, 'flex', e)}, and {remedy}"
    if own & other and m.flex_selfcollide[f] and not m.flex_rigid[f]:
        return f"it may touch itself, and {remedy} or selfcollide='none'"
    return ""
