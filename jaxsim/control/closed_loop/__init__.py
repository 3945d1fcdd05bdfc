"""Control loops as files: a planner that replans at a fixed rate, and its plant."""

from jaxsim.control.closed_loop.program import LoopProgram as LoopProgram
from jaxsim.control.closed_loop.read import ClosedLoop as ClosedLoop
from jaxsim.control.closed_loop.read import read_closed_loop as read_closed_loop
from jaxsim.control.closed_loop.run import run_realtime as run_realtime
from jaxsim.control.closed_loop.run import run_simulated as run_simulated
from jaxsim.control.closed_loop.run_log import Run as Run
