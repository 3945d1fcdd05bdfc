"""Models that MuJoCo rejects are rejected, and others accepted: one attribute at a time.

Every attribute of a model with almost every element is set to numbers, words and names that may
not fit it, and both compilers load it. Models that only jaxsim rejects are listed, with reasons.
"""

import random
import re
import xml.etree.ElementTree as ET

import mujoco
import pytest
from compile.everything import EVERYTHING
from compile.oracle import assert_agrees, assert_refused, refusal

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError
from jaxsim.mjcf.schema import ROOT
from jaxsim.spec import Spec

REALS = ("-1", "0", "1", "2", "-0.5", "0.5", "1e5", "inf")
WHOLES = ("-1", "0", "1", "2", "5", "-100")
NAMES = ("nosuch", "a", "j", "g0", "s0", "ts", "ag", "mat", "k")


def _values(attr) -> list[str]:
    least, most = attr.count
    lengths = sorted({max(least, 1), most or 3})
    if attr.is_number:
        words = REALS if attr.type == "real" else WHOLES
        same = [" ".join([word] * n) for n in lengths for word in words]
        many = [n for n in lengths if n > 1]
        return same + [
            " ".join([first] + [rest] * (n - 1))
            for n in many
            for first, rest in (("1", "0"), ("0", "1"), ("1", "-1"), ("-1", "1"))
        ]
    if attr.keywords:
        # MuJoCo crashes when it looks for a frame by its name.
        return [word for word in (*attr.keywords, *attr.alone) if word != "frame"]
    return list(NAMES) if attr.type in ("ref", "refs", "name") else ["x", "-1"]


def _attributes(element, row, path):
    for attr in row.attrs.values():
        if attr.type != "file" and attr.name != "model":
            yield element, attr, f"{path} {element.get('name') or ''}".rstrip()
    for child in element:
        yield from _attributes(child, row.child(child.tag), f"{path}/{child.tag}")


MODEL = ET.fromstring(EVERYTHING)
PROBES = [
    (element, attr, place, value)
    for element, attr, place in _attributes(MODEL, ROOT, "")
    for value in _values(attr)
]

# Where we refuse what MuJoCo takes, by the end of the path and the attribute, and why.
STRICTER = {
    r"/actuator/\w+ \w+ (joint|jointinparent|tendon|site|cranksite|body)=": (
        "an actuator that names two things it acts on, of which MuJoCo takes one"
    ),
    r"='inf": "numbers that are infinite, of which nothing sensible follows",
    r" gridlayout=": "letters that no grid has",
    r"/site \w+ type=": "sites that are distance fields without a mesh",
}
# Where MuJoCo refuses what we take.
LAXER = {
    r" xyaxes=": "axes that are parallel up to rounding, which is not the same",
    r"/compiler/lengthrange mode=": "length ranges are found when the model is loaded",
}


def _section(place: str) -> str:
    """Return the section of the model that a location is in."""
    return re.findall(r"\w+", place)[0] if place else "mujoco"


def _theirs(text: str) -> bool:
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        return False
    return True


def _ours(text: str) -> bool:
    try:
        compile_string(text)
    except ModelError:
        return False
    return True


def _disagreements(probes) -> list[str]:
    found = []
    for element, attr, place, value in probes:
        old = element.get(attr.name)
        element.set(attr.name, value)
        text = ET.tostring(MODEL, encoding="unicode")
        ours, theirs = _ours(text), _theirs(text)
        if ours != theirs:
            label = f"{place} {attr.name}='{value}'"
            excused = STRICTER if theirs else LAXER
            if not any(re.search(pattern, label) for pattern in excused):
                found.append(f"{label}: {'only we' if ours else 'only MuJoCo'} take it")
        if old is None:
            del element.attrib[attr.name]
        else:
            element.set(attr.name, old)
    return found


def test_base_model_is_accepted_by_both():
    assert _theirs(EVERYTHING)
    compile_string(EVERYTHING)


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_changes():
    assert _disagreements(random.Random(7).sample(PROBES, 60)) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", sorted({_section(place) for _, _, place, _ in PROBES}))
def test_every_change(section):
    assert _disagreements(probe for probe in PROBES if _section(probe[2]) == section) == []


BALL = '<geom name="g" size=".1"/>'
BODY = f'<worldbody><body name="b">{BALL}<joint name="j"/><site name="s"/></body></worldbody>'

# Documents that both refuse, and what we say.
REFUSED = {
    "<mujoco><a></mujoco>": "broken XML",
    '<mujoco><worldbody><geom siz="1"/></worldbody></mujoco>': "did you mean 'size'",
    '<mujoco><worldbody><geom size="1 1 1 1"/></worldbody></mujoco>': "1 to 3 numbers, got 4",
    '<mujoco><worldbody><geom type="bok"/></worldbody></mujoco>': "did you mean 'box'",
    '<mujoco><worldbody><geom size="1"/><gom/></worldbody></mujoco>': "did you mean <geom>",
    '<mujoco><worldbody><geom size="1" class=""/></worldbody></mujoco>': "class is empty",
    '<mujoco><worldbody><light softness="2"/></worldbody></mujoco>': "must be from 0 to 1",
    '<mujoco><worldbody><site type="plane"/></worldbody></mujoco>': "a site cannot be a plane",
    '<mujoco><size nuser_geom="-2"/></mujoco>': "nuser_geom='-2' is not a size",
    '<mujoco><statistic extent="0"/></mujoco>': "extent='0' must be positive",
    '<mujoco><default><geom quat="0 0 0 0"/></default></mujoco>': "quat must not be zero",
    '<mujoco><default><position kv="-1"/></default></mujoco>': "kv='-1' must not be negative",
    '<mujoco><default><mesh maxhullvert="2"/></default></mujoco>': "must be -1, or more than 3",
    '<mujoco><visual><map znear="0"/></visual></mujoco>': "znear='0' must be positive",
    '<mujoco><default class="x"/></mujoco>': "the outermost class, which is called 'main'",
    f'<mujoco>{BODY}<sensor><touch site="t"/></sensor></mujoco>': "site='t' names no site",
    f'<mujoco>{BODY}<actuator><motor joint="k"/></actuator></mujoco>': "names no joint",
    f"<mujoco>{BODY}<actuator><motor/></actuator></mujoco>": "must name its target",
    f'<mujoco>{BODY}<equality><weld body1="b" body2="b"/></equality></mujoco>': "to itself",
    f'<mujoco>{BODY}<keyframe><key qpos="1 2"/></keyframe></mujoco>': "qpos has 2 numbers",
    f"<mujoco>{BODY}{BODY}</mujoco>": "a body named 'b' exists already",
    f'<mujoco>{BODY}<custom><tuple name="t"><element objtype="frame" objname="f"/></tuple></custom>'
    "</mujoco>": "objname='f' names no frame",
    "<mujoco><worldbody><composite/></worldbody></mujoco>": "was removed in MuJoCo 4.0",
    f'<mujoco>{BODY}<equality><flexvert flex="f"/></equality></mujoco>': "no element <flexvert>",
    '<mujoco><worldbody><site quat="" euler="0 0 1"/></worldbody></mujoco>': "exclude each other",
    '<mujoco><worldbody><camera fovy="" sensorsize="1 1"/></worldbody></mujoco>': "exclude each",
    '<mujoco><worldbody><body><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 0" euler=""/>'
    "</body></worldbody></mujoco>": "exclude each other",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_by_both_with_a_remedy(text):
    assert refusal(text) is not None
    with pytest.raises(ModelError) as error:
        compile_string(text)
    assert REFUSED[text] in str(error.value)
    assert re.match(r"<string>:\d+: ", str(error.value))


# Documents at the edge of the rules, which both take.
TAKEN = (
    "<mujoco/>",
    "<mujoco><worldbody/></mujoco>",
    '<mujoco><worldbody><body/><body name=""/></worldbody></mujoco>',
    '<mujoco><worldbody><geom name="" size="1"/><geom name="" size="1"/></worldbody></mujoco>',
    '<mujoco><worldbody><geom size="1" material=""/></worldbody></mujoco>',
    '<mujoco><worldbody><replicate count="1" quat="0 0 0 0"/></worldbody></mujoco>',
    '<mujoco><option timestep="0"/></mujoco>',
    '<mujoco><worldbody><site quat="1 0 0 0" axisangle="" euler=" "/></worldbody></mujoco>',
    '<mujoco><worldbody><frame zaxis="" xyaxes="" euler="0 0 1"/></worldbody></mujoco>',
    '<mujoco><worldbody><geom size="1" user="1 2"/><geom size="1" user="3"/></worldbody></mujoco>',
    f'<mujoco>{BODY}<actuator><general joint="j" actrange="1 0"/></actuator></mujoco>',
    f'<mujoco>{BODY}<actuator><muscle joint="j" lengthrange="0 1" scale="-1"/></actuator></mujoco>',
    f'<mujoco>{BODY}<sensor><jointpos name="x" joint="j"/><touch site="s"/></sensor></mujoco>',
    f"<mujoco>{BODY}<keyframe><key/><key/></keyframe></mujoco>",
    f'<mujoco>{BODY}<option/><option timestep="1"/><compiler/><compiler/></mujoco>',
)


@pytest.mark.parametrize("text", TAKEN)
def test_models_accepted_by_both(text):
    assert refusal(text) is None
    compile_string(text)


def test_all_faults_of_a_file_are_raised_at_once():
    text = """<mujoco>
      <worldbody>
        <geom siz="1"/>
        <body name="a"><joint type="bal"/></body>
      </worldbody>
      <option timstep="1"/>
    </mujoco>"""
    with pytest.raises(ModelError) as error:
        compile_string(text)
    assert [problem.place.line for problem in error.value.problems] == [3, 4, 6]


DECLARED = {
    "entities": """<!DOCTYPE m [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
    <mujoco model="&b;"/>""",
    "dtd": '<!DOCTYPE m SYSTEM "file:///etc/passwd"><mujoco model="&b;"/>',
    "external entity": '<!DOCTYPE m [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
    '<mujoco model="&b;">&b;</mujoco>',
    "default": '<!DOCTYPE m [<!ATTLIST option timestep CDATA "7"><!ATTLIST m model CDATA "x">]>'
    '<mujoco model="&b;"><option/></mujoco>',
    "type": '<!DOCTYPE m [<!ATTLIST mujoco model NMTOKENS "x">]><mujoco model="&b;"/>',
}


@pytest.mark.parametrize("what", DECLARED)
def test_what_a_dtd_declares_has_no_effect(what):
    assert assert_agrees(DECLARED[what]).opt["timestep"] == 0.002
    assert Spec.from_string(DECLARED[what]).modelname == "&b;"


def test_values_are_not_normalized_by_a_dtd():
    assert_refused(
        '<!DOCTYPE m [<!ATTLIST geom type NMTOKENS "box">]>\n'
        '<mujoco><worldbody><geom type=" box " size="1 1 1"/></worldbody></mujoco>',
        "type cannot be ' box '",
    )
