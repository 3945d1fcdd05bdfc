"""World positions and normals of the points of flexes and skins.

Normals of a flex at its vertices are averages of the unit normals of the adjacent triangles, those
of a skin are area-weighted, as in MuJoCo's scene. A skin's vertex v is moved by its bones (linear
blend skinning; MuJoCo's documentation, XML reference: skin),

    sum_b w_b (R_b (v - bindpos_b) + xpos_b),   R_b = R(xquat_b) R(bindquat_b)'

with the normalized weights w of the vertex, and offset by `skin_inflate` along its normal.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.arrays.gather import column, gather_static, sum_groups
from jaxsim.arrays.linear import group_table
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.view.flex.topology import surface_topology


class DeformablePoints(NamedTuple):
    """Points of all flexes and skins, in the order of `SurfaceTopology`, `[points, *W]`.

    Attributes:
      pos: positions, in the world [m].
      normal: outward unit normals.
    """

    pos: Vec
    normal: Vec


def soft_points(m: Model, d: Data) -> DeformablePoints:
    """Return the points, from the poses of bodies and the vertices of flexes."""
    parts = [make(m, d) for make, has in ((_flexes, m.nflex), (skin_points, m.nskin)) if has]
    return DeformablePoints(concat([p.pos for p in parts]), concat([p.normal for p in parts]))


def _flexes(m: Model, d: Data) -> DeformablePoints:
    """Return both sides of surfaces, and outer shells of solids, offset outward by their radius."""
    plan, xpos = surface_topology(m.structure), d.flexvert_xpos
    a, b, c = (gather_static(xpos, index) for index in plan.tangent)
    faces = (b - a).cross(c - a).normalize()
    normal = gather_static(sum_groups(faces, plan.around).normalize(), plan.vert)
    normal = normal.scale(column(plan.side.astype(float), normal))
    return DeformablePoints(
        gather_static(xpos, plan.vert) + normal.scale(gather_static(m.flex_radius, plan.flex)),
        normal,
    )


def skin_points(m: Model, d: Data) -> DeformablePoints:
    """Return the vertices of skins, moved by their bones."""
    bone, vert, skin, around, corner, meets = skin_tables(m.structure)
    rotation = gather_static(d.xquat, m.skin_bonebodyid) * m.skin_bonebindquat.normalize().conj
    shift = gather_static(d.xpos, m.skin_bonebodyid) - rotation.rotate(m.skin_bonebindpos)
    turned = gather_static(rotation, bone).rotate(gather_static(m.skin_vert, vert)) + gather_static(
        shift, bone
    )
    pos = sum_groups(turned.scale(m.skin_bonevertweight), around)
    a, b, c = (gather_static(pos, index) for index in corner)
    normal = sum_groups((b - a).cross(c - a), meets).normalize()
    return DeformablePoints(pos + normal.scale(gather_static(m.skin_inflate, skin)), normal)


@cache_by_structure
def skin_tables(s: Structure) -> tuple[np.ndarray, ...]:
    """Return the constants of skins.

    Returns:
      Bone and vertex of each weight; the skin of each vertex; the weights of each vertex, a table
        of `group_table`; vertices of all faces, `[3, n]`; the faces at each vertex.
    """
    bone = np.repeat(np.arange(s.nskinbone), s.skin_bonevertnum)
    of_bone = np.repeat(np.arange(s.nskin), s.skin_bonenum)
    vert = s.skin_bonevertid + s.skin_vertadr[of_bone[bone]]
    skin = np.repeat(np.arange(s.nskin), s.skin_vertnum)
    face = np.asarray(s.skin_face).reshape(-1, 3)
    corner = face + np.repeat(s.skin_vertadr, s.skin_facenum)[:, None]
    meets = group_table(corner.ravel(), s.nskinvert)
    meets = np.where(meets == corner.size, len(corner), meets // 3)
    return bone, vert, skin, group_table(vert, s.nskinvert), corner.T, meets
