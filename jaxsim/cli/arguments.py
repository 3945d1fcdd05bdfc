"""Arguments of each command of the command line."""

import argparse
from typing import Any

from jaxsim.cli.input.parser import (
    Parser,
    add_command,
    add_distributed,
    add_settings,
    add_tier,
    share,
)
from jaxsim.cli.input.values import (
    parse_count,
    parse_index,
    parse_port,
    parse_positive,
    parse_size,
)
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
  jaxsim collect runs/cartpole --out data/cartpole --episodes 1000 --noise 0.1
  jaxsim sweep configs/learn/cartpole_swingup.toml --over seed=0:8 --jobs 2
"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Parser(
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
    info = add_command(commands, "info", "describe a model and what it costs")
    share(info, "model")
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
    run = add_command(commands, "rollout", "simulate many worlds")
    share(run, "model")
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
    share(run, "--key")
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
    share(run, "--contacts", "--float64")
    add_distributed(run)


def _add_measurements(commands: Any) -> None:
    """Add the commands that measure differences from MuJoCo, and times."""
    compare = add_command(commands, "compare", "compare a model with MuJoCo, stage by stage")
    compare.add_argument("model", metavar="MODEL.xml")
    compare.add_argument(
        "--steps", type=parse_count, default=100, help="steps of the longest rollout (default 100)"
    )
    share(compare, "--key")
    compare.add_argument("--seed", type=int, default=0, help="random seed of the state (default 0)")
    compare.add_argument("--float32", action="store_true", help="single precision")

    times = add_command(commands, "profile", "measure each stage of a step on the device")
    share(times, "model")
    times.add_argument(
        "--worlds", type=parse_count, default=128, help="parallel worlds (default 128)"
    )
    times.add_argument(
        "--steps", type=parse_count, default=100, help="steps before measuring (default 100)"
    )
    times.add_argument(
        "--seconds", type=parse_positive, default=0.1, help="time per stage (default 0.1)"
    )
    share(times, "--key", "--seed", "--contacts", "--float64")


def _add_compile(commands: Any) -> None:
    """Add the command that saves a compiled model."""
    save = add_command(commands, "compile", "save a compiled model that loads without compiling")
    save.add_argument("model", metavar="MODEL.xml")
    save.add_argument("--out", metavar="MODEL.jxm", help="file to write (default: MODEL.jxm)")
    share(save, "--contacts", "--float64")


def _add_view(commands: Any) -> None:
    """Add the command that shows a model or a recorded motion in the browser."""
    show = add_command(commands, "view", "show a model or a recorded motion in the browser")
    share(show, "file", "--model")
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
    share(show, "--float64")


def _add_render(commands: Any) -> None:
    """Add the command that renders images and videos."""
    picture = add_command(
        commands, "render", "render a model or a recorded motion to an image or a video"
    )
    share(picture, "file")
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
    share(picture, "--model", "--key")
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
    share(picture, "--seed", "--float64")


def _add_plot(commands: Any) -> None:
    """Add the command that plots curves."""
    curves = add_command(commands, "plot", "plot fields of a recorded motion as curves")
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
    share(curves, "--model")


def _add_export(commands: Any) -> None:
    """Add the command that writes a recorded motion in other formats."""
    other = add_command(commands, "export", "write a recorded motion for another program")
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
    share(other, "--model", "--float64")


def _add_files(commands: Any) -> None:
    """Add the commands that take a configuration file, and `play`, which shows the result of
    one."""
    seek = add_command(commands, "optimize", "optimize the controls of a motion")
    seek.add_argument("config", metavar="CONFIG.toml", help="the problem: docs/control.md")
    seek.add_argument("--out", metavar="FILE.npz", help="write the motion here")
    seek.add_argument("--plot", metavar="FILE.png", help="plot costs, motion and controls here")
    share(seek, "--float64")
    add_tier(seek)
    add_settings(seek, "iterations=20")

    _add_mpc(commands)

    learn = add_command(commands, "train", "train a policy by reinforcement learning")
    learn.add_argument(
        "config", metavar="CONFIG.toml", help="the settings; with --resume a run folder"
    )
    learn.add_argument("--out", metavar="FOLDER", help="run folder (default: runs/CONFIG)")
    learn.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    learn.add_argument(
        "--view", action="store_true", help="show worlds and the return in the browser"
    )
    learn.add_argument(
        "--view-worlds", type=parse_count, metavar="N", help="worlds of --view (default 8)"
    )
    learn.add_argument(
        "--port", type=parse_port, help="TCP port of --view (default: 8080, or the next free)"
    )
    add_tier(learn, "optimized")
    add_distributed(learn)
    add_settings(learn, "worlds.count=256")

    play = add_command(commands, "play", "evaluate a trained policy, and record it")
    play.add_argument("run", metavar="FOLDER", help="run folder written by `jaxsim train`")
    play.add_argument("--episodes", type=parse_count, default=8, help="(default 8)")
    play.add_argument(
        "--checkpoint", type=int, metavar="STEP", help="checkpoint to load (default: the last)"
    )
    play.add_argument("--seed", type=int, default=0, help="random seed of episodes (default 0)")
    play.add_argument("--out", metavar="FILE.npz", help="write the motion of the best seed here")

    _add_collect(commands)

    search = add_command(commands, "identify", "fit parameters of a model to recordings")
    search.add_argument("config", metavar="CONFIG.toml", help="the settings")
    search.add_argument(
        "--data",
        nargs="+",
        default=[],
        metavar="FILE",
        help="recordings (.csv, .npz) that replace those in the file",
    )
    search.add_argument("--out", metavar="FOLDER", help="result folder (default: runs/CONFIG)")
    share(search, "--float64")
    add_tier(search)
    add_settings(search, "fit.starts=16")


def _add_collect(commands: Any) -> None:
    """Add the command that writes a dataset for offline learning."""
    data = add_command(commands, "collect", "write episodes of a trained policy as a dataset")
    data.add_argument("run", metavar="FOLDER", help="run folder written by `jaxsim train`")
    data.add_argument(
        "--out", required=True, metavar="FOLDER", help="folder of the dataset: docs/dataset.md"
    )
    data.add_argument("--episodes", type=parse_count, default=1000, help="(default 1000)")
    data.add_argument(
        "--worlds", type=parse_count, default=64, help="episodes that run at a time (default 64)"
    )
    data.add_argument(
        "--checkpoint", type=int, metavar="STEP", help="checkpoint to load (default: the last)"
    )
    data.add_argument(
        "--policy", type=parse_index, metavar="I", help="seed of the run that acts (default: best)"
    )
    data.add_argument(
        "--noise",
        type=float,
        default=0.0,
        metavar="SIGMA",
        help="Gaussian noise of actions, in half ranges (default 0)",
    )
    data.add_argument(
        "--random",
        type=float,
        default=0.0,
        metavar="P",
        help="probability of a uniformly random action instead (default 0)",
    )
    data.add_argument("--states", action="store_true", help="write qpos and qvel too")
    data.add_argument(
        "--shard-size",
        type=parse_positive,
        default=64.0,
        metavar="MB",
        help="largest size of a file before compression (default 64)",
    )
    data.add_argument("--resume", action="store_true", help="continue a dataset")
    share(data, "--seed")
    add_distributed(data)


def _add_mpc(commands: Any) -> None:
    """Add the command that controls a plant by a planner."""
    loop = add_command(commands, "mpc", "control a plant by a planner that replans in real time")
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
    share(loop, "--float64")
    add_tier(loop)
    add_settings(loop, "horizon=20")


def _add_sweep(commands: Any) -> None:
    """Add the command that trains for each combination of settings."""
    sweep = add_command(commands, "sweep", "train for each combination of settings")
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
    add_tier(sweep, "optimized")
    add_settings(sweep, "steps=100_000")
