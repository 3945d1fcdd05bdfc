"""What a stage that is called alone needs and its Data does not carry, found again.

Within a step one stage hands results to the next that no Data carries: contacts in the places of
their rows, rows, forces that do not follow from `qacc`; and results that the caller's Data does not
keep.
Between two calls they are lost. Each follows from what the stages before have left in the Data, by
the stage that makes it: the rows from poses, velocities and the list of contacts, as the caller may
have changed it. Inside a step nothing is missing, and nothing is found again.
"""

from collections.abc import Callable, Iterator

from jaxsim.model.data import ALWAYS, Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.transmission import transmission
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.rne import com_vel
from jaxsim.physics.collision.listed import found_again
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.forward import fwd_constraint
from jaxsim.physics.history.buffers import sensor_buffers
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.stage import STAGES
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity

# by name: the stages that make it again; a stage stands behind those that it reads from
AGAIN: dict[str, tuple[Callable, ...]] = {
    "cdof": (com_pos,),
    "cinert": (com_pos,),
    "flexedge_J": (flex,),
    "ten_J": (tendon,),
    "found": (found_again,),
    "actuator_moment": (transmission,),
    "crb": (crb,),
    "M": (crb,),
    "cdof_dot": (com_vel,),
    "rows": (tendon_velocity, com_vel, make_rows),  # of the present velocity
    "forces": (fwd_constraint,),
    "readings": (sensor_pos, sensor_vel, sensor_acc),
}


def resumed(m: Model, d: Data, reads: frozenset[str]) -> Data:
    """The data of a caller, with what a stage that reads these fields finds missing in it."""
    for name, stages in AGAIN.items():
        if name not in reads or getattr(d, name) is not None or not _exists(m, name):
            continue
        made = d
        for stage in stages:
            declared = STAGES[stage.__name__]
            made = stage(m, resumed(m, made, declared.reads - declared.writes))
        d = d.replace(**{name: getattr(made, name)})
    return d


def missing(m: Model, d: Data, reads: frozenset[str]) -> Iterator[str]:
    """The fields that a stage with these reads needs, directly or to find others again."""
    for name in sorted(reads - ALWAYS - {"found"}):  # whether it is needed contacts_of knows
        if getattr(d, name) is not None or not _exists(m, name):
            continue
        if name in AGAIN:
            for stage in AGAIN[name]:
                declared = STAGES[stage.__name__]
                yield from missing(m, d, declared.reads - declared.writes)
        elif name in Data.fields:
            yield name


def _exists(m: Model, name: str) -> bool:
    """Forces are a working value where they do not follow from `qacc`, readings of sensors with
    buffers."""
    if name == "readings":
        return len(sensor_buffers(m).owner) > 0
    return name != "forces" or m.lists_row_forces
