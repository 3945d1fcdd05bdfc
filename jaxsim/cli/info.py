"""`jaxsim info MODEL.xml`: what a model has, be it MJCF or compiled."""

import argparse

from jaxsim.io.load import load_model
from jaxsim.model.describe import describe


def info(args: argparse.Namespace) -> int:
    """Prints a description of the model."""
    m = load_model(args.model)
    print(args.model)
    print(describe(m))
    return 0
