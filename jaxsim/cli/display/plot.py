"""`jaxsim plot motion.npz --fields qpos,sensordata`: plot a recorded motion as curves."""

import argparse
from pathlib import Path

from jaxsim.cli.input.recorded_motion import model_file_of, read_motion
from jaxsim.cli.user_error import InputProblem, convert_drawing_errors
from jaxsim.io.load import load_model
from jaxsim.optional import require
from jaxsim.view.curves import draw_motion


def plot(args: argparse.Namespace) -> int:
    """Plot fields of a motion."""
    require("matplotlib", "view")
    motion = read_motion(args.file)
    fields = [name.strip() for name in args.fields.split(",") if name.strip()]
    if not fields:
        raise InputProblem("--fields: name at least one, such as qpos,ctrl")
    source = model_file_of(args.file, motion, args.model)
    m = None if source is None else load_model(source)
    out = args.out or str(Path(args.file).with_suffix(".png"))
    with convert_drawing_errors(out):
        try:
            draw_motion(motion, fields, out, m=m, world=args.world)
        except ValueError as error:
            raise InputProblem(f"{args.file}: {error}") from None
        except OSError as error:
            raise InputProblem(f"--out: {error}") from None
    if m is None:
        print(f"the model '{motion.header.get('model')}' was not found: numbers replace names")
    print(f"{'wrote':11} {out}: {', '.join(fields)}")
    return 0
