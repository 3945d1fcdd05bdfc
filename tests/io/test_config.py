"""Configurations: values into forms, and every fault with its line."""

import math
import tomllib
from dataclasses import dataclass

import pytest

from jaxsim.errors import ConfigError
from jaxsim.io.config import config_text, read_config, setting
from jaxsim.io.config.toml_lines import key_lines


@dataclass(frozen=True)
class Cost:
    name: str = setting(doc="of the term")
    weight: float = setting(1.0, doc="of the term", least=0)


@dataclass(frozen=True)
class Search:
    method: str = setting("ilqr", doc="how", choices=("ilqr", "mppi"))
    turns: int | None = setting(None, doc="iterations", least=1)
    spread: tuple[float, ...] = setting((), doc="of each control", above=0)


@dataclass(frozen=True)
class Motion:
    model: str = setting(doc="a file in MJCF")
    verbose: bool = setting(False, doc="whether to tell more")
    start: dict[str, float] = setting(dict, doc="of joints by name")
    search: Search = setting(Search, doc="how to search")
    cost: tuple[Cost, ...] = setting((), doc="terms")


GOOD = """\
# a comment
model = "a.xml"
start.hip = 1
start."left knee" = -0.5

[search]
turns = 5
spread = [
  1,  # the first
  2.5,
]

[[cost]]
name = "upright"

[[cost]]
name = '''
slow'''
weight = 0.5
"""


def written(tmp_path, text):
    path = tmp_path / "m.toml"
    path.write_text(text)
    return path


def faults(tmp_path, text, changes=()):
    with pytest.raises(ConfigError) as caught:
        read_config(written(tmp_path, text), Motion, changes)
    return str(caught.value).replace(str(tmp_path) + "/", "").splitlines()


def test_a_file_becomes_its_form(tmp_path):
    got, locations = read_config(written(tmp_path, GOOD), Motion)
    assert got == Motion(
        "a.xml",
        start={"hip": 1.0, "left knee": -0.5},
        search=Search(turns=5, spread=(1.0, 2.5)),
        cost=(Cost("upright"), Cost("slow", 0.5)),
    )
    assert isinstance(got.start["hip"], float)
    assert locations.folder == tmp_path
    lines = {"model": 2, "start.hip": 3, "search.turns": 7, "search.spread": 8, "cost.0.name": 14}
    lines |= {"cost.1.weight": 19, "cost.1": 16, "cost.1.nothing": 16, "search.method": 6}
    assert {path: locations.locate(path).line for path in lines} == lines
    assert str(locations.error("cost.1.name", "no such")).endswith(
        "m.toml:17: cost.1.name: no such"
    )


def test_lines_of_a_text_that_is_hard_to_read():
    text = 'x = {a = 1, b = [{c = 2}]}\n[t.u]\n"[k]" = """\n[no]\ny = 1"""\n[[t.v]]\n[t.v.w]\nz=1'
    lines = key_lines(text)
    assert lines["x", "b", 0, "c"] == 1
    assert lines["t", "u", "[k]"] == 3
    assert lines["t", "v", 0, "w", "z"] == 8
    assert ("y",) not in lines
    assert ("no",) not in lines


def test_changes_replace_settings(tmp_path):
    changes = ["model=b.xml", "search.turns=7", "cost.1.weight=2", "verbose=true", "start.toe=3"]
    got, locations = read_config(written(tmp_path, GOOD), Motion, changes)
    assert got.model == "b.xml"
    assert got.search.turns == 7
    assert got.cost[1].weight == 2.0
    assert got.verbose
    assert got.start["toe"] == 3.0
    assert str(locations.locate("search.turns")) == "--set search.turns=7"
    assert faults(tmp_path, GOOD, ["search.turns=0"]) == [
        "--set search.turns=0: search.turns: expected at least 1, got 0"
    ]
    for change, message in {
        "turns": "expected NAME=VALUE",
        "cost.5.weight=1": "there is no entry 5",
        "model.x=1": "model is not a table",
    }.items():
        assert message in faults(tmp_path, GOOD, [change])[0]


def test_every_fault_is_told_with_its_line(tmp_path):
    text = """\
modle = "a.xml"
verbose = 1
[search]
method = "ilrq"
turns = 2.5
spread = [1, 0]
[[cost]]
weight = -1
[start]
hip = "high"
"""
    assert sorted(faults(tmp_path, text)) == [
        "m.toml:10: start.hip: expected a number, got 'high'",
        "m.toml:1: model: is needed: a file in MJCF",
        "m.toml:1: modle: unknown setting; did you mean 'model'?",
        "m.toml:2: verbose: expected true or false, got 1",
        "m.toml:4: search.method: no 'ilrq'; did you mean 'ilqr'?",
        "m.toml:5: search.turns: expected a whole number, got 2.5",
        "m.toml:6: search.spread.1: expected more than 0, got 0.0",
        "m.toml:7: cost.0.name: is needed: of the term",
        "m.toml:8: cost.0.weight: expected at least 0, got -1.0",
    ]
    assert faults(tmp_path, "search = 3\nmodel='a'") == [
        "m.toml:1: search: expected a table, got 3"
    ]
    assert faults(tmp_path, "start = [1]\nmodel='a'") == [
        "m.toml:1: start: expected a table (start.NAME = ...), got [1]"
    ]


def test_what_is_no_toml_or_no_file(tmp_path):
    (told,) = faults(tmp_path, "model = \n")
    assert told.startswith("m.toml:1: not TOML: ")
    (told,) = faults(tmp_path, "model = 'a'\n[search\n")
    assert told.startswith("m.toml:2: not TOML: ")
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file"):
        read_config(tmp_path / "none.toml", Motion)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        read_config(tmp_path / "b.toml", Motion)


def test_settings_written_are_read_again(tmp_path):
    got, _ = read_config(written(tmp_path, GOOD), Motion)
    again, _ = read_config(written(tmp_path, config_text(got)), Motion)
    assert again == got
    hard = Motion('a "b"\n', start={"left.knee": 1e-7, "x": math.inf}, cost=(Cost("é", 3.0),))
    again, _ = read_config(written(tmp_path, config_text(hard)), Motion)
    assert again == hard


@pytest.mark.parametrize(
    "text",
    [
        "robots/🤖.xml",
        "Ω" + chr(0x10FFFF),
        """both ' and " and \\ and \"\"\" and \'\'\'""",
        "".join(map(chr, range(0xA1))),
        "line\r\nline\u2028line\x85",
        "",
    ],
    ids=["emoji", "last", "quotes", "control", "breaks", "empty"],
)
def test_any_text_survives_a_settings_file(tmp_path, text):
    """Read it again as a value, in a list and as a key, by `tomllib` and by `read_config`."""
    whole = Motion(text, start={text: 1.0}, cost=(Cost(text),))
    path = tmp_path / "m.toml"
    path.write_bytes(config_text(whole).encode())
    parsed = tomllib.loads(path.read_bytes().decode())
    assert parsed["model"] == text
    assert parsed["start"] == {text: 1.0}
    assert parsed["cost"][0]["name"] == text
    assert read_config(path, Motion)[0] == whole


@pytest.mark.parametrize("option", ["changes", "swept"])
def test_a_change_that_is_not_utf_8_is_refused(tmp_path, option):
    """Refuse surrogates, which represent other bytes of a command line: no file has them."""
    path = written(tmp_path, GOOD)
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        read_config(path, Motion, **{option: ["model=\udcff.xml"]})
