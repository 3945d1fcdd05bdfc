"""Test suite of MJX, run on jaxsim.

    python benchmarks/mjx_suite.py [NAME ...] [--tests FOLDER] [--seconds 120] [--json FILE]

The tests are those of the installed `mujoco-mjx` (or those in FOLDER). They are unmodified, except
that `mujoco.mjx` and its inner modules are `jaxsim.mjx`, whose Data carry all fields they can, as
MJX's do, and whose rows are in MuJoCo's order. Each file runs in a process of its own. The outcome
of each test is: passed; another answer (an assertion failed); no counterpart (another exception: a
missing name, field or argument); a timeout; or a model that the installed MuJoCo rejects.
"""

import argparse
import functools
import importlib.util
import json
import signal
import subprocess
import sys
import time
import types
import unittest
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

INNER = (
    "math types forward io support smooth constraint solver collision_driver passive sensor".split()
)
FILES = (
    "math support smooth forward constraint solver sensor inverse passive ray collision_driver"
).split()
# files of tests of MJX's internals, which programs do not use
INSIDE = {
    "dataclasses": "MJX's own dataclass",
    "mesh": "its hulls as tables",
    "scan": "its loops over the tree",
    "io": "Warp, which has to be there for any of its tests",
    "render": "the renderer of MJX-Warp",
    "render_util": "the renderer of MJX-Warp",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=FILES)
    parser.add_argument("--tests", type=Path, help="folder of the tests of MJX")
    parser.add_argument("--seconds", type=int, default=120, help="for one test")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--here", action="store_true", help="in this process, for one name")
    args = parser.parse_args()
    folder = args.tests or Path(importlib.util.find_spec("mujoco").origin).parent / "mjx/_src"
    if args.here:
        print(json.dumps(run(folder, args.names[0], args.seconds)))
        return
    old = json.loads(args.json.read_text())["files"] if args.json and args.json.exists() else {}
    found = {name: in_a_process(name, folder, args.seconds) for name in args.names}
    found = {name: (old | found)[name] for name in FILES if name in old | found}
    counts = Counter(what.split(":")[0] for tests in found.values() for what in tests.values())
    print(json.dumps(counts))
    if args.json:
        whole = {"counts": counts, "not asked": INSIDE, "files": found}
        args.json.write_text(json.dumps(whole, indent=1) + "\n")


def in_a_process(name: str, folder: Path, seconds: int) -> dict[str, str]:
    """Return the outcome of each test of a file, run in a process of its own."""
    options = (name, "--here", "--tests", str(folder), "--seconds", str(seconds))
    done = subprocess.run(
        [sys.executable, __file__, *options], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"the file": f"no counterpart: {done.stderr.strip().splitlines()[-1]}"}
    tests = json.loads(done.stdout.splitlines()[-1])
    print(name, dict(Counter(what.split(":")[0] for what in tests.values())), flush=True)
    return tests


def run(folder: Path, name: str, seconds: int) -> dict[str, str]:
    """Return the outcome of each test of a file, run in this process."""
    warnings.simplefilter("ignore")
    _put_in_place(folder)
    tests = unittest.defaultTestLoader.loadTestsFromModule(
        _module((folder / f"{name}_test").with_suffix(".py"))
    )
    outcome = Outcome(seconds)
    tests.run(outcome)
    return outcome.found


class Outcome(unittest.TestResult):
    """Outcome of each test by its name, with a time limit."""

    def __init__(self, seconds: int):
        super().__init__()
        self.seconds, self.found = seconds, {}

    def startTest(self, test):
        super().startTest(test)
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(self.seconds)
        self.start = time.perf_counter()

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)
        name, took = test.id().partition(".")[2], time.perf_counter() - self.start
        print(f"{took:5.0f} s {name}: {self.found.get(name)}"[:300], file=sys.stderr)

    def addSuccess(self, test):
        self._add(test, "passed")

    def addSkip(self, test, reason):
        self._add(test, f"skipped: {reason}")

    def addFailure(self, test, err):
        self._add(test, f"another answer: {_said(err[1])}")

    def addError(self, test, err):
        what = KINDS.get(type(err[1]), "no counterpart")
        self._add(test, f"{what}: {_said(err[1])}")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            (self.addFailure if failed else self.addError)(test, err)

    def _add(self, test, what: str) -> None:
        self.found.setdefault(test.id().partition(".")[2], what)


class OldModelError(Exception):
    """Error of a model that MuJoCo itself rejects, as the tests are of another version."""


KINDS = {TimeoutError: "too long", OldModelError: "no model"}


def _too_long(*_) -> None:
    raise TimeoutError


def _said(error: BaseException) -> str:
    text = str(error).replace(f"{Path(__file__).resolve().parent.parent}/", "")
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:6])}"[:240]


def _put_in_place(folder: Path) -> None:
    """Replace `mujoco.mjx` by that of jaxsim, with the test helpers of MJX."""
    import mujoco

    from jaxsim import functions, mjx

    class Whole(types.ModuleType):
        """`jaxsim.mjx`, whose Data carry all fields."""

        make_data = staticmethod(functools.partial(mjx.make_data, keep="all"))
        put_data = staticmethod(functools.partial(mjx.put_data, keep="all"))

        def __getattr__(self, name):  # some of MJX's internal names are functions of arrays here
            return getattr(mjx if hasattr(mjx, name) else functions, name)

    whole, inner = Whole("mujoco.mjx"), types.ModuleType("mujoco.mjx._src")
    whole.__path__, whole._src, mujoco.mjx = [], inner, whole
    sys.modules |= {"mujoco.mjx": whole, "mujoco.mjx._src": inner}
    for name in INNER:
        module = mjx.math if name == "math" else whole
        setattr(inner, name, module)
        sys.modules[f"mujoco.mjx._src.{name}"] = module
    helpers = _module((folder / "test_util").with_suffix(".py"))
    data = folder.parent / "test_data"

    def load(name: str) -> mujoco.MjModel:
        try:
            return mujoco.MjModel.from_xml_path(str(data / name))
        except ValueError as said:
            raise OldModelError(said) from said

    helpers.load_test_file = load
    helpers.efc_order = lambda m, d, dx: np.arange(len(dx.efc_type))  # already in MuJoCo's order
    inner.test_util = helpers
    sys.modules["mujoco.mjx._src.test_util"] = helpers


def _module(path: Path) -> types.ModuleType:
    """Load a file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
