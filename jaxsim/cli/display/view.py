"""`jaxsim view MODEL.xml`, `jaxsim view motion.npz`: show a model or a motion in the browser."""

import argparse
import contextlib
import os
import sys
import time
import warnings
import webbrowser
from contextlib import AbstractContextManager
from pathlib import Path

from jaxsim.batch.trajectory import Trajectory
from jaxsim.cli.input.recorded_motion import read_motion, required_model_of
from jaxsim.cli.user_error import InputProblem
from jaxsim.errors import UnsupportedError
from jaxsim.io.load import load_model
from jaxsim.model.allocate import check_supported
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.view.browser.access_control import is_loopback
from jaxsim.view.browser.live import Live
from jaxsim.view.browser.motion import motion_of
from jaxsim.view.browser.page import record
from jaxsim.view.browser.replay import Replay
from jaxsim.view.browser.server import EXPOSED_MESSAGE, ExposedWarning, HostUnknown, PortInUse
from jaxsim.view.browser.viewer import Viewer


def view(args: argparse.Namespace) -> int:
    """Show a model or a motion until interrupted, or write a standalone page."""
    require("viser", "view")  # fail before the work, not after it
    moving = Path(args.file).suffix == ".npz"
    if not moving:
        _check_model_only(args)
    motion = read_motion(args.file) if moving else None
    m = load_model(
        args.file if motion is None else required_model_of(args.file, motion, args.model)
    )
    if args.out is not None and motion is not None:
        return _write_page(args, m, motion)
    if not is_loopback(args.host):
        print(f"warning: {EXPOSED_MESSAGE.format(host=args.host)}", file=sys.stderr, flush=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExposedWarning)  # already reported above
            page = _open_page(args, m, motion)
    except PortInUse as error:
        raise InputProblem(f"--port: {error}") from None
    except HostUnknown as error:
        raise InputProblem(f"--host: {error}") from None
    except ValueError as error:
        raise InputProblem(f"{args.file}: {error}") from None
    try:
        with page as open_page:
            viewer = open_page if isinstance(open_page, Viewer) else open_page.viewer
            print(f"{args.file} is at {viewer.address} until Ctrl-C", flush=True)
            if args.open:
                webbrowser.open(viewer.address)
            with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to quit
                _wait()
            if isinstance(open_page, Live) and not open_page.simulation.ready:
                print("waiting for the compiler; Ctrl-C again leaves at once", flush=True)
    except KeyboardInterrupt:
        os._exit(130)  # a thread that is compiling cannot be stopped in another way
    return 0


def _check_model_only(args: argparse.Namespace) -> None:
    """Reject options that apply to motions only."""
    for asked, told in (
        (args.model, "--model: goes with a motion; give the model to view as the first argument"),
        (args.out, "--out: a page plays a motion; record one with `jaxsim rollout --out`"),
        (args.worlds, "--worlds: goes with a motion; a model runs as one world"),
        (args.ghosts or None, "--ghosts: goes with a motion; a model runs as one world"),
    ):
        if asked is not None:
            raise InputProblem(told)


def _wait() -> None:
    while True:
        time.sleep(1)


def _check_worlds(args: argparse.Namespace, m: Model, motion: Trajectory) -> None:
    there = motion_of(m, motion).worlds
    if args.worlds is not None and args.worlds > there:
        raise InputProblem(
            f"--worlds: asked for {args.worlds}, the motion has {there}; ask for at most {there}"
        )


def _open_page(
    args: argparse.Namespace, m: Model, motion: Trajectory | None
) -> AbstractContextManager[Viewer | Live | Replay]:
    where = {"port": args.port, "host": args.host, "names": args.allow_host}
    if motion is not None:
        _check_worlds(args, m, motion)
        return Replay(m, motion, ghosts=args.ghosts, worlds=args.worlds, **where)
    try:
        check_supported(m)
    except UnsupportedError as error:
        print(f"cannot be simulated, only looked at:\n{error}", flush=True)
        return Viewer(m, contacts=False, **where)
    return Live(m, source=args.file, **where)


def _write_page(args: argparse.Namespace, m: Model, motion: Trajectory) -> int:
    try:
        _check_worlds(args, m, motion)
        pictures = record(m, motion, args.out, worlds=args.worlds, ghosts=args.ghosts)
    except ValueError as error:
        raise InputProblem(f"{args.file}: {error}") from None
    except OSError as error:
        raise InputProblem(f"--out: {error}") from None
    size = Path(args.out).stat().st_size / 1e6
    print(f"{'wrote':11} {args.out}: {pictures} pictures, {size:.1f} MB")
    return 0
