"""Recompute intermediate values that a standalone stage needs and its Data does not carry.

Within a step a stage passes values to the next one that are not fields of a Data: contacts in row
order (`found`), constraint rows, forces that do not follow from `qacc`; and fields that the
caller's Data does not keep. Between two calls they are lost. Each is recomputed from the fields
that the earlier stages left in the Data, by the stage that makes it: rows, for example, from poses,
velocities and the list of contacts, which the caller may have changed. Inside a step nothing is
missing and nothing is recomputed.
"""

from collections.abc import Iterator

from jaxsim.model.data import ALWAYS_KEPT, Data
from jaxsim.model.model import Model
from jaxsim.physics.history.buffers import sensor_buffers
from jaxsim.physics.pipeline.row import StageFields
from jaxsim.physics.pipeline.stages import STAGES

# By name: the stages that recompute it. A name follows those that its stages read.
_RECOMPUTING_STAGES = {
    "cdof": "com_pos",
    "cinert": "com_pos",
    "flexedge_J": "flex",
    "ten_J": "tendon",
    "found": "rebuild_collision_result",
    "actuator_moment": "transmission",
    "crb": "crb",
    "M": "crb",
    "cdof_dot": "com_vel",
    "rows": "tendon_velocity com_vel make_rows",  # of the present velocity
    "forces": "fwd_constraint",
    "readings": "sensor_pos sensor_vel sensor_acc",
}
_ROWS = {name: [STAGES[s] for s in stages.split()] for name, stages in _RECOMPUTING_STAGES.items()}


def recompute_missing(m: Model, d: Data, inputs: frozenset[str]) -> Data:
    """Return `d` with the missing fields that a stage with these inputs needs, recomputed."""
    # Fields in dependency order; each is recomputed from the caller's Data.
    for name, stages in _ROWS.items():
        if name not in inputs or getattr(d, name) is not None or not _exists(m, name):
            continue
        made = d
        for stage in stages:
            made = stage.call(m, recompute_missing(m, made, stage.fields.inputs))
        d = d.replace(**{name: getattr(made, name)})
    return d


def missing_fields(m: Model, d: Data, inputs: frozenset[str]) -> Iterator[str]:
    """Yield the fields that a stage with these inputs needs, directly or to recompute others."""
    for name in sorted(inputs - ALWAYS_KEPT - {"found"}):  # contacts_of checks whether it is needed
        if getattr(d, name) is not None or not _exists(m, name):
            continue
        if name in _ROWS:
            for stage in _ROWS[name]:
                yield from missing_fields(m, d, stage.fields.inputs)
        elif name in Data.fields:
            yield name


def carried_fields(fields: StageFields) -> frozenset[str]:
    """Return the fields a Data must keep to call a public function alone and to hold its result.

    Working values are never kept: the fields from which they are recomputed are.
    """
    found = fields.carries
    for name in fields.inputs - Data.fields.keys():
        for stage in _ROWS.get(name, ()):
            found |= carried_fields(StageFields(stage.fields.inputs))
    return found


def _exists(m: Model, name: str) -> bool:
    """Return False for working values that a model never has.

    Row forces are one where they do not follow from `qacc`; readings where sensors have buffers.
    """
    if name == "readings":
        return len(sensor_buffers(m).owner) > 0
    return name != "forces" or m.lists_row_forces
