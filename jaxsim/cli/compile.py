"""`jaxsim compile MODEL.xml --out MODEL.jxm`: save a compiled model that loads without
compiling."""

import argparse
import os
import time
from pathlib import Path

import jax

from jaxsim.assets.source.resource import is_uri
from jaxsim.cli.progress import format_bytes
from jaxsim.cli.user_error import InputProblem
from jaxsim.io.load import load_model
from jaxsim.io.save import save_model


def compile_model(args: argparse.Namespace) -> int:
    """Compile a model and save it."""
    if args.out is None and is_uri(args.model):
        raise InputProblem("--out: name the file to write, because the model is not a file")
    out = Path(args.model).with_suffix(".jxm") if args.out is None else Path(args.out)
    if out.resolve() == Path(args.model).resolve():
        raise InputProblem(f"--out: '{out}' is the model itself; name another file")
    jax.config.update("jax_enable_x64", args.float64)  # whatever the environment sets
    start = time.perf_counter()
    m = load_model(args.model, contacts=args.contacts)
    seconds = time.perf_counter() - start
    try:
        save_model(m, out)
    except OSError as error:
        raise InputProblem(f"--out: '{out}' cannot be written: {error.strerror}") from None
    precision = m.qpos0.dtype.name
    print(f"{out}: {format_bytes(os.path.getsize(out))}, {precision}, compiled in {seconds:.1f} s")
    return 0
