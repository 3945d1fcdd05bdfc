"""Public functions of a whole step, forward and inverse dynamics, of one world.

They compute everything they need from the state, for use under jit, vmap, grad and scan. Single
stages are in `jaxsim.stages`, functions of a state in `jaxsim.support`; split_step.py has the parts
of a step.
"""

from jaxsim.physics.inverse import inverse as _inverse
from jaxsim.physics.pipeline.forward import forward as _forward
from jaxsim.physics.public.wrapper import make_public
from jaxsim.physics.step import SLEEP_FAST_PATH
from jaxsim.physics.step import step as _step

step = make_public(_step, callbacks=True, fast_path=SLEEP_FAST_PATH)
forward = make_public(_forward, callbacks=True)
inverse = make_public(_inverse, callbacks=True, namespace="jaxsim")
