"""Parser of the command line: arguments of each command, suggestions for unknown ones."""

import argparse
import re
import sys
from typing import Any, NoReturn

from jaxsim.assets.source.limits import LIMITS
from jaxsim.cli.input.values import (
    parse_count,
    parse_index,
    parse_limit,
    parse_port,
    parse_positive,
    parse_size,
)
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
  jaxsim export motion.npz --to usd
  jaxsim compare robot.xml
  jaxsim profile robot.xml
  jaxsim compile robot.xml --out robot.jxm
  jaxsim optimize swingup.toml --set method=cem --out motion.npz --plot motion.png
  jaxsim mpc configs/mpc/cartpole.toml --realtime --view
  jaxsim train configs/learn/cartpole_swingup.toml --out runs/cartpole
  jaxsim play runs/cartpole
  jaxsim sweep configs/learn/cartpole_swingup.toml --over seed=0:8 --jobs 2
"""

_MODEL_HELP = "a model in MJCF, or one that `jaxsim compile` wrote"


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


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="jaxsim",
        description="Simulates MuJoCo models, thousands of worlds at a time, in JAX.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jaxsim {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parser.commands = commands
    _add_info(commands)
    _add_rollout(commands)
    _add_measurements(commands)
    _add_compile(commands)
    _add_view(commands)
    _add_render(commands)
    _add_plot(commands)
    _add_export(commands)
    _add_files(commands)
    _add_sweep(commands)
    return parser


def _add_info(commands: Any) -> None:
    """Add the command that describes a model."""
    info = _add_command(commands, "info", "describe a model and what it costs")
    _share(info, "model")
    info.add_argument(
        "--program",
        action="store_true",
        help="describe the program of a step: stages, matrix forms, kernels, capacities, size",
    )
    info.add_argument(
        "--worlds",
        type=parse_count,
        default=1024,
        help="parallel worlds of --program (default 1024)",
    )
    info.add_argument(
        "--lower", action="store_true", help="--program with the number of instructions"
    )


def _add_rollout(commands: Any) -> None:
    """Add the command that simulates many worlds."""
    run = _add_command(commands, "rollout", "simulate many worlds")
    _share(run, "model")
    run.add_argument(
        "--worlds", type=parse_count, default=1024, help="parallel worlds (default 1024)"
    )
    run.add_argument("--steps", type=parse_count, default=1000, help="steps of each (default 1000)")
    run.add_argument(
        "--ctrl",
        default="random",
        metavar="random|zero|FILE.npz",
        help="controls; a file has an array 'ctrl' of shape (steps, nu) or (steps, worlds, nu)",
    )
    _share(run, "--key")
    run.add_argument("--out", metavar="FILE.npz", help="write the motion of all worlds here")
    run.add_argument(
        "--record", default="", metavar="NAME,...", help="more fields to record, such as sensordata"
    )
    run.add_argument(
        "--every", type=parse_count, default=1, help="steps between records (default 1)"
    )
    run.add_argument(
        "--seed", type=int, default=0, help="random seed for `--ctrl random` (default 0)"
    )
    _share(run, "--contacts", "--float64")
    _add_distributed(run)


def _add_measurements(commands: Any) -> None:
    """Add the commands that measure differences from MuJoCo, and times."""
    compare = _add_command(commands, "compare", "compare a model with MuJoCo, stage by stage")
    compare.add_argument("model", metavar="MODEL.xml")
    compare.add_argument(
        "--steps", type=parse_count, default=100, help="steps of the longest rollout (default 100)"
    )
    _share(compare, "--key")
    compare.add_argument("--seed", type=int, default=0, help="random seed of the state (default 0)")
    compare.add_argument("--float32", action="store_true", help="single precision")

    times = _add_command(commands, "profile", "measure each stage of a step on the device")
    _share(times, "model")
    times.add_argument(
        "--worlds", type=parse_count, default=128, help="parallel worlds (default 128)"
    )
    times.add_argument(
        "--steps", type=parse_count, default=100, help="steps before measuring (default 100)"
    )
    times.add_argument(
        "--seconds", type=parse_positive, default=0.1, help="time per stage (default 0.1)"
    )
    _share(times, "--key", "--seed", "--contacts", "--float64")


def _add_compile(commands: Any) -> None:
    """Add the command that saves a compiled model."""
    save = _add_command(commands, "compile", "save a compiled model that loads without compiling")
    save.add_argument("model", metavar="MODEL.xml")
    save.add_argument("--out", metavar="MODEL.jxm", help="file to write (default: MODEL.jxm)")
    _share(save, "--contacts", "--float64")


def _add_view(commands: Any) -> None:
    """Add the command that shows a model or a recorded motion in the browser."""
    show = _add_command(commands, "view", "show a model or a recorded motion in the browser")
    _share(show, "file", "--model")
    show.add_argument("--worlds", type=parse_count, help="worlds to show (default: at most 64)")
    show.add_argument("--ghosts", action="store_true", help="overlay the worlds in one scene")
    show.add_argument(
        "--out", metavar="PAGE.html", help="write a standalone page instead of serving one"
    )
    show.add_argument("--port", type=parse_port, help="TCP port (default: 8080, or the next free)")
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
    _share(show, "--float64")


def _add_render(commands: Any) -> None:
    """Add the command that renders images and videos."""
    picture = _add_command(
        commands, "render", "render a model or a recorded motion to an image or a video"
    )
    _share(picture, "file")
    picture.add_argument("--out", metavar="FILE", help=".png, .jpg, .gif or .mp4 (default: .png)")
    picture.add_argument(
        "--camera", metavar="NAME", help="camera name or id (default: frames the bodies)"
    )
    picture.add_argument(
        "--size",
        type=parse_size,
        metavar="WxH",
        help="image size per world (default: the camera's resolution, 640x480, or 320x240 for a "
        "mosaic or a video)",
    )
    picture.add_argument(
        "--worlds", type=parse_count, default=1, help="worlds in a mosaic (default 1)"
    )
    _share(picture, "--model", "--key")
    picture.add_argument(
        "--seconds", type=parse_positive, help="length of a video, or time of an image"
    )
    picture.add_argument(
        "--fps",
        type=parse_positive,
        help="frames per second (default 60, 50 for .gif, or those of the motion if fewer)",
    )
    picture.add_argument(
        "--samples", type=parse_count, default=2, help="N x N rays per pixel (default 2)"
    )
    _share(picture, "--seed", "--float64")


def _add_plot(commands: Any) -> None:
    """Add the command that plots curves."""
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
    _share(curves, "--model")


def _add_export(commands: Any) -> None:
    """Add the command that writes a recorded motion in other formats."""
    other = _add_command(commands, "export", "write a recorded motion for another program")
    other.add_argument("file", metavar="MOTION.npz")
    other.add_argument(
        "--to",
        required=True,
        choices=("rerun", "usd", "mcap", "gltf"),
        help="format: Rerun, USD, MCAP (Foxglove) or glTF; docs/view.md lists what each carries",
    )
    other.add_argument(
        "--out",
        metavar="FILE",
        help="file to write: .rrd, .usdz (or .usd, .usdc, .usda), .mcap, .glb (default: MOTION "
        "with this ending)",
    )
    other.add_argument(
        "--worlds", type=parse_count, default=1, help="worlds side by side (default 1)"
    )
    other.add_argument(
        "--fps",
        type=parse_positive,
        help="frames per second (default 60, or those of the motion if fewer)",
    )
    _share(other, "--model", "--float64")


def _add_files(commands: Any) -> None:
    """Add the commands that take a configuration file, and `play`, which shows the result of
    one."""
    seek = _add_command(commands, "optimize", "optimize the controls of a motion")
    seek.add_argument("config", metavar="CONFIG.toml", help="the problem: docs/control.md")
    seek.add_argument("--out", metavar="FILE.npz", help="write the motion here")
    seek.add_argument("--plot", metavar="FILE.png", help="plot costs, motion and controls here")
    _share(seek, "--float64")
    _add_tier(seek)
    _settable(seek, "iterations=20")

    _add_mpc(commands)

    learn = _add_command(commands, "train", "train a policy by reinforcement learning")
    learn.add_argument(
        "config", metavar="CONFIG.toml", help="the settings; with --resume a run folder"
    )
    learn.add_argument("--out", metavar="FOLDER", help="run folder (default: runs/CONFIG)")
    learn.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    _add_tier(learn)
    _add_distributed(learn)
    _settable(learn, "worlds.count=256")

    play = _add_command(commands, "play", "evaluate a trained policy, and record it")
    play.add_argument("run", metavar="FOLDER", help="run folder written by `jaxsim train`")
    play.add_argument("--episodes", type=parse_count, default=8, help="(default 8)")
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
    _share(search, "--float64")
    _add_tier(search)
    _settable(search, "fit.starts=16")


def _add_mpc(commands: Any) -> None:
    """Add the command that controls a plant by a planner."""
    loop = _add_command(commands, "mpc", "control a plant by a planner that replans in real time")
    loop.add_argument("config", metavar="CONFIG.toml", help="the control loop: docs/mpc.md")
    loop.add_argument(
        "--realtime",
        action="store_true",
        help="advance the plant by the clock, and count late plans (default: simulated time)",
    )
    loop.add_argument(
        "--out", metavar="FOLDER", help="write the motion and the figures of the run here"
    )
    loop.add_argument(
        "--view", action="store_true", help="show it live in the browser, in real time"
    )
    loop.add_argument(
        "--port", type=parse_port, help="TCP port of --view (default: 8080, or the next free)"
    )
    _share(loop, "--float64")
    _add_tier(loop)
    _settable(loop, "horizon=20")


def _add_sweep(commands: Any) -> None:
    """Add the command that trains for each combination of settings."""
    sweep = _add_command(commands, "sweep", "train for each combination of settings")
    sweep.add_argument("config", metavar="CONFIG.toml", help="the settings of `jaxsim train`")
    sweep.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="NAME=VALUES",
        help="a setting and its values: an array of TOML, 'ppo.hidden=[[64,64],[128]]', a range "
        "of integers, seed=0:8, or one value; repeat it for another setting",
    )
    sweep.add_argument("--out", metavar="FOLDER", help="sweep folder (default: runs/CONFIG-sweep)")
    sweep.add_argument(
        "--jobs",
        type=parse_count,
        metavar="N",
        help="trainings at a time (default: one for each GPU, at least 1)",
    )
    what = sweep.add_mutually_exclusive_group()
    what.add_argument("--only", type=parse_index, metavar="K", help="train point K, from 0")
    what.add_argument("--slurm", metavar="FILE", help="write a Slurm job array, and train nothing")
    what.add_argument("--table", action="store_true", help="write the table, and train nothing")
    sweep.known += ["--only", "--slurm", "--table"]
    _add_tier(sweep)
    _settable(sweep, "steps=100_000")


def _share(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add arguments that several commands have."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def _add_distributed(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that can run in several processes."""
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="divide the worlds among all devices of all processes that Slurm, MPI, Kubernetes or "
        "a cloud TPU has started: docs/distributed.md",
    )
    parser.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        help="address of process 0, for processes that were started by hand",
    )
    parser.add_argument("--processes", type=parse_count, metavar="N", help="number of processes")
    parser.add_argument(
        "--process", type=parse_index, metavar="I", help="index of this process, from 0"
    )
    parser.add_argument(
        "--heartbeat",
        type=parse_count,
        default=100,
        metavar="SECONDS",
        help="seconds after which a process without a sign of life ends the others (default 100)",
    )


def _add_tier(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tier",
        choices=("auto", "fast", "optimized"),
        default="auto",
        help="compile quickly and optimize in the background (auto), or one of them alone, with "
        "the same bits in each run",
    )


def _settable(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"override a setting of the file, such as {example}",
    )


def _add_command(commands: Any, name: str, purpose: str) -> _Parser:
    """Return the parser of a command, with the options that all commands have."""
    parser: _Parser = commands.add_parser(name, help=purpose)
    parser.add_argument(
        "--limit",
        type=parse_limit,
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


# Arguments that several commands have.
_SHARED: dict[str, dict[str, Any]] = {
    "model": {"metavar": "MODEL.xml", "help": _MODEL_HELP},
    "file": {"metavar": "MODEL.xml|MOTION.npz", "help": f"{_MODEL_HELP}; or a motion"},
    "--model": {"metavar": "MODEL.xml", "help": "model file, if it was moved"},
    "--key": {"metavar": "NAME", "help": "start from this keyframe"},
    "--contacts": {"type": parse_count, "help": "contact capacity of a world"},
    "--seed": {"type": int, "default": 0, "help": "random seed of controls (default 0)"},
    "--float64": {"action": "store_true", "help": "double precision"},
}
