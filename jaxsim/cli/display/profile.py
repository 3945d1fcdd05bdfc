"""`jaxsim profile MODEL.xml`: measure each stage of a step on the device."""

import argparse

import jax

from jaxsim.batch.profile import profile
from jaxsim.batch.program import BatchProgram, replicate
from jaxsim.cli.input.controls import make_control
from jaxsim.cli.user_error import InputProblem
from jaxsim.io.load import load_model
from jaxsim.io.phase import named_phase
from jaxsim.physics.public.make_data import make_data, reset_data_keyframe


def profile_model(args: argparse.Namespace) -> int:
    """Print the times of the stages, measured after some steps with random controls."""
    m = load_model(args.model, contacts=args.contacts)
    d = make_data(m)
    if args.key is not None:
        try:
            d = reset_data_keyframe(m, d, args.key)
        except ValueError as error:
            raise InputProblem(f"--key: {error}") from None
    d = replicate(d, args.worlds)
    ctrl = make_control("random", m, args.worlds, args.steps, args.seed)
    program = BatchProgram(m, d, ctrl, size=args.steps)
    for part in program.run(d, args.steps):
        d = part.d
    print(args.model, flush=True)
    with named_phase("compile and measure the stages"):
        table = profile(m, jax.device_get(d), args.seconds)
    print(table)
    return 0
