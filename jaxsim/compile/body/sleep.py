"""Compile sleep policies: the kinematic trees that may sleep, `tree_sleep_policy`.

By default a tree may sleep unless an actuator can move it, a tendon couples it to more than one
other tree, or to one other with a spring or damper, or it belongs to a flex that nothing holds in
shape: no elasticity, no equality of the flex, no passive contacts (MuJoCo's XML reference,
body/sleep). The root body of a tree can override this.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.enums import EqType, SleepPolicy, TrnType, WrapType
from jaxsim.model.flex.kinds import asks_passive

_POLICIES = {
    "never": SleepPolicy.NEVER,
    "allowed": SleepPolicy.ALLOWED,
    "init": SleepPolicy.INIT,
}
_TENDON_FORCE_FIELDS = (
    "tendon_stiffness",
    "tendon_stiffnesspoly",
    "tendon_damping",
    "tendon_dampingpoly",
)
_JOINTS = (TrnType.JOINT, TrnType.JOINTINPARENT)
_SITES = (TrnType.SITE, TrnType.SLIDERCRANK)


@declare_pass(
    needs="bodies geoms joints sites tree tendons actuators flexes equalities", gives="tree"
)
def sleep(c: Compilation) -> None:
    """Set the policy of each tree."""
    # Tendons with a spring or damper couple trees; over more than two trees any tendon does.
    f = c.fields
    awake = np.zeros(f["ntree"], bool)
    tied = np.full(f["ntree"], -1)  # the tendon that prevents each tree from sleeping
    tendons = [_tendon_trees(f, tendon) for tendon in range(f["ntendon"])]
    for tendon, trees in enumerate(tendons):
        pulls = any(np.any(f[name][tendon]) for name in _TENDON_FORCE_FIELDS)
        if len(trees) > 2 or (len(trees) == 2 and pulls):
            awake[trees], tied[trees] = True, tendon
    # Trees that an actuator can move stay awake.
    for actuator in range(f["nactuator"]):
        awake[_actuator_trees(f, actuator, tendons)] = True
    # Trees of a flex stay awake unless internal forces or springs of contacts couple its vertices.
    for flex in c.flexes:
        # MuJoCo checks the stiffness of a rod, which an interpolated rod does not have.
        resists = flex.elastic and (flex.dim > 1 or flex.is_rod)
        if not (resists or _keeps_shape(f, flex.id) or _has_passive_contacts(f, flex.id)):
            awake[_moving_trees(f, flex.bodies)] = True
    policy = np.where(awake, SleepPolicy.AUTO_NEVER, SleepPolicy.AUTO_ALLOWED).astype(np.int32)
    # The root body of a tree can override its policy.
    for body in c.bodies[1:]:
        keyword = body.element.get("sleep")
        if keyword in _POLICIES:
            tree = f["body_treeid"][body.id]
            if tree < 0 or f["tree_bodyadr"][tree] != body.id:
                c.fault(
                    body.element,
                    "sleep is for a moving body that is the root of its tree; move it to that body",
                )
                continue
            policy[tree] = _POLICIES[keyword]
            if keyword != "never" and tied[tree] >= 0:
                name = c.names["tendon"][tied[tree]] or str(tied[tree])
                c.fault(
                    body.element,
                    f"sleep='{keyword}', but tendon '{name}' ties it to other trees, more than two "
                    "or with a spring or damper; remove sleep",
                )
    f["tree_sleep_policy"] = policy


def _keeps_shape(f: dict, flex: int) -> bool:
    """Return whether a constraint maintains the shape of a flex."""
    kinds = np.isin(f["eq_type"], (EqType.FLEX, EqType.FLEXSTRAIN))
    return bool(np.any(kinds & (f["eq_obj1id"] == flex)))


def _has_passive_contacts(f: dict, flex: int) -> bool:
    """Return whether contacts of the flex are springs (`passive`), whose implicit stiffness couples
    all its vertices in one step."""
    return bool(asks_passive(*(f[f"flex_{what}"][flex] for what in ("passive", "dim", "rigid"))))


def _tendon_trees(f: dict, tendon: int) -> np.ndarray:
    """Return the trees along the path of a tendon."""
    start = f["tendon_adr"][tendon]
    path = np.arange(start, start + f["tendon_num"][tendon])
    bodies = []
    for owner, kinds in (
        ("jnt_bodyid", (WrapType.JOINT,)),
        ("site_bodyid", (WrapType.SITE,)),
        ("geom_bodyid", (WrapType.SPHERE, WrapType.CYLINDER)),
    ):
        bodies.append(f[owner][f["wrap_objid"][path[np.isin(f["wrap_type"][path], kinds)]]])
    return _moving_trees(f, np.concatenate(bodies))


def _actuator_trees(f: dict, actuator: int, tendons: list[np.ndarray]) -> np.ndarray:
    """Return the trees that an actuator acts on."""
    kind, ids = f["actuator_trntype"][actuator], f["actuator_trnid"][actuator]
    if kind == TrnType.TENDON:
        return tendons[ids[0]]
    if kind == TrnType.SO3:  # of a site with a reference site, or of a ball joint
        kind = TrnType.SITE if ids[1] >= 0 else TrnType.JOINT
    ids = ids[ids >= 0]
    if kind in _JOINTS:
        return _moving_trees(f, f["jnt_bodyid"][ids[:1]])
    if kind in _SITES:
        return _moving_trees(f, f["site_bodyid"][ids])
    return _moving_trees(f, ids[:1])


def _moving_trees(f: dict, bodies: np.ndarray) -> np.ndarray:
    trees = np.unique(f["body_treeid"][bodies])
    return trees[trees >= 0]
