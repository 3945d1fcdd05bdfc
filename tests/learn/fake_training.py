"""A fast process that replaces `jaxsim train`: it copies the files of a run made before.

It takes the arguments of `jaxsim train` and prints them. The file of the point's name in the folder
`orders` changes what it does: "fail": end with an error; "die": be killed; "half": write the
settings, then stop the process that started it.
"""

import sys
from pathlib import Path

import numpy as np

from jaxsim.batch.trajectory import TrajectoryWriter
from jaxsim.io.config import config_text
from jaxsim.learn.curve import Curve, CurveRow
from jaxsim.learn.sweep.jobs import train_command
from jaxsim.learn.sweep.points import Point, Sweep

SETTINGS = 'task = "pendulum_swingup"\nsteps = 40\nevery = 10\nseeds = 2\n[ppo]\ngamma = 0.98\n'
SCRIPT = """\
import os, pathlib, shutil, signal, sys, time

here, arguments = pathlib.Path(__file__).parent, sys.argv[1:]
resumed = "--resume" in arguments
out = pathlib.Path(arguments[0] if resumed else arguments[arguments.index("--out") + 1])
order = here / "orders" / out.name
order = order.read_text() if order.exists() else ""
print("resumed" if resumed else "new", *arguments, "gpu", os.environ.get("CUDA_VISIBLE_DEVICES"))
if order == "fail":
    print("one\\rtwo\\nthree", file=sys.stderr)
    sys.exit(2)
if order == "die":
    os.kill(os.getpid(), signal.SIGKILL)
made = here / "made" / out.name
if order == "half":
    shutil.copy(made / "config.toml", out)
    signal.signal(signal.SIGTERM, lambda *_: (print("asked to stop", flush=True), sys.exit(143)))
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(60)
(here / "active" / out.name).touch()
print("active", len(list((here / "active").iterdir())))
time.sleep(0.3)
(here / "active" / out.name).unlink()
shutil.copytree(made, out, dirs_exist_ok=True)
"""


class FakeTraining:
    """The process, and the folder with its files."""

    def __init__(self, folder: Path):
        self.folder, self.settings = folder, folder / "pendulum.toml"
        self.settings.write_text(SETTINGS)
        (folder / "fake").write_text(SCRIPT)
        for name in ("orders", "made", "active"):
            (folder / name).mkdir()

    def command(self, sweep: Sweep, point: Point, options=()) -> list[str]:
        """The command of a point, as `train_command` returns it, with the faster program."""
        made = self.folder / "made" / point.name
        if not made.exists():
            finish(made, point)
        _, *arguments = train_command(sweep, point, options)[3:]
        return [sys.executable, "-S", str(self.folder / "fake"), *arguments]

    def order(self, name: str, what: str) -> None:
        (self.folder / "orders" / name).write_text(what)


def score_of(point: Point) -> float:
    """The mean score of a point."""
    return 100 * point.training.seed + point.training.ppo.gamma


def finish(folder: Path, point: Point) -> None:
    """Write the files of a finished run of two seeds."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config_text(point.training))
    step = point.training.steps
    (folder / "checkpoints" / str(step)).mkdir(parents=True)
    (folder / "checkpoints" / str(step) / "checksums.json").write_text("{}")
    score = score_of(point)
    rows = [
        CurveRow(step, 3.0 + seed, seed, score - 1 + 2 * seed, 0.0, 9.0, 0, 0.0, 0.0)
        for seed in range(2)
    ]
    Curve(folder, [rows[0].__class__(5, 1.0, 0, 1e9, 0.0, 9.0, 0, 0.0, 0.0), *rows])
    with TrajectoryWriter(folder / "motion.npz", {"worlds": 1, "actions": step}) as writer:
        writer.append({"qpos": np.zeros((3, 1, 2))})
