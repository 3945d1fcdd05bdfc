"""`jaxsim export motion.npz --to usd`: write a motion in the file format of another program."""

import argparse
from pathlib import Path

from jaxsim.cli.input.recorded_motion import read_motion, required_model_of
from jaxsim.cli.input.resource_limits import check_writable
from jaxsim.cli.progress import format_bytes
from jaxsim.cli.user_error import InputProblem, convert_drawing_errors
from jaxsim.io.load import load_model
from jaxsim.io.phase import named_phase
from jaxsim.view.export.formats import FORMATS, check_format, export_motion


def export(args: argparse.Namespace) -> int:
    """Write a motion in another format."""
    out = args.out or str(Path(args.file).with_suffix(FORMATS[args.to].suffixes[0]))
    try:
        check_format(args.to, out)
    except ValueError as error:
        raise InputProblem(f"--out: {error}") from None
    check_writable("--out", out)
    motion = read_motion(args.file)
    m = load_model(required_model_of(args.file, motion, args.model))
    with convert_drawing_errors(out), named_phase("compile and export"):
        try:
            made = export_motion(m, motion, out, to=args.to, worlds=args.worlds, fps=args.fps)
        except ValueError as error:
            raise InputProblem(f"{args.file}: {error}") from None
    number = f"{made.frames} frame{'s' * (made.frames != 1)}, {made.bodies} bodies"
    print(f"{'wrote':11} {out}: {number}, {format_bytes(Path(out).stat().st_size)}")
    for what in made.left_out:
        print(f"{'left out':11} {what}")
    return 0
