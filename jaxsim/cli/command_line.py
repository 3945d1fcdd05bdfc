"""Run a command of the command line, and report errors as one line and an exit code.

Exit codes:

    0    success
    1    a training of a sweep has failed; its log has the reason
    2    wrong input: the line on stderr names the fault, its location and the remedy
    3    a process of a run in several processes (`--distributed`) has failed
    130  interrupted; no partial file is left
    143  stopped by SIGTERM, 129 by SIGHUP; no partial file is left
"""

import argparse
import contextlib
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TextIO

from jaxsim.assets.source.limits import limits
from jaxsim.cli.arguments import make_parser
from jaxsim.cli.process.signals import Stopped, convert_stop_signals, end_process
from jaxsim.cli.progress import Phases
from jaxsim.cli.user_error import InputProblem, ProcessProblem
from jaxsim.errors import InputError, UnsupportedWarning
from jaxsim.escape import block
from jaxsim.io.phase import listening
from jaxsim.optional import MissingExtra

# Module and function of each command; imported when it is run, so that `--help` and wrong arguments
# respond at once.
_COMMANDS = {
    "info": "jaxsim.cli.info:info",
    "rollout": "jaxsim.cli.rollout:run_rollout",
    "compare": "jaxsim.cli.compare:compare",
    "profile": "jaxsim.cli.display.profile:profile_model",
    "compile": "jaxsim.cli.compile:compile_model",
    "view": "jaxsim.cli.display.view:view",
    "render": "jaxsim.cli.display.render:render_file",
    "plot": "jaxsim.cli.display.plot:plot",
    "export": "jaxsim.cli.display.export:export",
    "optimize": "jaxsim.cli.optimize:optimize",
    "mpc": "jaxsim.cli.mpc:mpc",
    "train": "jaxsim.cli.train:train_from_file",
    "play": "jaxsim.cli.train:play",
    "collect": "jaxsim.cli.collect:collect_episodes",
    "sweep": "jaxsim.cli.sweep:sweep_settings",
    "identify": "jaxsim.cli.identify:identify",
}

# Commands that divide worlds or samples among the cores of a CPU.
_ON_ALL_CORES = ("rollout", "mpc")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    if argv is None:
        _relax_garbage_collection()
    with _visible_output():
        code = _run_and_report(make_parser().parse_args(argv))
    if argv is None and (code > 128 or _is_optimizing() or _is_connected()):
        # No caller needs this process: end it at once, because taking down JAX takes seconds, and
        # waits for other processes.
        end_process(code)
    return code


def _relax_garbage_collection() -> None:
    """Let the garbage collector look for cycles less often, and not among imported objects.

    Tracing makes millions of objects that live; it takes about a tenth less time.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 10)


def _is_optimizing() -> bool:
    """Return whether a program is still being optimized, which nothing will call any more."""
    module = sys.modules.get("jaxsim.batch.tiered_program")
    return module is not None and module.is_compiling()


def _is_connected() -> bool:
    """Return whether this process has failed and is still connected with others."""
    jax = sys.modules.get("jax")
    return jax is not None and jax.distributed.is_initialized()


def _run_and_report(args: argparse.Namespace) -> int:
    """Run a command and report its errors; return the exit code."""
    # `info` lists unsupported features, and the other commands end with an error.
    warnings.simplefilter("ignore", UnsupportedWarning)
    try:
        with convert_stop_signals(), limits(**dict(args.limit)):
            return _run_command(args)
    except (InputError, InputProblem, MissingExtra) as error:
        _print_message(str(error))
        return 2
    except ProcessProblem as error:
        if str(error):
            _print_message(str(error))
        return error.code
    except Stopped as stopped:
        _print_message(f"\nstopped by {stopped}")
        return 128 + stopped.number
    except KeyboardInterrupt:
        _print_message("\ninterrupted")
        return 130
    except BrokenPipeError:  # the reader of the output, such as `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # the disk is full, or a folder was deleted
        file = "" if error.filename is None else f"{error.filename}: "
        _print_message(f"{file}{error.strerror or error}")
        return 2


def _print_message(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be closed
        print(text, file=sys.stderr)


def _run_command(args: argparse.Namespace) -> int:
    """Prepare the process, import the module of a command and call its function; return the exit
    code."""
    if args.cache:
        from jaxsim.cli.cache import keep_programs

        keep_programs()
    if getattr(args, "float64", False):
        import jax

        jax.config.update("jax_enable_x64", True)
    if args.command in _ON_ALL_CORES:
        _use_all_cores()
    with _joined_processes(args), listening(Phases()):
        _load_plugins(args.plugins)
        module, function = _COMMANDS[args.command].split(":")
        run = getattr(importlib.import_module(module), function)
        code: int = run(args)
    return code


def _use_all_cores() -> None:
    """Make each core a device, unless the user has set their number.

    XLA runs small operations on one core. A process that has used JAX before keeps its devices.
    """
    import jax

    if jax.config.values["jax_num_cpu_devices"] == -1:
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", os.cpu_count())


def _joined_processes(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Return the context in which a command runs as one of several processes, if it asks for it."""
    if not hasattr(args, "distributed"):
        return contextlib.nullcontext()
    from jaxsim.cli.process.distributed import is_distributed, joined_processes

    return joined_processes(args) if is_distributed(args) else contextlib.nullcontext()


def _load_plugins(folders: Sequence[str]) -> None:
    """Load the plugins of some folders before a model that uses them is read."""
    if not folders:
        return
    from jaxsim.extend.registry import load_plugins

    for folder in folders:
        try:
            load_plugins(folder)
        except FileNotFoundError as error:
            raise InputProblem(f"--plugins: {error}") from None


class _Visible:
    """Text stream that escapes control characters, and characters its encoding cannot represent.

    Line breaks, tabs and the carriage returns of a progress bar are passed on; all other attributes
    are those of the underlying stream.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; return its length, as streams do."""
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        shown = block(text).encode(encoding, "backslashreplace").decode(encoding)
        self._stream.write(shown)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _visible_output() -> Iterator[None]:
    """Escape printed text and warnings while a command runs."""
    out: Any = _Visible(sys.stdout)
    err: Any = _Visible(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
