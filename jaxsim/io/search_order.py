"""Order in which the elements of meshes and shells are searched for contacts with `sdf` geoms.

MuJoCo traverses bounding volume hierarchies: of a mesh over the circumscribed circles of its faces,
of a shell over the axis-aligned bounding boxes of its elements in the reference configuration.
"""

import numpy as np

from jaxsim.assets.mesh.face_order import face_order, tree_order
from jaxsim.compile.geometry.pose import chain_poses
from jaxsim.enums import GeomType
from jaxsim.io.hull_tables import CompiledFields
from jaxsim.math.quaternion import quat_normalize, quat_rotate
from jaxsim.transforms.tuning import tuning


def mesh_order(fields: CompiledFields) -> np.ndarray:
    """Return the order of the faces of each mesh, `[nmeshface]`.

    Meshes that cannot collide with an `sdf` geom keep their order.
    """
    spans = list(zip(fields["mesh_faceadr"], fields["mesh_facenum"], strict=True))
    parts = [np.arange(number, dtype=np.int32) for _, number in spans]
    touching = (fields["geom_contype"] | fields["geom_conaffinity"]) != 0
    touching[np.concatenate([fields["pair_geom1"], fields["pair_geom2"]])] = True
    kind = np.where(touching, fields["geom_type"], -1)
    if GeomType.SDF in kind:
        for mesh in np.unique(fields["geom_dataid"][kind == GeomType.MESH]):
            start, number = spans[mesh]
            vertex = fields["mesh_vert"].reshape(-1, 3)[fields["mesh_vertadr"][mesh] :]
            face = fields["mesh_face"].reshape(-1, 3)[start : start + number]
            parts[mesh] = face_order(vertex, face)
    return np.concatenate([np.zeros(0, np.int32), *parts])


def shell_order(fields: CompiledFields) -> np.ndarray:
    """Return the order of flex elements, `[nflexelem]`.

    Shells are ordered by their tree. So are other flexes of many elements, whose tree ends at
    clusters (physics/collision/flex/clusters.py); small ones keep their order.
    """
    with_sdf = GeomType.SDF in fields["geom_type"]
    parts = [np.zeros(0, np.int32)]
    for f in range(fields["nflex"]):
        number, start = int(fields["flex_elemnum"][f]), int(fields["flex_elemdataadr"][f])
        order = np.arange(number, dtype=np.int32)
        dim = int(fields["flex_dim"][f])
        searched = with_sdf and dim == 2
        # Clusters replace a table of entries that is too long; it may have as many as pairs of
        # elements. A tree for clusters alone may end at half of one.
        if searched or number**2 > tuning().max_table_entries:
            elem = fields["flex_elem"][start : start + (dim + 1) * number].reshape(-1, dim + 1)
            corner = _vertices(fields, f)[elem]
            low, high = corner.min(axis=1), corner.max(axis=1)
            leaf = 1 if searched else tuning().max_cluster_elements // 2
            order = tree_order(low, high, 0.5 * (low + high), leaf)
        parts.append(order)
    return np.concatenate(parts)


def _vertices(fields: CompiledFields, f: int) -> np.ndarray:
    """Return the vertex positions of a flex in `qpos0`, (n, 3); for an interpolated flex, relative
    to its first node."""
    here = slice(fields["flex_vertadr"][f], fields["flex_vertadr"][f] + fields["flex_vertnum"][f])
    pos, quat = _bodies(fields)
    body = np.asarray(fields["flex_vertbodyid"])[here]
    if (body >= 0).all():
        return pos[body] + quat_rotate(quat[body], _field_rows(fields, "flex_vert")[here])
    share = _field_rows(fields, "flex_vert0")[here]
    node = fields["flex_nodebodyid"][fields["flex_nodeadr"][f]]
    return quat_rotate(quat[node], 2 * share * _field_rows(fields, "flex_size")[f])


def _bodies(fields: CompiledFields) -> tuple[np.ndarray, np.ndarray]:
    """Return the poses of all bodies in `qpos0`."""
    quat = quat_normalize(_field_rows(fields, "body_quat", 4))
    return chain_poses(fields["body_parentid"], _field_rows(fields, "body_pos"), quat)


def _field_rows(fields: CompiledFields, name: str, width: int = 3) -> np.ndarray:
    return np.asarray(fields[name], np.float64).reshape(-1, width)
