"""Recompute intermediate values that a standalone stage needs and its Data does not carry.

Within a step a stage passes values to the next one that are not fields of a Data: contacts in row
order (`found`), constraint rows, forces that do not follow from `qacc`; and fields that the
caller's Data does not keep. Between two calls they are lost. Each is recomputed from the fields
that the earlier stages left in the Data, by the stage that makes it: rows, for example, from poses,
velocities and the list of contacts, which the caller may have changed. Inside a step nothing is
missing and nothing is recomputed.
"""

from collections.abc import Callable, Iterator

from jaxsim.model.data import ALWAYS_KEPT, Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.transmission import transmission
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.rne import com_vel
from jaxsim.physics.collision.contact_list import rebuild_collision_result
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.forward import fwd_constraint
from jaxsim.physics.history.buffers import sensor_buffers
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.stage import STAGES, StageFields
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity

# By name: the stages that recompute it. A stage follows those that it reads from.
_RECOMPUTING_STAGES: dict[str, tuple[Callable, ...]] = {
    "cdof": (com_pos,),
    "cinert": (com_pos,),
    "flexedge_J": (flex,),
    "ten_J": (tendon,),
    "found": (rebuild_collision_result,),
    "actuator_moment": (transmission,),
    "crb": (crb,),
    "M": (crb,),
    "cdof_dot": (com_vel,),
    "rows": (tendon_velocity, com_vel, make_rows),  # of the present velocity
    "forces": (fwd_constraint,),
    "readings": (sensor_pos, sensor_vel, sensor_acc),
}


def recompute_missing(m: Model, d: Data, reads: frozenset[str]) -> Data:
    """Return `d` with the missing fields that a stage with these reads needs, recomputed."""
    # Fields in dependency order; each is recomputed from the caller's Data.
    for name, stages in _RECOMPUTING_STAGES.items():
        if name not in reads or getattr(d, name) is not None or not _exists(m, name):
            continue
        made = d
        for stage in stages:
            declared = STAGES[stage.__name__]
            made = stage(m, recompute_missing(m, made, declared.reads - declared.writes))
        d = d.replace(**{name: getattr(made, name)})
    return d


def missing_fields(m: Model, d: Data, reads: frozenset[str]) -> Iterator[str]:
    """Yield the fields that a stage with these reads needs, directly or to recompute others."""
    for name in sorted(reads - ALWAYS_KEPT - {"found"}):  # contacts_of checks whether it is needed
        if getattr(d, name) is not None or not _exists(m, name):
            continue
        if name in _RECOMPUTING_STAGES:
            for stage in _RECOMPUTING_STAGES[name]:
                declared = STAGES[stage.__name__]
                yield from missing_fields(m, d, declared.reads - declared.writes)
        elif name in Data.fields:
            yield name


def carried_fields(stage: StageFields) -> frozenset[str]:
    """Return the fields a Data must keep to call a public function alone and to hold its result.

    Working values are never kept: the fields from which they are recomputed are.
    """
    found = stage.carries
    for name in stage.reads - stage.writes - Data.fields.keys():
        for recompute in _RECOMPUTING_STAGES.get(name, ()):
            declared = STAGES[recompute.__name__]
            inputs = StageFields(declared.reads - declared.writes, frozenset())
            found |= carried_fields(inputs)
    return found


def _exists(m: Model, name: str) -> bool:
    """Return False for working values that a model never has.

    Row forces are one where they do not follow from `qacc`; readings where sensors have buffers.
    """
    if name == "readings":
        return len(sensor_buffers(m).owner) > 0
    return name != "forces" or m.lists_row_forces
