"""Damaged and hostile settings end in an error of ours, with file and line or `--set`, and the key.

Thousands of mutations of the files in configs/ are read as `jaxsim train`, `optimize` and
`identify` read them, without compiling a program.
"""

import dataclasses
import functools
import random
import re
import time
import types
import typing
import warnings
from pathlib import Path

import jax
import pytest
from tools.settings import FORMS

from jaxsim.control.closed_loop import read as closed_loop
from jaxsim.control.closed_loop.read import read_closed_loop
from jaxsim.control.optimization import read_problem as optimization
from jaxsim.control.optimization.read import read_optimization
from jaxsim.errors import ConfigError, InputError
from jaxsim.identify.study import read as study
from jaxsim.identify.study import read_study
from jaxsim.io.config import config_text, read_config
from jaxsim.io.load import load_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn import run, worlds
pytestmark = pytest.mark.filterwarnings("ignore")

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
FOLDERS = {"learn": "train", "optimize": "optimize", "mpc": "mpc", "identify": "identify"}
FILES = [path for folder in FOLDERS for path in sorted((CONFIGS / folder).glob("*.toml"))]
SECONDS = 20  # of one file, on a busy machine: nothing quadratic, nothing of terabytes

VALUES = [
    *("-1", "0", "1", "2", "0.5", "-0.0", "nan", "inf", "-inf", "1e400", "1e-320", "1e308", "-1e9"),
    *("1e9", "1000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *("1" * 401, "1" * 4300, "1" * 100_000, "0x" + "f" * 5000, "1." + "0" * 401, "1" * 401 + ".0"),
    *("[" * 1000 + "]" * 1000, "[" * 100_000, "{a=" * 500 + "1" + "}" * 500, "a.b", "[]", "{}"),
    *(
        '""',
        "''",
        '"\\u0000"',
        '"' + "x" * 5000 + '"',
        '"é²³"',
        '"..\\n"',
        '"/"',
        '"."',
        '"/dev/zero"',
    ),
    *('["a", 1]', "[1, 2, 3]", "[[1], [2]]", "[{}]", "{a = 1}", '{"" = 1}', "[nan]", "[1e400]"),
    *("true", "false", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0b1", "1_0", "+1", "²"),
    *("5\nsteps = 7", "5 # 7", "'a", '"""', "'''\n\n'''", "[1,\n2,\n]", "=", ",", "", " ", "\0"),
    *(
        '"task:"',
        '"task:x"',
        '":"',
        '"os:getcwd"',
        '".a:b"',
        '"python:x:f"',
        '"sensor:"',
        '"qpos:"',
    ),
    *(
        '"body:"',
        '"body:a.xpos.z"',
        '"ctrl:*"',
        '"[0]"',
        '"a[99999999999999999999]"',
        '"opt.timestep"',
    ),
]
KEYS = [
    "",
    "0",
    "²",
    "a",
    "a.b",
    "-1",
    "99999999999",
    "x" * 300,
    '"q.r"',
    "'",
    '"',
    ".",
    "..",
    "é",
    "\n",
]


def mutated(text, rng):
    """A text with one to three changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(9)
        if kind <= 3:  # another value
            keyed = [i for i, line in enumerate(lines) if "=" in line and line[:1] != "#"]
            if keyed:
                at = rng.choice(keyed)
                lines[at] = lines[at].partition("=")[0] + "= " + rng.choice(VALUES)
        elif kind == 4:
            del lines[at]
        elif kind == 5:
            lines.insert(at, rng.choice(lines))
        elif kind == 6:
            lines.insert(at, rng.choice(KEYS) + " = " + rng.choice(VALUES))
        elif kind == 7 and text:
            place = rng.randrange(len(text))
            lines = (text[:place] + rng.choice("\0\n\"'[]{}=,.#x9é") + text[place + 1 :]).split(
                "\n"
            )
        elif kind == 8 and text:
            lines = text[: rng.randrange(len(text))].split("\n")
        text = "\n".join(lines)
    return text


def change(text, rng):
    """An argument of --set for a file of this text."""
    names = re.findall(r"^([\w.]+) =", text, re.MULTILINE)
    tables = [name.strip("[]") for name in re.findall(r"^\[.*\]", text, re.MULTILINE)]
    entries = [f"{t}.{rng.choice(['0', '1', '9', ''])}" for t in tables]
    parts = [rng.choice([*names, *tables, *entries, *KEYS])]
    parts += [rng.choice([*names, *KEYS])] * rng.randrange(2)
    return ".".join(parts) + rng.choice(["=", "=", "=", "", "=="]) + rng.choice(VALUES)


# a file and its line, or the option; then, unless the text is not TOML at all, the key
PLACED = re.compile(
    r"(--set .*?: |\S*?\.(toml|xml|csv|npz)(:\d+)?: )(not (TOML|readable): |expected|there is no|"
    r"[^\n]* is not a table|\S+.*?: |.*)",
    re.DOTALL,
)


def check(error, file):
    """The error names file and line, or the option, of each fault."""
    for problem in error.problems:
        told = str(problem)
        assert len(told) < 5000, told[:200]
        assert PLACED.match(told), told
        if isinstance(error, ConfigError):
            assert told.startswith(("--set ", f"{file}:")), told
            if told.startswith(str(file)):
                assert re.match(r":\d+: ", told[len(str(file)) :]), told
                line = int(told[len(str(file)) + 1 :].split(":")[0])
                assert 1 <= line <= Path(file).read_text().count("\n") + 1, told


def attempt(read, file, changes):
    """Read a file; an error is located, and raised soon."""
    began = time.monotonic()
    try:
        found = read(file, changes)
    except InputError as error:
        check(error, file)
        found = None
    assert time.monotonic() - began < SECONDS
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("number", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_forms(path, number, tmp_path):
    """The settings alone; what is read is written and read again."""
    form, rng = FORMS[FOLDERS[path.parent.name]], random.Random(path.name)
    text, file, read = path.read_text(), tmp_path / "a.toml", 0
    for _ in range(number):
        file.write_text(mutated(text, rng), encoding="utf-8", newline="")
        changes = [change(text, rng) for _ in range(rng.choice([0, 0, 0, 1, 2]))]
        found = attempt(lambda file, changes: read_config(file, form, changes)[0], file, changes)
        if found is not None:
            read += 1
            (tmp_path / "b.toml").write_text(config_text(found))
            assert read_config(tmp_path / "b.toml", form)[0] == found
    assert read > number / 50


@pytest.fixture
def readers(tmp_path, monkeypatch):
    """The readers of the commands; models are loaded once."""
    load = functools.cache(load_model)

    def loaded(path, *, free=(), **options):
        return load(path, free=tuple(free), **options) if free else load(path, **options)

    monkeypatch.setattr(optimization, "load_model", loaded)
    monkeypatch.setattr(closed_loop, "load_model", loaded)
    monkeypatch.setattr(study, "load_model", loaded)
    monkeypatch.setattr(worlds, "make", functools.cache(worlds.make))
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(False), standard, allow:
        yield {
            "learn": lambda file, changes: run.new_run(file, tmp_path / "run", changes),
            "optimize": lambda file, changes: read_optimization(file, tuple(changes)),
            "mpc": lambda file, changes: read_closed_loop(file, tuple(changes)),
            "identify": lambda file, changes: read_study(file, changes),
        }


SMALL = [
    *("learn/cartpole_swingup", "optimize/acrobot_swingup", "mpc/cartpole", "identify/arm"),
]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, 40) for name in SMALL),
        *(
            pytest.param(f"{path.parent.name}/{path.stem}", 400, marks=pytest.mark.slow)
            for path in FILES
        ),
    ],
)
def test_readers(name, number, readers, tmp_path):
    """All that a command does before it traces a program."""
    path, rng = CONFIGS / f"{name}.toml", random.Random(name)
    for other in path.parent.iterdir():
        if other.suffix != ".toml":
            (tmp_path / other.name).symlink_to(other)
    text, file = path.read_text(), tmp_path / "a.toml"
    for _ in range(number):
        file.write_text(mutated(text, rng), encoding="utf-8", newline="")
        changes = [change(text, rng) for _ in range(rng.choice([0, 0, 0, 1]))]
        attempt(readers[path.parent.name], file, changes)


TYPED = {
    int: ["0", "1", "3", "4095", "9999999", "99999999", "9999999999", "9223372036854775807"],
    float: ["0.0", "1e-320", "1e-9", "1e-3", "0.7", "1e9", "1e38", "1e300", "inf", "-inf", "-1e9"],
    str: [
        '""',
        '"\\u0000"',
        '"' + "x" * 300 + '"',
        '"."',
        '"/"',
        '"a:b"',
        '"é"',
        '"*"',
        '"["',
        '"\\n"',
    ],
    bool: ["true", "false"],
}


def settings_of(form, prefix=""):
    """Each setting of a form with its type, by the name that --set takes."""
    kinds = typing.get_type_hints(form)
    for f in dataclasses.fields(form):
        kind, name = kinds[f.name], prefix + f.name
        if typing.get_origin(kind) in (typing.Union, types.UnionType):
            kind = next(k for k in typing.get_args(kind) if k is not type(None))
        inside = typing.get_args(kind)
        if typing.get_origin(kind) is tuple and dataclasses.is_dataclass(inside[0]):
            yield from settings_of(inside[0], f"{name}.0.")
        elif typing.get_origin(kind) is tuple:
            yield name, inside[0], "[{0}]"
            yield name, inside[0], "[{0}, {0}]"
        elif typing.get_origin(kind) is dict and dataclasses.is_dataclass(inside[1]):
            yield from settings_of(inside[1], f"{name}.{NAMED[name]}.")
        elif typing.get_origin(kind) is dict:
            list_of = typing.get_args(inside[1])
            for key in ("x", "hinge", "shoulder", "elbow"):
                many = [("[{0}]"), ("[{0}, {0}]")] if list_of else ["{0}"]
                for written in many:
                    yield f"{name}.{key}", list_of[0] if list_of else inside[1], written
        elif dataclasses.is_dataclass(kind):
            yield from settings_of(kind, f"{name}.")
        else:
            yield name, kind, "{0}"


NAMED = {"parameters": '"joint:*/damping"', "signals": "q1"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("share", [0.05, pytest.param(1.0, marks=pytest.mark.slow)])
def test_every_setting_at_its_ends(name, share, readers, tmp_path):
    """Values of the right type: sizes, tiny and huge numbers, names of nothing."""
    path, rng = CONFIGS / f"{name}.toml", random.Random(name)
    for other in path.parent.iterdir():
        (tmp_path / other.name).symlink_to(other)
    file = tmp_path / path.name
    for key, kind, written in settings_of(FORMS[FOLDERS[path.parent.name]]):
        for value in TYPED[kind]:
            if rng.random() < share:
                attempt(readers[path.parent.name], file, [f"{key}={written.format(value)}"])
