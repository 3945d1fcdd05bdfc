"""Names that hold anything go through every output: none runs, forges, hides or breaks it."""

import io
import json
import re
import sys
import warnings
from contextlib import redirect_stderr

import numpy as np
import pytest

import jaxsim
from jaxsim import escape
from jaxsim.batch.trajectory import Trajectory
from jaxsim.cli import main
from jaxsim.errors import ModelError
from jaxsim.identify import Sequence, TimeSeries, fit, linear, read_series, report
from jaxsim.io.save import save_model
from jaxsim.view.curves import draw_motion

NAMES = {
    "frame": "<iframe srcdoc=\"<script>parent.postMessage('x')</script>\">",
    "image": "<img src=http://127.0.0.1:9/ onerror=alert(1)>",
    "comment": "<!-- </style></title></script> -->",
    "link": "[a](javascript:alert(1)) ![b](http://127.0.0.1:9/)",
    "markdown": "**a** _b_ `c` | d\n# e\n```f",
    "formula": "a$\\frac$",
    "dollars": "$x$ \\$ $$",
    "backslashes": "\\\\host\\n\\",
    "lines": "a\nb\r\nc\u2028d\x85e\x0bf",
    "colors": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J",
    "direction": "\u202edcba\u2066x\u2069\u200f\ufeff\u200b",
    "emoji": "\U0001f600\U0001f468\u200d\U0001f469",
    "surrogate": "\ud800x",
    "long": "x" * 10_000,
    "deep": "<b>" * 3_000,
    "underscore": "_hidden",
    "prototype": "__proto__",
    "path": "../../etc/passwd",
    "cells": '=1+1,"a";b\t"',
    "choice": "free",
}
MODEL = """<mujoco><option timestep="0.01"/>
  <worldbody>
    <light name="N"/><camera name="N"/>
    <body name="N">
      <joint name="N" axis="0 1 0" damping="0.1"/><geom name="N" size="0.1" pos="0.2 0 0"/>
      <site name="N"/>
    </body>
  </worldbody>
  <actuator><motor name="N" joint="N"/></actuator>
  <sensor><jointpos name="N" joint="N"/></sensor>
  <keyframe><key name="N"/></keyframe></mujoco>"""
every_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@pytest.fixture(scope="module")
def plain():
    return jaxsim.load_model(MODEL)


def named(m: jaxsim.Model, name: str) -> jaxsim.Model:
    """The model with another name for everything."""
    names = [(kind, tuple(name if n == "N" else n for n in own)) for kind, own in m.structure.names]
    return m.replace(structure=m.structure.replace(names=tuple(names)))


def is_visible(text: str) -> bool:
    """Return whether all characters of a text are printable, and no line is very long."""
    lines = text.split("\n")
    return all(x.isprintable() and len(x) < 2 * escape.MAX_MESSAGE for x in lines)


@every_name
def test_a_name_is_one_short_line_of_visible_characters(name):
    shown = escape.line(name)
    assert shown.isprintable()
    assert len(shown) <= escape.MAX_NAME + 1
    for text in (escape.markdown(name), escape.html(name)):
        assert not set(text) & set('<>"|`*_[]\n$' if text == escape.markdown(name) else '<>"\n')


def test_an_ordinary_name_stays_as_it_is():
    for name in ("left hip", "arm.2 (upper)", "Ellbögen-3", "関節"):
        assert escape.line(name) == escape.markdown(name) == escape.html(name) == name


@every_name
def test_a_description_shows_it_in_a_line(plain, name):
    m = named(plain, name)
    d = jaxsim.make_data(m)
    before, after = (jaxsim.describe(x, y) for x, y in ((plain, None), (m, None)))
    assert is_visible(after)
    assert len(after.split("\n")) == len(before.split("\n"))
    assert is_visible(jaxsim.describe(m, d))
    assert len(jaxsim.describe(m, d).split("\n")) == len(jaxsim.describe(plain, d).split("\n"))


@every_name
def test_a_message_shows_it_in_a_line(plain, name):
    with pytest.raises(ValueError, match="no joint is named 'y'") as told:
        jaxsim.name2id(named(plain, name), "joint", "y")
    assert str(told.value).isprintable()
    with pytest.raises(ValueError, match="no joint is named") as told:
        jaxsim.name2id(plain, "joint", name)
    assert str(told.value).isprintable()


@every_name
def test_a_fault_of_a_file_is_a_line(name):
    refused = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
    written = "".join(f"&#{ord(c)};" for c in refused.sub("", name))
    text = f"<mujoco><worldbody><body name='{written}'><joint type='{written}'/></body></worldbody>"
    with pytest.raises(ModelError) as told:
        jaxsim.load_model(f"{text}</mujoco>")
    assert is_visible(str(told.value))
    assert len(str(told.value).split("\n")) == len(told.value.problems)


@pytest.mark.parametrize("name", [NAMES["colors"], NAMES["direction"], NAMES["surrogate"]])
def test_a_command_prints_no_control_characters(plain, name, tmp_path, capsys):
    path = tmp_path / "m.jxm"
    try:
        save_model(named(plain, name), path)
    except ValueError:  # a file has text
        assert "\ud800" in name
    else:
        assert main(["info", str(path), "--no-cache"]) == 0
    assert main(["info", f"{tmp_path}/{name}.xml", "--no-cache"]) == 2
    out, err = capsys.readouterr()
    assert is_visible(out)
    assert is_visible(err)
    assert "xml" in err


def test_a_terminal_without_the_letters_gets_their_numbers(tmp_path):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", newline="")
    with redirect_stderr(stream):
        assert main(["info", str(tmp_path / "\U0001f600.xml"), "--no-cache"]) == 2
    stream.flush()
    assert b"\\U0001f600.xml" in stream.buffer.getvalue()


@every_name
def test_a_table_of_recordings_keeps_its_header(name, tmp_path):
    path = tmp_path / "log.csv"
    TimeSeries(np.arange(3.0), np.ones((3, 2)), ("a", name)).write(path)
    assert read_series(path).names[1] == name.strip()
    assert read_series(path).values.shape == (3, 2)


@pytest.mark.short("frame", "prototype", "lines", "formula", "direction")
@every_name
def test_curves_are_drawn(plain, name, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    motion = Trajectory({"model": name}, {"qpos": np.zeros((4, 2, 1)), "ctrl": np.ones((4, 2, 1))})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        draw_motion(motion, ["qpos", "ctrl"], tmp_path / "curves.svg", m=named(plain, name))
    text = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<iframe" not in text
    assert text.count("legend_1") >= 1


@pytest.fixture(scope="module")
def fitted(plain):
    y = np.full(5, 0.1)
    start = {"qpos": np.array([0.1])}
    data = Sequence({"N": y}, ctrl=np.zeros((5, 1)), initial=start, sigma=0.1, name="run")
    return fit(plain, {"sensor:N/offset": linear()}, [data], starts=1, iterations=2)


@pytest.mark.short("frame", "prototype", "lines", "formula", "direction")
@every_name
def test_a_report_is_written(fitted, name, monkeypatch):
    pytest.importorskip("matplotlib", reason="the extra identify is not installed")
    problem = fitted.problem
    monkeypatch.setattr(type(fitted), "names", (name,))
    monkeypatch.setattr(type(fitted), "warnings", [name])
    monkeypatch.setattr(type(fitted.parameters), "coordinates", (name,))
    object.__setattr__(problem.sequences[0], "name", name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        page = report(fitted, title=name)
    assert "could not be drawn" not in page
    assert not re.search(r"<(script|iframe|img|b>)", page)
    assert page.count("<svg") == 2
    assert is_visible(repr(fitted))


def test_a_picture_that_fails_loses_no_report(fitted, monkeypatch):
    pytest.importorskip("matplotlib", reason="the extra identify is not installed")

    def broken(*_):
        raise RuntimeError("no <ink>")

    monkeypatch.setattr(sys.modules["jaxsim.identify.html_report"], "_starts", broken)
    with pytest.warns(UserWarning, match="a picture of the report could not be drawn: no <ink>"):
        page = report(fitted)
    assert "could not be drawn: no &lt;ink&gt;" in page
    assert page.count("<svg") == 1


@pytest.mark.short("frame", "markdown", "lines", "formula", "direction")
@every_name
def test_a_page_shows_it_as_text(plain, name):
    pytest.importorskip("viser", reason="the extra view is not installed")
    from view.visitor import Visitor

    from jaxsim.view.browser.live import Live
    from jaxsim.view.browser.panel.fault import stop_message
    from jaxsim.view.browser.panel.selection import describe_part

    m = named(plain, name)
    page = Live(m, port=0)
    try:
        with Visitor(page.viewer.server) as visitor:
            visitor.wait(lambda: any("/cameras/" in n for n in visitor.nodes) or page.viewer.scene)
            visitor.wait(lambda: "timestep" in visitor.text())
            texts = [
                visitor.text(),
                describe_part(m, page.viewer.scene.parts[0], 0),
                stop_message(Fault(name)),
            ]
            labels = [c["label"] for c in visitor.controls.values() if c.get("label")]
            for choices in (c.get("options") for c in visitor.controls.values()):
                labels += choices or ()
                assert len(set(choices or ())) == len(choices or ())
            nodes = [*visitor.nodes]
    finally:
        page.viewer.close()
    for text in texts:
        assert "<" not in text
        assert "](" not in text
        assert is_visible(text)
    assert all(label.isprintable() and len(label) < 120 for label in labels)
    assert all(node.isprintable() and len(node) < 400 for node in nodes)


class Fault(Exception):
    """An error whose message contains a name."""


@pytest.mark.parametrize("name", [NAMES["frame"], NAMES["lines"], NAMES["long"]])
def test_an_exported_page_has_no_markup_of_it(plain, name, tmp_path):
    pytest.importorskip("viser", reason="the extra view is not installed")
    from jaxsim import view

    pages = []
    for m in (plain, named(plain, name)):
        view.record(m, {"qpos": np.zeros((3, 1))}, tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    tags = [re.findall(r"<(?:script|iframe|img)\b", page) for page in pages]
    assert tags[0] == tags[1]
    assert name not in pages[1]


@pytest.fixture(scope="module")
def posing(plain):
    from jaxsim.view.browser.draw.poses import Posing

    return Posing(plain)


def glb_names(path):
    content = path.read_bytes()
    length = int.from_bytes(content[12:16], "little")
    return [node["name"] for node in json.loads(content[20 : 20 + length])["nodes"]]


def mcap_names(path):
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    found = []
    with path.open("rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages():
            found.append(channel.topic)
            if channel.message_encoding == "json":
                found += json.loads(message.data)
                continue
            content = DecoderFactory().decoder_for("protobuf", schema)(message.data)
            found += [e.id for e in getattr(content, "entities", ())]
            found += [t.child_frame_id for t in getattr(content, "transforms", ())]
    return found


def usd_names(path):
    from pxr import Usd

    stage = Usd.Stage.Open(str(path))  # prims expire with it
    return [text for p in stage.Traverse() for text in (p.GetName(), p.GetCustomDataByKey("name"))]


def rerun_names(path):
    from rerun.chunk import RrdReader

    return [chunk.entity_path for chunk in RrdReader(path).stream().to_chunks()]


EXPORTED = {"gltf": glb_names, "mcap": mcap_names, "usd": usd_names, "rerun": rerun_names}


@every_name
@pytest.mark.parametrize("to", EXPORTED)
def test_an_exported_motion_has_visible_names(plain, posing, name, to, tmp_path, monkeypatch):
    from jaxsim.view.export import clip
    from jaxsim.view.export.formats import FORMATS, export_motion

    for module in ("trimesh", *FORMATS[to].modules):
        pytest.importorskip(module, reason="the extra export is not installed")
    monkeypatch.setattr(clip, "Posing", lambda _: posing)  # poses do not depend on names
    path = tmp_path / f"motion{FORMATS[to].suffixes[0]}"
    fields = {"qpos": np.zeros((3, 1, 1)), "ctrl": np.ones((3, 1, 1)), name: np.ones((3, 1))}
    export_motion(named(plain, name), Trajectory({"model": name}, fields), path, to=to)
    found = EXPORTED[to](path)
    assert len(found) >= 4
    assert all(text.isprintable() and len(text) < 400 for text in found)
