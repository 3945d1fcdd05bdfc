"""`jaxsim profile MODEL.xml`: measure each stage of a step on the device."""

import argparse

import jax

from jaxsim.batch.profile import profile
from jaxsim.batch.program import BatchProgram, replicate
from jaxsim.batch.program_report import format_systems
from jaxsim.cli.input.controls import initial_data, make_control
from jaxsim.io.load import load_model
from jaxsim.io.phase import named_phase
from jaxsim.physics.pipeline.linear_systems import linear_systems


def profile_model(args: argparse.Namespace) -> int:
    """Print the times of the stages, measured after some steps with random controls."""
    m = load_model(args.model, contacts=args.contacts)
    d = replicate(initial_data(m, args.key), args.worlds)
    ctrl = make_control("random", m, args.worlds, args.steps, args.seed)
    program = BatchProgram(m, d, ctrl, size=args.steps)
    for part in program.run(d, args.steps):
        d = part.d
    print(args.model, flush=True)
    with named_phase("compile and measure the stages"):
        table = profile(m, jax.device_get(d), args.seconds)
    print(table)
    print(format_systems(linear_systems(m, args.worlds)))
    return 0
