"""Compile the kinematic tree: bodies in depth-first order, their parents, poses, and mocap ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

import numpy as np

from jaxsim.compile.columns import user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import pose_of, written_pose
from jaxsim.compile.options.plugins import plugin_id
from jaxsim.compile.step import declare_pass
from jaxsim.spec import Body


@declare_pass(needs="read_settings plugin_fields", gives="bodies body")
def bodies(c: Compilation) -> None:
    """Add ids and names of bodies, their parents, poses, gravity compensation and mocap ids."""
    c.bodies = c.spec.bodies
    elements = [body.element for body in c.bodies]
    c.register("body", elements, [body.name for body in c.bodies])
    _refuse_contents(c)

    # The world has an identity pose; a pose given to it by a URDF file is kept nevertheless.
    poses = [(pose_of if body.id else written_pose)(c, body.element) for body in c.bodies]
    mocap = [body.id > 0 and body.element.get("mocap") == "true" for body in c.bodies]
    gravcomp = [0.0 if body.id == 0 else body.element.get("gravcomp") or 0.0 for body in c.bodies]
    for body in c.bodies:
        if mocap[body.id] and (body.joints or body.depth != 1):
            c.fault(
                body.element,
                "a mocap body must be a child of the world without joints; "
                "remove mocap='true', or its joints, or move it to the top",
            )
    c.fields.update(
        nbody=len(c.bodies),
        nmocap=sum(mocap),
        body_parentid=np.array([b.parent.id if b.parent else 0 for b in c.bodies], np.int32),
        body_pos=np.array([pose.pos for pose in poses]),
        body_quat=np.array([pose.quat for pose in poses]),
        body_gravcomp=np.array(gravcomp, np.float64),
        # as in MuJoCo, negative compensation is not counted
        ngravcomp=int(np.sum(np.array(gravcomp) > 0)),
        body_mocapid=np.where(mocap, np.cumsum(mocap) - 1, -1).astype(np.int32),
        body_plugin=np.array([plugin_id(c, e) for e in elements], np.int32),
    )
    user_data(c, "body", [None if body.id == 0 else body.element for body in c.bodies])


def address_table(owners: Iterable[Sized], start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts and first addresses of the concatenated lists of each body; -1 if empty."""
    count = np.array([len(items) for items in owners], np.int32)
    first = start + np.cumsum(count) - count
    return count, np.where(count > 0, first, -1).astype(np.int32)


def owners(bodies: Sequence[Body], group: str) -> np.ndarray:
    """Return the body id of each element of a group such as "geoms", in order of the bodies."""
    ids = [body.id for body in bodies for _ in getattr(body, group)]
    return np.array(ids, np.int32)


def _refuse_contents(c: Compilation) -> None:
    for body in c.bodies:
        for element in body.others:
            if element.tag != "plugin":
                c.fault(element, "is not supported inside a body; remove it")
