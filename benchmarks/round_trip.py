"""Loads models, writes them as MJCF, loads that, and compares every compiled field bit for bit.

    python benchmarks/round_trip.py MODEL.xml ...
    python benchmarks/round_trip.py --list models.txt     # one path per line

Prints one line for each model whose fields differ, or that cannot be compiled, and the count.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from jaxsim.compile import Compiled, compile_spec
from jaxsim.errors import ModelError
from jaxsim.spec import Spec


def differences(a: Compiled, b: Compiled) -> list[str]:
    """Return the names of the fields that differ in two compiled models."""
    found = []
    for table in ("fields", "opt", "stat", "names"):
        ours, theirs = getattr(a, table), getattr(b, table)
        found += sorted(ours.keys() ^ theirs.keys())
        for name in ours.keys() & theirs.keys():
            if not _same(ours[name], theirs[name]):
                found.append(name)
    return found


def _same(a, b) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return a == b


def round_trip(path: str) -> list[str]:
    """Return the differences after writing and reading; empty if there are none."""
    spec = Spec.from_file(path)
    text = spec.to_xml()
    again = Spec.from_string(text)
    again.path = spec.path  # so that relative paths of its files stay valid
    if again.to_xml() != text:
        return ["text"]
    return differences(compile_spec(spec), compile_spec(again))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--list", type=Path)
    args = parser.parse_args()
    paths = args.models + (args.list.read_text().split() if args.list else [])
    equal = refused = 0
    start = time.perf_counter()
    for path in paths:
        try:
            wrong = round_trip(path)
        except ModelError as error:
            refused += 1
            print(f"{path}: not compiled: {str(error).splitlines()[0][:150]}")
            continue
        equal += not wrong
        if wrong:
            print(f"{path}: differs in {', '.join(wrong)}")
    seconds = time.perf_counter() - start
    print(f"{len(paths)} models: {equal} equal, {refused} not compiled, {seconds:.1f} s")


if __name__ == "__main__":
    main()
