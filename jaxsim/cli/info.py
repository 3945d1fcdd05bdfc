"""`jaxsim info MODEL.xml`: describe a model, given as MJCF or compiled, and its program."""

import argparse

from jaxsim.batch.program_report import program_report
from jaxsim.io.load import load_model
from jaxsim.model.describe import describe
from jaxsim.physics.collision.candidates.report import collision_report


def info(args: argparse.Namespace) -> int:
    """Print a description of the model; with `--program` also of the program of a step."""
    m = load_model(args.model)
    print(args.model)
    program = args.program or args.lower
    rest = str(program_report(m, args.worlds, lower=args.lower)) if program else collision_report(m)
    print("\n".join(text for text in (describe(m), rest) if text))
    return 0
