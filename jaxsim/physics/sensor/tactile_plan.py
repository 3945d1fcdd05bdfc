"""Static plan of tactile sensors: taxels, and geoms that may press on them.

A taxel is a vertex of the sensor's mesh. Sensors have different numbers of taxels; they are cut
into patches of the smallest sensor's size, so that the taxels of all sensors are one array `[taxels
of a patch, patches]`, at most half of which is padding.
"""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import GeomType, SensorType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import known_pairs
from jaxsim.physics.collision.field.distance import OCTREE_SDF
from jaxsim.physics.collision.field.kinds import NO_SDF, kind_of
from jaxsim.physics.unsupported import Refusal, describe_object, make_refusal

_NO_GEOM = -1  # no geom


@dataclass(frozen=True, eq=False)
class TactilePlan:
    """Tactile sensors of a model.

    Attributes:
      geom: geom of each sensor, `[n]`.
      weld: its body, or the one that this is welded to, `[n]`.
      other: geoms that may press on each sensor, padded with _NO_GEOM, `[k, n]`.
      kinds: kind of signed distance of each geom that may press on some sensor, else NO_SDF.
      sensor: sensor of each patch, `[patches]`.
      vertex: address of each taxel in `mesh_vert`, `[taxels of a patch, patches]`.
      tangents: addresses of its two tangents in `mesh_normal`, `[taxels of a patch, patches]`.
      slides: sensors whose meshes have tangents, `[n]` bool.
      rows: index of each output among depths and both slips of the taxels, number by number.
    """

    geom: np.ndarray
    weld: np.ndarray
    other: np.ndarray
    kinds: tuple[str, ...]
    sensor: np.ndarray
    vertex: np.ndarray
    tangents: tuple[np.ndarray, np.ndarray]
    slides: np.ndarray
    rows: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Return the kinds of signed distance that occur."""
        return tuple(sorted({*self.kinds} - {NO_SDF}))


@cache_by_structure
def tactile_plan(s: Structure, disableflags: int) -> TactilePlan:
    """Build the plan of a model with tactile sensors, for its contact flags."""
    ids = _sensors(s)
    mesh, geom = s.sensor_objid[ids], s.sensor_refid[ids]
    # Candidate geoms with a known signed distance, padded to the same number.
    others = [_other_geoms(s, int(g), disableflags) for g in geom]
    known = [[g for g in of_one if taxel_kind(s, g) != NO_SDF] for of_one in others]
    pressing = set().union(*known)
    most = max(map(len, known))
    filled = [of_one + [_NO_GEOM] * (most - len(of_one)) for of_one in known]

    # Split the taxels into patches of equal size.
    count = s.mesh_vertnum[mesh]
    sensor, taxel = _patches(count)
    # Meshes with three normals per vertex have a tangent frame.
    slides = s.mesh_normalnum[mesh] == 3 * count
    frame = np.where(slides, s.mesh_normaladr[mesh], 0)[sensor] + 3 * taxel * slides[sensor]
    place = np.arange(taxel.size).reshape(taxel.shape)
    first = np.array([np.flatnonzero(sensor == k)[0] for k in range(len(ids))])
    size = len(taxel)
    # The j-th taxel of a sensor is the (j % size)-th of its (j // size)-th patch.
    of_one = [
        place[np.arange(n) % size, f + np.arange(n) // size]
        for n, f in zip(count, first, strict=True)
    ]
    return TactilePlan(
        geom=geom,
        weld=s.body_weldid[s.geom_bodyid[geom]],
        other=np.array(filled, int).reshape(len(ids), most).T,
        kinds=tuple(taxel_kind(s, g) if g in pressing else NO_SDF for g in range(s.ngeom)),
        sensor=sensor,
        vertex=s.mesh_vertadr[mesh][sensor] + taxel,
        tangents=(frame + slides[sensor], frame + 2 * slides[sensor]),
        slides=slides,
        rows=np.concatenate([k * taxel.size + p for p in of_one for k in range(3)]),
    )


def taxel_kind(s: Structure, geom: int) -> str:
    """Return the kind of signed distance of a geom for taxels; NO_SDF: ignored.

    A mesh has one if it has an octree. An `sdf` geom without plugin uses that of its mesh too,
    where MuJoCo aborts.
    """
    if s.geom_type[geom] == GeomType.MESH:
        return OCTREE_SDF if s.mesh_octnum[s.geom_dataid[geom]] else NO_SDF
    return kind_of(s, geom)


def unsupported_tactile_geoms(m: Model) -> list[Refusal]:
    """Return the height fields that a tactile sensor may touch: they have no signed distance."""
    found = []
    for i in _sensors(m.structure):
        others = _other_geoms(m.structure, int(m.sensor_refid[i]), m.pair_flags)
        fields = [g for g in others if m.geom_type[g] == GeomType.HFIELD]
        if fields:
            what = (
                f"{describe_object(m, 'geom', fields[0])}, a height field, has no signed distance"
            )
            remedy = "keep it apart from the sensor's body with contype and conaffinity"
            found.append(make_refusal(m, "sensor", i, f"{what}; {remedy}"))
    return found


def _sensors(s: Structure) -> np.ndarray:
    return np.flatnonzero(s.sensor_type == SensorType.TACTILE)


def _other_geoms(s: Structure, geom: int, disableflags: int) -> list[int]:
    """Return geoms that may touch a geom's body, or a body welded to it.

    Only `<pair>` elements make geoms of the same body touch; the geom itself is excluded.
    """
    # Geom pairs that the collision filter admits, in both orders.
    pairs, weld = known_pairs(s, disableflags), s.body_weldid[s.geom_bodyid]
    ends = (pairs.geom1, pairs.geom2), (pairs.geom2, pairs.geom1)
    touching = [other[weld[own] == weld[geom]] for own, other in ends]
    return [g for g in np.unique(np.concatenate(touching)).tolist() if g != geom]


def _patches(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut sensors with given numbers of taxels into patches.

    Returns:
      Sensor of each patch, `[patches]`; and taxels of each patch, padded with the sensor's last
      one, `[taxels of a patch, patches]`.
    """
    size = int(count.min())
    # Number of patches of each sensor, rounded up.
    patches = -(-count // size)
    sensor = np.repeat(np.arange(len(count)), patches)
    start = size * (np.arange(len(sensor)) - np.repeat(np.cumsum(patches) - patches, patches))
    taxel = np.arange(size)[:, None] + start
    # Pad the last patch by repeating the last taxel.
    return sensor, np.minimum(taxel, count[sensor] - 1)
