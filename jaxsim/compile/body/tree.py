"""Derive quantities of the tree: roots, welds, kinematic trees, and the sparsity pattern of M.

Bodies are in depth-first order, so a parent always precedes its children, and one forward or
backward pass over the ids propagates a value down or up the tree.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.reference.pose import subtree_sum
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL, JointType, SameFrame, TrnType, WrapType
from jaxsim.math.quaternion import IDENTITY

_ZERO_TOLERANCE = 1e-14  # smaller components of an axis count as zero
_FRAME_TOLERANCE = 1e-6  # tolerance of equal frames and points


@declare_pass(needs="bodies geoms joints masses", gives="body dof tree")
def tree(c: Compilation) -> None:
    """Add roots, weld and tree ids, subtree masses, and the parents of dofs."""
    f = c.fields
    parent, dofnum, mocap = f["body_parentid"], f["body_dofnum"], f["body_mocapid"] >= 0
    n = f["nbody"]
    root, weld, treeid = np.zeros(n, np.int32), np.zeros(n, np.int32), np.full(n, -1, np.int32)
    last_dof = np.full(n, -1, np.int32)  # the last dof on the path from the root to a body
    ntree = 0
    for body in range(1, n):
        above = parent[body]
        root[body] = body if above == 0 else root[above]
        weld[body] = body if dofnum[body] or mocap[body] else weld[above]
        treeid[body], last_dof[body] = treeid[above], last_dof[above]
        if dofnum[body]:
            if treeid[above] < 0:
                treeid[body] = ntree
                ntree += 1
            last_dof[body] = f["body_dofadr"][body] + dofnum[body] - 1
    # The parent of a dof is the previous dof of its body; for the first one, the last dof above.
    owner, first = f["dof_bodyid"], f["body_dofadr"]
    dofs = np.arange(f["nv"])
    dof_parent = np.where(dofs == first[owner], last_dof[parent[owner]], dofs - 1)
    f.update(
        ntree=ntree,
        body_rootid=root,
        body_weldid=weld,
        body_treeid=treeid,
        body_subtreemass=subtree_sum(parent, f["body_mass"]),
        dof_parentid=dof_parent.astype(np.int32),
        dof_treeid=treeid[owner].astype(np.int32),
    )
    _tree_addresses(c)
    _check_planes(c)
    _check_masses(c)


@declare_pass(
    needs="bodies geoms joints sites masses align_free tree tendons actuators scale_actuators",
    gives="body geom site",
)
def frames(c: Compilation) -> None:
    """Add `*_sameframe`, `body_simple`: coinciding frames, and bodies with a diagonal block of
    M."""
    f = c.fields
    f["body_sameframe"] = _body_sameframe(f["body_ipos"], f["body_iquat"])
    for kind in ("geom", "site"):
        owner = f[f"{kind}_bodyid"]
        f[f"{kind}_sameframe"] = _sameframe(
            f[f"{kind}_pos"], f[f"{kind}_quat"], f["body_ipos"][owner], f["body_iquat"][owner]
        )
    f["body_simple"] = _simple_body_flags(c)
    f["body_sameframe"][0] = SameFrame.BODY  # also if a URDF model gave the world an inertia


@declare_pass(needs="bodies joints tree frames", gives="M dof")
def inertia_pattern(c: Compilation) -> None:
    """Add the sparsity pattern of the inertia matrix M, and the counts of related patterns.

    `nM`: pairs (dof, ancestor or itself), stored from `dof_Madr`. `nC`: those of M in rows, where a
    simple dof has its diagonal alone. `nD`: all pairs of dofs on one branch; `nB`: pairs of a body
    and a dof on one branch, where the world is on all branches.
    """
    f = c.fields
    nv, parent = f["nv"], f["dof_parentid"]
    simple = f["body_simple"][f["dof_bodyid"]] > 0
    depth = np.ones(nv, np.int64)  # number of ancestors of a dof, including itself
    rows: list[np.ndarray] = []
    for dof in range(nv):
        above = rows[parent[dof]] if parent[dof] >= 0 else np.zeros(0, np.int32)
        depth[dof] = 1 + (depth[parent[dof]] if parent[dof] >= 0 else 0)
        rows.append(np.append(above, dof).astype(np.int32))
    columns = [row[-1:] if flat else row for row, flat in zip(rows, simple, strict=True)]
    nonzero = np.array([len(row) for row in columns], np.int32)
    # Number of consecutive simple dofs that begin at each dof.
    simplenum = np.zeros(nv + 1, np.int32)
    for dof in range(nv - 1, -1, -1):
        simplenum[dof] = simplenum[dof + 1] + 1 if simple[dof] else 0
    f.update(
        nM=int(depth.sum()),
        nC=int(nonzero.sum()),
        nD=int(2 * depth.sum() - nv),
        nB=_body_dof_pairs(c, depth),
        dof_Madr=(np.cumsum(depth) - depth).astype(np.int32),
        dof_simplenum=simplenum[:nv],
        M_rownnz=nonzero,
        M_rowadr=(np.cumsum(nonzero) - nonzero).astype(np.int32),
        M_colind=np.concatenate([*columns, np.zeros(0, np.int32)]),
    )


def _body_dof_pairs(c: Compilation, depth: np.ndarray) -> int:
    """Return the number of pairs of a body and a dof above it, in it or below it."""
    f = c.fields
    n = f["nbody"]
    above = np.zeros(n, np.int64)  # dofs on the path from the root to a body, its own included
    for body in range(1, n):
        num, adr = f["body_dofnum"][body], f["body_dofadr"][body]
        above[body] = depth[adr + num - 1] if num else above[f["body_parentid"][body]]
    # Dofs in the subtree of a body; its own ones are counted in both numbers.
    within = subtree_sum(f["body_parentid"], f["body_dofnum"]).astype(np.int64)
    return int((above + within - f["body_dofnum"]).sum())


def _tree_addresses(c: Compilation) -> None:
    """Add the first body and dof of each kinematic tree, and their numbers."""
    f = c.fields
    for name, ids in (("body", f["body_treeid"]), ("dof", f["dof_treeid"])):
        moving = np.flatnonzero(ids >= 0)
        count = np.bincount(ids[moving], minlength=f["ntree"])
        first = np.full(f["ntree"], f["n" + name] if name == "body" else f["nv"], np.int32)
        np.minimum.at(first, ids[moving], moving)
        f[f"tree_{name}adr"] = first.astype(np.int32)
        f[f"tree_{name}num"] = count.astype(np.int32)


def _check_planes(c: Compilation) -> None:
    """Check that planes do not move, because they are infinite."""
    f = c.fields
    for i, element in enumerate(c.elements["geom"]):
        if element.get("type") == "plane" and f["body_treeid"][f["geom_bodyid"][i]] >= 0:
            c.fault(element, "a plane cannot move; put it in a body without joints, or use a box")


def _check_masses(c: Compilation) -> None:
    """Check that moving bodies have mass and inertia, their own or those of bodies welded to
    them."""
    f = c.fields
    heavy = (f["body_mass"] >= MINVAL) & np.all(f["body_inertia"] >= MINVAL, axis=1)
    # Propagate to the parent through bodies without joints, which are welded to it.
    for body in range(f["nbody"] - 1, 0, -1):
        if heavy[body] and not f["body_dofnum"][body]:
            heavy[f["body_parentid"][body]] = True
    for empty in np.flatnonzero((f["body_dofnum"] > 0) & ~heavy):
        c.fault(
            c.elements["body"][empty],
            f"it moves, but has mass {f['body_mass'][empty]:g} and principal moments of inertia "
            f"{' '.join(f'{x:g}' for x in f['body_inertia'][empty])}; all must be positive: "
            "add geoms or <inertial>",
        )


def _simple_body_flags(c: Compilation) -> np.ndarray:
    """Return 1 for bodies whose block of M is diagonal, 2 if they have only slides, else 0.

    Corresponds to `body_simple` in MuJoCo, (nbody,). M is diagonal in the dofs of a body without
    children whose inertial frame is its own frame, and whose joints act at its origin along its
    axes, if it is the root of a tree and no tendon with inertia couples its dofs with others.
    """
    f = c.fields
    parent = f["body_parentid"]
    # The root of a tree without children, whose inertial frame is its own.
    leaf = np.ones(f["nbody"], bool)
    leaf[parent[1:]] = False
    allowed = np.array([b.id == 0 or b.element.get("simple") != "false" for b in c.bodies])
    shallow = (f["body_treeid"][parent] < 0) & (parent[parent] == 0)
    simple = shallow & leaf & (f["body_sameframe"] == SameFrame.BODY) & allowed
    # Joints that couple dofs: skew axes, anchors off the origin, and joints after a rotation.
    kinds, owner = f["jnt_type"], f["jnt_bodyid"]
    angular = np.isin(kinds, (JointType.HINGE, JointType.BALL, JointType.FREE))
    axial = np.isin(kinds, (JointType.HINGE, JointType.SLIDE))
    skew = axial & (np.count_nonzero(np.abs(f["jnt_axis"]) > _ZERO_TOLERANCE, axis=1) > 1)
    offset = np.any(np.abs(f["jnt_pos"]) >= _FRAME_TOLERANCE, axis=1) & (kinds != JointType.FREE)
    simple[owner[skew | offset]] = False
    num_angular = np.bincount(owner[angular], minlength=f["nbody"])
    simple[owner[1:][angular[:-1] & (owner[1:] == owner[:-1])]] = False
    simple[0] = f["body_sameframe"][0] == SameFrame.BODY
    simple[_bodies_of_heavy_tendons(f)] = False
    slides_only = (f["body_dofnum"] > 0) & (num_angular == 0)
    return (simple * np.where(slides_only, 2, 1)).astype(np.uint8)


def _bodies_of_heavy_tendons(f: dict) -> np.ndarray:
    """Return the bodies with a joint, site or geom on the path of a tendon that has inertia.

    The inertia may be that of the tendon, or of an actuator acting on it.
    """
    armature = np.array(f["tendon_armature"], np.float64)
    acting = f["actuator_trntype"] == TrnType.TENDON
    np.add.at(armature, f["actuator_trnid"][acting, 0], np.abs(f["actuator_armature"][acting]))
    heavy = np.repeat(armature != 0, f["tendon_num"])
    found = []
    for kinds, owner in (
        ((WrapType.JOINT,), "jnt_bodyid"),
        ((WrapType.SITE,), "site_bodyid"),
        ((WrapType.SPHERE, WrapType.CYLINDER), "geom_bodyid"),
    ):
        found.append(f[owner][f["wrap_objid"][heavy & np.isin(f["wrap_type"], kinds)]])
    return np.concatenate(found)


def _body_sameframe(ipos: np.ndarray, iquat: np.ndarray) -> np.ndarray:
    """Return which part of the inertial frame equals the body frame, `SameFrame` (nbody,)."""
    upright = _is_identity_rotation(iquat)
    centered = _rows_are_equal(ipos, np.zeros(3))
    same = np.where(centered, SameFrame.BODY, SameFrame.BODYROT)
    return np.where(upright, same, SameFrame.NONE).astype(np.uint8)


def _sameframe(
    pos: np.ndarray, quat: np.ndarray, ipos: np.ndarray, iquat: np.ndarray
) -> np.ndarray:
    """Return the frame of its body that a geom or site shares, `SameFrame` (n,).

    The body frame takes precedence over the inertial one.
    """
    upright = _is_identity_rotation(quat)
    sign = np.where(np.sum(quat * iquat, axis=1, keepdims=True) < 0, -1, 1)
    principal = _rows_are_equal(quat * sign, iquat)
    conditions = [
        upright & _rows_are_equal(pos, np.zeros(3)),
        upright,
        principal & _rows_are_equal(pos, ipos),
        principal,
    ]
    values = [SameFrame.BODY, SameFrame.BODYROT, SameFrame.INERTIA, SameFrame.INERTIAROT]
    return np.select(conditions, values, SameFrame.NONE).astype(np.uint8)


def _rows_are_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.all(np.abs(a - b) < _FRAME_TOLERANCE, axis=1)


def _is_identity_rotation(quat: np.ndarray) -> np.ndarray:
    """Return whether rotations are the identity, (n,), for either sign of the quaternion."""
    return _rows_are_equal(quat * np.where(quat[:, :1] < 0, -1, 1), IDENTITY)
