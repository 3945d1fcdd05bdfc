"""`jaxsim info MODEL.xml`: what a model has, be it MJCF or compiled."""

import argparse

from jaxsim.describe import describe
from jaxsim.load import load_model


def info(args: argparse.Namespace) -> int:
    """Prints a description of the model."""
    m = load_model(args.model)
    print(args.model)
    print(describe(m))
    return 0
