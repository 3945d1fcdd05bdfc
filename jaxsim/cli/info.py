"""`jaxsim info MODEL.xml`: describe a model, given as MJCF or compiled."""

import argparse

from jaxsim.io.load import load_model
from jaxsim.model.describe import describe
from jaxsim.physics.collision.candidates.report import collision_report


def info(args: argparse.Namespace) -> int:
    """Print a description of the model."""
    m = load_model(args.model)
    print(args.model)
    print("\n".join(text for text in (describe(m), collision_report(m)) if text))
    return 0
