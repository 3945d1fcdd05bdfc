"""Parse the command line, run a command, and report errors as one line and an exit code.

Exit codes:

    0    success
    2    wrong input: the line on stderr names the fault, its location and the remedy
    130  interrupted; no partial file is left
    143  stopped by SIGTERM, 129 by SIGHUP; no partial file is left
"""

import argparse
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from jaxsim.assets.source.limits import LIMITS, limits
from jaxsim.cli.output.terminal import visible_output
from jaxsim.cli.progress import Phases
from jaxsim.cli.signals import Stopped, convert_stop_signals, end_process
from jaxsim.cli.user_error import InputProblem
from jaxsim.errors import InputError, UnsupportedWarning
from jaxsim.io.phase import listening
from jaxsim.optional import MissingExtra
from jaxsim.spelling import remedy
from jaxsim.version import __version__

EXAMPLES = """\
examples:
  jaxsim info robot.xml --program
  jaxsim rollout robot.xml --worlds 4096 --steps 1000 --out motion.npz
  jaxsim view robot.xml
  jaxsim view motion.npz
  jaxsim plot motion.npz --fields qpos,ctrl
  jaxsim render motion.npz --worlds 64 --out film.gif
  jaxsim compare robot.xml
  jaxsim profile robot.xml
  jaxsim compile robot.xml --out robot.jxm
  jaxsim optimize swingup.toml --set method=cem --out motion.npz --plot motion.png
  jaxsim train configs/learn/cartpole_swingup.toml --out runs/cartpole
  jaxsim play runs/cartpole
"""

_MAX_PICTURE_PIXELS = 8192  # largest width or height of an image
_MAX_PORT = 65535
_MODEL_HELP = "a model in MJCF, or one that `jaxsim compile` wrote"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    with visible_output():
        code = _run_and_report(_parser().parse_args(argv))
    if argv is None and code > 128:
        end_process(code)  # the process is ours: taking down JAX would take seconds
    return code


def _run_and_report(args: argparse.Namespace) -> int:
    """Run a command and report its errors; return the exit code."""
    # `info` lists unsupported features, and the other commands end with an error.
    warnings.simplefilter("ignore", UnsupportedWarning)
    try:
        with convert_stop_signals(), limits(**dict(args.limit)), listening(Phases()):
            return _run_command(args)
    except (InputError, InputProblem, MissingExtra) as error:
        _print_message(str(error))
        return 2
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
        place = "" if error.filename is None else f"{error.filename}: "
        _print_message(f"{place}{error.strerror or error}")
        return 2


def _print_message(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be closed
        print(text, file=sys.stderr)


def _run_command(args: argparse.Namespace) -> int:
    # Import a command when it is run, so that `--help` and wrong arguments respond at once.
    if args.cache:
        from jaxsim.cli.cache import keep_programs

        keep_programs()
    _load_plugins(args.plugins)
    if args.command == "info":
        from jaxsim.cli.info import info

        return info(args)
    if args.command == "compare":
        from jaxsim.cli.compare import compare

        return compare(args)
    if args.command == "compile":
        return _run_compile(args)
    if args.command == "optimize":
        return _run_optimize(args)
    if args.command in ("train", "play"):
        from jaxsim.cli import train

        return train.train_from_file(args) if args.command == "train" else train.play(args)
    if args.command == "identify":
        return _run_identify(args)
    if args.command == "view":
        return _run_view(args)
    if args.command == "render":
        return _run_render(args)
    if args.command == "profile":
        return _run_profile(args)
    if args.command == "plot":
        from jaxsim.cli.display.plot import plot

        return plot(args)
    return _run_rollout(args)


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


def _run_identify(args: argparse.Namespace) -> int:
    import jax

    jax.config.update("jax_enable_x64", args.float64 or jax.config.values["jax_enable_x64"])
    from jaxsim.cli.identify import identify

    return identify(args)


def _run_compile(args: argparse.Namespace) -> int:
    import jax

    jax.config.update("jax_enable_x64", args.float64)
    from jaxsim.cli.compile import compile_model

    return compile_model(args)


def _run_optimize(args: argparse.Namespace) -> int:
    import jax

    if args.float64:
        jax.config.update("jax_enable_x64", True)
    from jaxsim.cli.optimize import optimize

    return optimize(args)


def _run_view(args: argparse.Namespace) -> int:
    import jax

    if args.float64:
        jax.config.update("jax_enable_x64", True)
    from jaxsim.cli.display.view import view

    return view(args)


def _run_render(args: argparse.Namespace) -> int:
    import jax

    if args.float64:
        jax.config.update("jax_enable_x64", True)
    from jaxsim.cli.display.render import render_file

    return render_file(args)


def _run_profile(args: argparse.Namespace) -> int:
    import jax

    if args.float64:
        jax.config.update("jax_enable_x64", True)
    from jaxsim.cli.display.profile import profile_model

    return profile_model(args)


def _run_rollout(args: argparse.Namespace) -> int:
    import jax

    if args.float64:
        jax.config.update("jax_enable_x64", True)
    # XLA runs small operations on one core, so each core becomes a device. A process that has used
    # JAX before keeps its devices.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", os.cpu_count())
    from jaxsim.cli.rollout import run_rollout

    return run_rollout(args)


class _Parser(argparse.ArgumentParser):
    """Argument parser that suggests the nearest command or option."""

    def __init__(self, *args: Any, **options: Any):
        self.known: list[str] = []  # option strings
        self.commands: Any = None
        super().__init__(*args, **options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument and record its option strings."""
        self.known += [n for n in names if isinstance(n, str) and n.startswith("--")]
        return super().add_argument(*names, **options)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; report the first unknown one."""
        first = next(iter(sys.argv[1:] if args is None else args), "")
        if first.startswith("--") and not any(name.startswith(first) for name in self.known):
            self.error(f"unrecognized arguments: {first}{remedy(first, self.known)}")
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            command = self.commands.choices[found.command]
            wrong = next((x for x in rest if x.startswith("-")), rest[0])
            near = remedy(wrong.partition("=")[0], command.known)
            command.error(f"unrecognized arguments: {' '.join(rest)}{near}")
        return found

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message; exit with 2."""
        wrong = re.search(r"argument COMMAND: invalid choice: '([^']*)'", message)
        if wrong and self.commands is not None:
            known = list(self.commands.choices)
            otherwise = "; there are: " + ", ".join(known)
            near = remedy(wrong[1], known, otherwise)
            message = f"argument COMMAND: invalid choice: '{wrong[1]}'{near}"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jaxsim",
        description="Simulates MuJoCo models, thousands of worlds at a time, in JAX.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jaxsim {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parser.commands = commands
    _add_models(commands)
    _add_pictures(commands)
    _add_files(commands)
    return parser


def _add_models(commands: Any) -> None:
    """Add the commands that take a model."""
    info = _add_command(commands, "info", "describe a model and what it costs")
    info.add_argument("model", metavar="MODEL.xml", help=_MODEL_HELP)
    info.add_argument(
        "--program",
        action="store_true",
        help="describe the program of a step: stages, matrix forms, kernels, capacities, size",
    )
    info.add_argument(
        "--worlds", type=_count, default=1024, help="parallel worlds of --program (default 1024)"
    )
    info.add_argument(
        "--lower", action="store_true", help="--program with the number of instructions"
    )

    run = _add_command(commands, "rollout", "simulate many worlds")
    run.add_argument("model", metavar="MODEL.xml", help=_MODEL_HELP)
    run.add_argument("--worlds", type=_count, default=1024, help="parallel worlds (default 1024)")
    run.add_argument("--steps", type=_count, default=1000, help="steps of each (default 1000)")
    run.add_argument(
        "--ctrl",
        default="random",
        metavar="random|zero|FILE.npz",
        help="controls; a file has an array 'ctrl' of shape (steps, nu) or (steps, worlds, nu)",
    )
    run.add_argument("--key", metavar="NAME", help="start from this keyframe")
    run.add_argument("--out", metavar="FILE.npz", help="write the motion of all worlds here")
    run.add_argument(
        "--record", default="", metavar="NAME,...", help="more fields to record, such as sensordata"
    )
    run.add_argument("--every", type=_count, default=1, help="steps between records (default 1)")
    run.add_argument(
        "--seed", type=int, default=0, help="random seed for `--ctrl random` (default 0)"
    )
    run.add_argument("--contacts", type=_count, help="contact capacity of a world")
    run.add_argument("--float64", action="store_true", help="double precision")

    compare = _add_command(commands, "compare", "compare a model with MuJoCo, stage by stage")
    compare.add_argument("model", metavar="MODEL.xml")
    compare.add_argument(
        "--steps", type=_count, default=100, help="steps of the longest rollout (default 100)"
    )
    compare.add_argument("--key", metavar="NAME", help="start from this keyframe")
    compare.add_argument("--seed", type=int, default=0, help="random seed of the state (default 0)")
    compare.add_argument("--float32", action="store_true", help="single precision")

    times = _add_command(commands, "profile", "measure each stage of a step on the device")
    times.add_argument("model", metavar="MODEL.xml", help=_MODEL_HELP)
    times.add_argument("--worlds", type=_count, default=128, help="parallel worlds (default 128)")
    times.add_argument(
        "--steps", type=_count, default=100, help="steps before measuring (default 100)"
    )
    times.add_argument(
        "--seconds", type=_parse_positive, default=0.1, help="time per stage (default 0.1)"
    )
    times.add_argument("--key", metavar="NAME", help="start from this keyframe")
    times.add_argument("--seed", type=int, default=0, help="random seed of controls (default 0)")
    times.add_argument("--contacts", type=_count, help="contact capacity of a world")
    times.add_argument("--float64", action="store_true", help="double precision")

    save = _add_command(commands, "compile", "save a compiled model that loads without compiling")
    save.add_argument("model", metavar="MODEL.xml")
    save.add_argument("--out", metavar="MODEL.jxm", help="file to write (default: MODEL.jxm)")
    save.add_argument("--contacts", type=_count, help="contact capacity of a world")
    save.add_argument("--float64", action="store_true", help="double precision")


def _add_pictures(commands: Any) -> None:
    """Add the commands that show a model or a recorded motion."""
    show = _add_command(commands, "view", "show a model or a recorded motion in the browser")
    show.add_argument("file", metavar="MODEL.xml|MOTION.npz", help=f"{_MODEL_HELP}; or a motion")
    show.add_argument("--model", metavar="MODEL.xml", help="model file, if it was moved")
    show.add_argument("--worlds", type=_count, help="worlds to show (default: at most 64)")
    show.add_argument("--ghosts", action="store_true", help="overlay the worlds in one scene")
    show.add_argument(
        "--out", metavar="PAGE.html", help="write a standalone page instead of serving one"
    )
    show.add_argument("--port", type=_parse_port, help="TCP port (default: 8080, or the next free)")
    show.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default 127.0.0.1); 0.0.0.0 for other machines: docs/view.md",
    )
    show.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="additional host name accepted from browsers, such as that of a proxy",
    )
    show.add_argument("--open", action="store_true", help="open it in the browser")
    show.add_argument("--float64", action="store_true", help="double precision")

    picture = _add_command(
        commands, "render", "render a model or a recorded motion to an image or a video"
    )
    picture.add_argument("file", metavar="MODEL.xml|MOTION.npz", help=f"{_MODEL_HELP}; or a motion")
    picture.add_argument("--out", metavar="FILE", help=".png, .jpg, .gif or .mp4 (default: .png)")
    picture.add_argument(
        "--camera", metavar="NAME", help="camera name or id (default: free camera)"
    )
    picture.add_argument(
        "--size",
        type=_parse_size,
        metavar="WxH",
        help="image size per world (default: the camera's resolution, or 320x240)",
    )
    picture.add_argument("--worlds", type=_count, default=1, help="worlds in a mosaic (default 1)")
    picture.add_argument("--model", metavar="MODEL.xml", help="model file, if it was moved")
    picture.add_argument("--key", metavar="NAME", help="start from this keyframe")
    picture.add_argument(
        "--seconds", type=_parse_positive, help="length of a video, or time of an image"
    )
    picture.add_argument(
        "--fps", type=_parse_positive, default=25, help="frames per second (default 25)"
    )
    picture.add_argument(
        "--samples", type=_count, default=2, help="N x N rays per pixel (default 2)"
    )
    picture.add_argument("--seed", type=int, default=0, help="random seed of controls (default 0)")
    picture.add_argument("--float64", action="store_true", help="double precision")

    curves = _add_command(commands, "plot", "plot fields of a recorded motion as curves")
    curves.add_argument("file", metavar="MOTION.npz")
    curves.add_argument(
        "--fields",
        default="qpos",
        metavar="NAME,...",
        help="fields to plot (default qpos); qpos:knee selects entries whose name contains knee",
    )
    curves.add_argument(
        "--out", metavar="FILE.png", help=".png, .svg or .pdf (default: MOTION.png)"
    )
    curves.add_argument("--world", type=int, default=0, help="index of the world (default 0)")
    curves.add_argument("--model", metavar="MODEL.xml", help="model file, if it was moved")


def _add_files(commands: Any) -> None:
    """Add the commands that take a configuration file, and `play`, which shows the result of
    one."""
    seek = _add_command(commands, "optimize", "optimize the controls of a motion")
    seek.add_argument("config", metavar="CONFIG.toml", help="the problem: docs/control.md")
    seek.add_argument("--out", metavar="FILE.npz", help="write the motion here")
    seek.add_argument("--plot", metavar="FILE.png", help="plot costs, motion and controls here")
    seek.add_argument("--float64", action="store_true", help="double precision")
    _settable(seek, "iterations=20")

    learn = _add_command(commands, "train", "train a policy by reinforcement learning")
    learn.add_argument(
        "config", metavar="CONFIG.toml", help="the settings; with --resume a run folder"
    )
    learn.add_argument("--out", metavar="FOLDER", help="run folder (default: runs/CONFIG)")
    learn.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    _settable(learn, "worlds.count=256")

    play = _add_command(commands, "play", "evaluate a trained policy, and record it")
    play.add_argument("run", metavar="FOLDER", help="run folder written by `jaxsim train`")
    play.add_argument("--episodes", type=_count, default=8, help="(default 8)")
    play.add_argument(
        "--checkpoint", type=int, metavar="STEP", help="checkpoint to load (default: the last)"
    )
    play.add_argument("--seed", type=int, default=0, help="random seed of episodes (default 0)")
    play.add_argument("--out", metavar="FILE.npz", help="write the motion of the best seed here")

    search = _add_command(commands, "identify", "fit parameters of a model to recordings")
    search.add_argument("config", metavar="CONFIG.toml", help="the settings")
    search.add_argument(
        "--data",
        nargs="+",
        default=[],
        metavar="FILE",
        help="recordings (.csv, .npz) that replace those in the file",
    )
    search.add_argument("--out", metavar="FOLDER", help="result folder (default: runs/CONFIG)")
    search.add_argument("--float64", action="store_true", help="double precision")
    _settable(search, "fit.starts=16")


def _settable(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"override a setting of the file, such as {example}",
    )


def _add_command(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    """Return the parser of a command, with the options that all commands have."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=purpose)
    parser.add_argument(
        "--limit",
        type=_limit,
        action="append",
        default=[],
        metavar="NAME=N",
        help=f"raise a limit on the sizes of input files: {', '.join(LIMITS)}",
    )
    parser.add_argument(
        "--plugins",
        action="append",
        default=[],
        metavar="FOLDER",
        help="run the Python files in this folder, which register plugins (docs/extend.md)",
    )
    parser.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="do not cache compiled programs between runs",
    )
    return parser


def _limit(text: str) -> tuple[str, int]:
    """Return a limit and its new value."""
    name, _, number = text.partition("=")
    if name not in LIMITS:
        known = ", ".join(LIMITS)
        raise argparse.ArgumentTypeError(f"there is no limit '{name}'; choose one of {known}")
    return name, _count(number)


def _parse_port(text: str) -> int:
    """Return a port number."""
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_MAX_PORT}, got '{text}'")
    return int(text)


def _parse_size(text: str) -> tuple[int, int]:
    """Return the width and height of text such as `320x240`."""
    parts = text.split("x")
    if len(parts) != 2 or not all(p.isdigit() and 0 < int(p) <= _MAX_PICTURE_PIXELS for p in parts):
        raise argparse.ArgumentTypeError(f"expected pixels such as 320x240, got '{text}'")
    return int(parts[0]), int(parts[1])


def _parse_positive(text: str) -> float:
    """Return a number above zero."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got '{text}'")
    return value


def _count(text: str) -> int:
    """Return a whole number of at least one."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return value
