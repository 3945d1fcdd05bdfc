"""Split step, forward and inverse dynamics, between whose parts a program can set inputs.

MuJoCo's documentation, Programming: Simulation loop. Which results of earlier stages a part reads
follows from the table of stages; those that no Data carries are recomputed
(pipeline/recompute.py).
"""

from collections.abc import Callable

from jaxsim.cache import bounded_cache
from jaxsim.enums import IntegratorType, Stage
from jaxsim.model.callbacks import Callbacks
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.callback import call_control
from jaxsim.physics.inverse import inverse_forces
from jaxsim.physics.pipeline.forward import (
    from_actuation,
    from_control,
    to_position,
    velocity_stages,
)
from jaxsim.physics.pipeline.forward import run_step1 as until_control
from jaxsim.physics.pipeline.recompute import carried_fields
from jaxsim.physics.pipeline.row import StageFields, StageRow, combined_fields
from jaxsim.physics.pipeline.stages import STAGES, TO_ACCELERATION, TO_POSITION, TO_VELOCITY
from jaxsim.physics.public.wrapper import Step, make_public
from jaxsim.physics.step import reset_bad_state, step_after_forward

# Results that the stages add up, and that a Data need not have.
_ACCUMULATED = {"sensordata", "energy"}


def _results_read(before: tuple[StageRow, ...], after: tuple[StageRow, ...]) -> StageFields:
    """Return the results of some stages that the rest of a step reads."""
    rest = combined_fields(*after, *TO_ACCELERATION, STAGES["implicit"])
    return StageFields((combined_fields(*before).writes & rest.reads) - _ACCUMULATED)


# Results of earlier stages that the parts after a stage read.
_STAGE_INPUTS = {
    Stage.NONE: StageFields(),
    Stage.POS: _results_read(TO_POSITION, TO_VELOCITY),
    Stage.VEL: _results_read(TO_POSITION + TO_VELOCITY, ()),
}


def _step1(m: Model, d: Data) -> Data:
    """Run the first part of a step: all that follows from positions and velocities.

    A control callback is called at its end; or the caller sets controls and applied forces, and
    calls `step2`. Forces, accelerations and acceleration-stage sensors keep their values.
    Corresponds to `mj_step1` in MuJoCo.
    """
    return call_control(m, until_control(m, reset_bad_state(m, d)))


def _step2(m: Model, d: Data) -> Data:
    """Run the second part of a step: forces, acceleration, and the state one time step later.

    The integrator RK4, whose stages need the whole step, is replaced by Euler, as in MuJoCo. Values
    that no Data carries are recomputed; `make_data(m, keep=[..., jaxsim.step2])` keeps them.
    Corresponds to `mj_step2` in MuJoCo.
    """
    kind = IntegratorType(m.opt.integrator)
    # Forces with the new controls, then integrate.
    d = from_actuation(m, d)
    return step_after_forward(m, d, IntegratorType.EULER if kind == IntegratorType.RK4 else kind)


step1 = make_public(_step1, callbacks=True)
step2 = make_public(_step2, callbacks=True, fields=_STAGE_INPUTS[Stage.VEL], namespace="jaxsim")


def forward_skip(
    m: Model,
    d: Data,
    skipstage: Stage = Stage.NONE,
    skipsensor: bool = False,
    *,
    callbacks: Callbacks | None = None,
) -> Data:
    """Run the forward dynamics without stages whose results `d` already has.

    Corresponds to `mj_forwardSkip` in MuJoCo.

    Args:
      m: the model.
      d: a world; after `forward` at the same positions if these are skipped, and at the same
        velocities if these are.
      skipstage: NONE; POS: skip the position stages; VEL: skip the velocity stages too.
      skipsensor: keep sensors as they are.
      callbacks: user callbacks.

    Returns:
      Data with the results of `forward`.
    """
    rest = _make_remaining_stages(from_control, Stage(skipstage), bool(skipsensor))
    return rest(m, d, callbacks=callbacks)


def inverse_skip(
    m: Model,
    d: Data,
    skipstage: Stage = Stage.NONE,
    skipsensor: bool = False,
    *,
    callbacks: Callbacks | None = None,
) -> Data:
    """Run the inverse dynamics without stages whose results `d` already has.

    Corresponds to `mj_inverseSkip` in MuJoCo.

    Args:
      m: the model.
      d: a world with `qacc`; otherwise as for `forward_skip`.
      skipstage, skipsensor, callbacks: see `forward_skip`.

    Returns:
      Data with the results of `inverse`.
    """
    rest = _make_remaining_stages(inverse_forces, Stage(skipstage), bool(skipsensor))
    return rest(m, d, callbacks=callbacks)


# Name of the public function that ends with a part, and what that part alone reads.
_LAST_PARTS = {
    from_control: ("forward_skip", StageFields()),
    inverse_forces: ("inverse_skip", StageFields.of("qacc")),
}


def _fields_of(last: Callable, skipstage: Stage) -> StageFields:
    return _STAGE_INPUTS[skipstage].then(_LAST_PARTS[last][1])


@bounded_cache(64)
def _make_remaining_stages(last: Callable, skipstage: Stage, skipsensor: bool) -> Step:
    """Return the public function of the parts after a stage, which ends with `last`."""
    name, _ = _LAST_PARTS[last]
    if skipstage not in _STAGE_INPUTS:
        raise ValueError(f"{name}: skipstage: expected NONE, POS or VEL, got {skipstage.name}")
    # Stages that are not skipped.
    parts = (to_position, velocity_stages)[skipstage:]

    def rest(m: Model, d: Data) -> Data:
        for part in parts:
            d = part(m, d, not skipsensor)
        return last(m, d, not skipsensor)

    rest.__name__ = name
    return make_public(rest, callbacks=True, fields=_fields_of(last, skipstage))


# Fields for `make_data(keep=[...])`: all that the latest part reads.
vars(forward_skip)["carries"] = carried_fields(_fields_of(from_control, Stage.VEL))
vars(inverse_skip)["carries"] = carried_fields(_fields_of(inverse_forces, Stage.VEL))
