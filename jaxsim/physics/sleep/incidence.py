"""Static incidence of objects and trees, which determines what sleeps.

An object is awake if one of its trees is awake, or always, if something else keeps it so: a mocap
body, which the user may move at any time. MuJoCo's documentation, Programming: Sleeping.
"""

from collections.abc import Iterable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import EqType, ObjType, SensorType, TrnType
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.tendon.path import tendon_pattern
from jaxsim.trace_context import trace_context


class Incidence(NamedTuple):
    """Trees that objects touch.

    Attributes:
      tree: `[n, k]` ids, k at least 2; -1: none.
      always: `[n]` bool: awake regardless of the trees.
    """

    tree: np.ndarray
    always: np.ndarray

    def awake(self, trees: Array) -> Array:
        """Return which objects are awake, `[n, *W]` bool, from the awake trees."""
        # Union over the trees of each object.
        out = jnp.broadcast_to(column(self.always, trees), (len(self.always), *trees.shape[1:]))
        if trace_context().fully_asleep:
            return out
        for tree in self.tree.T:
            if (tree >= 0).any():
                out = out | (gather_static(trees, np.maximum(tree, 0)) & column(tree >= 0, trees))
        return out

    def rows(self, ids: np.ndarray) -> "Incidence":
        """Return the incidence of a subset of the objects."""
        return Incidence(self.tree[ids], self.always[ids])


@cache_by_structure
def body_incidence(s: Structure) -> Incidence:
    """Return the incidence of bodies.

    Bodies fixed to a mocap body are always awake, other static bodies never.
    """
    return _tabulate_trees(_object_trees(s, ObjType.BODY, s.nbody))


@cache_by_structure
def dof_incidence(s: Structure) -> Incidence:
    """Return the incidence of dofs."""
    return _tabulate_trees(_object_trees(s, ObjType.DOF, s.nv))


@cache_by_structure
def joint_incidence(s: Structure) -> Incidence:
    """Return the incidence of joints."""
    return _tabulate_trees(_object_trees(s, ObjType.JOINT, s.njnt))


@cache_by_structure
def tendon_incidence(s: Structure) -> Incidence:
    """Return the incidence of tendons; a tendon along more than two trees is always awake."""
    return _tabulate_trees(_object_trees(s, ObjType.TENDON, s.ntendon))


@cache_by_structure
def tendon_path_incidence(s: Structure) -> Incidence:
    """Return the incidence of tendons as paths; one between static bodies does not sleep."""
    found = tendon_incidence(s)
    return Incidence(found.tree, found.always | (found.tree < 0).all(1))


@cache_by_structure
def actuator_incidence(s: Structure) -> Incidence:
    """Return the incidence of actuators, by their targets; one without a tree does not sleep."""
    found = _tabulate_trees(_object_trees(s, ObjType.ACTUATOR, s.nactuator))
    return Incidence(found.tree, found.always | (found.tree < 0).all(1))


@cache_by_structure
def equality_incidence(s: Structure) -> Incidence:
    """Return the incidence of equality constraints, by the two objects that they couple."""
    # Object types of both ends, by constraint type.
    kind = s.eq_objtype.copy()
    for constraint, held in _EQUALITY_OBJTYPES.items():
        kind[s.eq_type == constraint] = held
    flex = np.isin(s.eq_type, (EqType.FLEX, EqType.FLEXSTRAIN))
    kind[flex] = ObjType.FLEX
    ends = zip(kind, s.eq_obj1id, np.where(flex, -1, s.eq_obj2id), strict=True)
    objects = [
        _union_trees(_trees_of_object(s, k, first), _trees_of_object(s, k, second))
        for k, first, second in ends
    ]
    return _tabulate_trees(objects, several=flex)


@cache_by_structure
def flex_incidence(s: Structure) -> Incidence:
    """Return the incidence of flexes, by all their bodies; awake if any of its trees is."""
    return _tabulate_trees((_flex(s, f) for f in range(s.nflex)), several=np.ones(s.nflex, bool))


@cache_by_structure
def surface_incidence(s: Structure) -> Incidence:
    """Return the incidence of geoms, followed by flexes."""
    geoms = _object_trees(s, ObjType.GEOM, s.ngeom)
    several = np.arange(s.ngeom + s.nflex) >= s.ngeom
    return _tabulate_trees((*geoms, *_object_trees(s, ObjType.FLEX, s.nflex)), several)


@cache_by_structure
def sensor_incidence(s: Structure) -> Incidence:
    """Return the incidence of sensors, by their object and their frame or second object.

    Sensors that scan the scene, and those of static objects alone, never sleep: their readings may
    depend on other objects.
    """
    out = []
    # Object and reference of each sensor; scanning sensors never sleep.
    for i, kind in enumerate(s.sensor_type):
        obj = _trees_of_object(s, s.sensor_objtype[i], s.sensor_objid[i])
        ref = _trees_of_object(s, s.sensor_reftype[i], s.sensor_refid[i])
        by_site = ObjType.SITE in (s.sensor_objtype[i], s.sensor_reftype[i])
        looks = kind in _UNBOUNDED_SENSORS or (kind == SensorType.CONTACT and by_site)
        both = _union_trees(obj, ref)
        out.append(both._replace(always=both.always or looks or not both.trees))
    return _tabulate_trees(out)


_EQUALITY_OBJTYPES = {EqType.JOINT: ObjType.JOINT, EqType.TENDON: ObjType.TENDON}
_UNBOUNDED_SENSORS = (SensorType.USER, SensorType.PLUGIN, SensorType.RANGEFINDER)
# Field with the body of an object.
_OBJECT_BODIES = {
    ObjType.JOINT: "jnt_bodyid",
    ObjType.DOF: "dof_bodyid",
    ObjType.GEOM: "geom_bodyid",
    ObjType.SITE: "site_bodyid",
    ObjType.CAMERA: "cam_bodyid",
}
# Object type that an actuator acts on.
_TRANSMISSION_OBJTYPES = {
    TrnType.JOINT: ObjType.JOINT,
    TrnType.JOINTINPARENT: ObjType.JOINT,
    TrnType.SLIDERCRANK: ObjType.SITE,
    TrnType.TENDON: ObjType.TENDON,
    TrnType.SITE: ObjType.SITE,
    TrnType.BODY: ObjType.BODY,
}
TWO_ENDS = (TrnType.SLIDERCRANK, TrnType.SO3)


class ObjectTrees(NamedTuple):
    """Trees of one object, and True if it is awake regardless of them."""

    trees: frozenset[int] = frozenset()
    always: bool = False


def _object_trees(s: Structure, kind: ObjType, count: int) -> Iterable[ObjectTrees]:
    return (_trees_of_object(s, kind, i) for i in range(count))


def _trees_of_object(s: Structure, kind: int, i: int) -> ObjectTrees:
    """Return the trees of one object; none for a missing or unattached object."""
    if i < 0:
        return ObjectTrees()
    # Trees of the dofs, and of the static path, of a tendon.
    if kind == ObjType.TENDON:
        # tendon_treeid lists at most two trees
        pattern, first = tendon_pattern(s), s.tendon_treeid[i]
        moving = s.dof_treeid[pattern.col[pattern.row == i]]
        trees = frozenset([*first[first >= 0].tolist(), *moving.tolist()])
        return ObjectTrees(trees, bool(s.tendon_treenum[i] > 2))
    if kind == ObjType.ACTUATOR:
        return _actuator_trees(s, i)
    if kind == ObjType.FLEX:
        return _flex(s, i)
    # Tree of the object's body; static bodies are awake only on mocap bodies.
    if kind in (ObjType.BODY, ObjType.XBODY):
        body = i
    elif kind in _OBJECT_BODIES:
        body = getattr(s, _OBJECT_BODIES[ObjType(kind)])[i]
    else:
        return ObjectTrees()
    tree = int(s.body_treeid[body])
    if tree >= 0:
        return ObjectTrees(frozenset((tree,)))
    return ObjectTrees(always=bool(s.body_mocapid[s.body_rootid[body]] >= 0))


def _actuator_trees(s: Structure, i: int) -> ObjectTrees:
    """Return the trees that an actuator acts on."""
    kind, (first, second) = s.actuator_trntype[i], s.actuator_trnid[i]
    at = (
        ObjType.JOINT
        if kind == TrnType.SO3 and second < 0
        else _TRANSMISSION_OBJTYPES.get(kind, ObjType.SITE)
    )
    return _union_trees(
        _trees_of_object(s, at, first), _trees_of_object(s, at, second if kind in TWO_ENDS else -1)
    )


def _flex(s: Structure, f: int) -> ObjectTrees:
    """Return the trees of all bodies of a flex."""
    # Bodies of vertices, or of nodes of interpolated flexes.
    vert = s.flex_vertadr[f] + np.arange(s.flex_vertnum[f])
    node = s.flex_nodeadr[f] + np.arange(s.flex_nodenum[f])
    body = s.flex_nodebodyid[node] if s.flex_interp[f] else s.flex_vertbodyid[vert]
    tree = s.body_treeid[body[body >= 0]]
    return ObjectTrees(frozenset(tree[tree >= 0].tolist()))


def _union_trees(a: ObjectTrees, b: ObjectTrees) -> ObjectTrees:
    """Return the union of two objects."""
    return ObjectTrees(a.trees | b.trees, a.always or b.always)


def _tabulate_trees(objects: Iterable[ObjectTrees], several: np.ndarray | None = None) -> Incidence:
    """Tabulate the trees of objects; with more than two an object is awake, unless in `several`."""
    found = list(objects)
    several = np.zeros(len(found), bool) if several is None else several
    width = max([2, *(len(t.trees) for t in found)])
    tree = np.full((len(found), width), -1)
    for row, thing in zip(tree, found, strict=True):
        row[: len(thing.trees)] = sorted(thing.trees)
    many = np.array([len(t.trees) > 2 for t in found], bool)
    always = np.array([t.always for t in found], bool) | (many & ~several)
    return Incidence(tree, always)
