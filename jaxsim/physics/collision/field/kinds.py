"""The signed distance function of each geom: static, from its type, its plugin and its mesh."""

from collections.abc import Sequence

import numpy as np

from jaxsim.assets.sdf.shapes import shape_settings
from jaxsim.enums import GeomType
from jaxsim.extend.registry import shape_kind, shapes
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import known_pairs
from jaxsim.physics.collision.field.distance import OCTREE_SDF, SDF_FUNCTIONS, sdf_name
from jaxsim.physics.collision.flex.pairs import flex_pairs
from jaxsim.physics.plugin import plugin_config
from jaxsim.physics.unsupported import Refusal, make_refusal

NO_SDF = ""  # kind of a geom without a signed distance function


def kind_of(s: Structure, geom: int | np.integer) -> str:
    """Return the name of a geom's function for `function` (distance.py), or NO_SDF."""
    if s.geom_type[geom] != GeomType.SDF:
        primitive = sdf_name(s.geom_type[geom])
        return primitive if primitive in SDF_FUNCTIONS else NO_SDF
    instance = s.geom_plugin[geom]
    if instance >= 0:
        return shape_kind(s.plugin_keys[instance]) or NO_SDF
    return OCTREE_SDF if s.mesh_octnum[s.geom_dataid[geom]] else NO_SDF


@cache_by_structure
def collidable_kinds(s: Structure, flags: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sorted functions of geoms that collide with `sdf` geoms, and of these."""
    pairs = known_pairs(s, flags).searched(s.geom_type)
    found = [{kind_of(s, g) for g in np.unique(ids)} for ids in (pairs.geom1, pairs.geom2)]
    first, second = (tuple(sorted(kinds - {NO_SDF})) for kinds in found)
    return first, second


@cache_by_structure
def shell_collidable_geoms(s: Structure, flags: int) -> frozenset[int]:
    """Return the `sdf` geoms that can collide with shells."""
    pairs = flex_pairs(s, flags)
    here = pairs.geom1 < s.ngeom
    geom, flex = pairs.geom1[here], pairs.geom2[here] - s.ngeom
    here = (s.geom_type[geom] == GeomType.SDF) & (s.flex_dim[flex] == 2)
    return frozenset(geom[here].tolist())


def sdf_plugin_constants(m: Model, shape: str) -> np.ndarray:
    """Return the constants of a plugin's shape per geom, `[ngeom, k]`; arbitrary for others."""
    s = m.structure
    here = [g for g in range(s.ngeom) if kind_of(s, g) == shape]
    function = shapes()[shape]
    rows = [
        function.constants(*shape_settings(function, plugin_config(s, s.geom_plugin[g])))
        for g in here
    ]
    table = np.tile(np.array(rows[0], np.float64), (s.ngeom, 1))
    table[here] = rows
    return table


def octree_roots(s: Structure, kinds: Sequence[str]) -> np.ndarray:
    """Return the first octree cell of each geom, `[ngeom]`; 0 for other kinds."""
    has = np.array([kind == OCTREE_SDF for kind in kinds], bool)
    roots = np.zeros(len(has), np.int32)
    roots[has] = s.mesh_octadr[s.geom_dataid[has]]
    return roots


def unknown_sdf_messages(m: Model) -> list[Refusal]:
    """Return a message for each `sdf` geom that can collide and has no known distance function."""
    s = m.structure
    pairs = known_pairs(s, m.pair_flags).searched(s.geom_type)
    geoms = sorted(
        {*pairs.geom1.tolist(), *pairs.geom2.tolist(), *shell_collidable_geoms(s, m.pair_flags)}
    )
    return [
        make_refusal(m, "geom", g, unknown_sdf_reason(s, g))
        for g in geoms
        if s.geom_type[g] == GeomType.SDF and kind_of(s, g) == NO_SDF
    ]


def unknown_sdf_reason(s: Structure, geom: int) -> str:
    """Return why the distance function of an `sdf` geom is unknown."""
    instance = s.geom_plugin[geom]
    if instance >= 0:
        plugin = s.plugin_keys[instance][0]
        return f"the plugin {plugin} is not the one that the model was loaded with, or no shape"
    return "a mesh that a plugin makes has no octree; give the geom the plugin too"
