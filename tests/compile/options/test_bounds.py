"""Models that exceed any machine are rejected at once, with their location."""

import inspect
import resource
import sys

import pytest

from jaxsim.compile import compile_string, flatten
from jaxsim.errors import ModelError
from jaxsim.spec import Spec

BALL = '<geom size=".1"/>'


def _nested(depth: int) -> str:
    inside = f"<body>{BALL}</body>"
    for _ in range(depth):
        inside = f'<replicate count="100" offset="1 0 0">{inside}</replicate>'
    return f"<mujoco><worldbody>{inside}</worldbody></mujoco>"


def _model(section: str, body: str = "") -> str:
    return f"<mujoco><worldbody><body name='b'>{BALL}{body}</body></worldbody>{section}</mujoco>"


HUGE = 2_000_000_000
TOO_MUCH = {
    "a million bodies": (_nested(3), "replicates create more than 250000 elements"),
    "a count": (
        f'<mujoco><worldbody><replicate count="{HUGE}"/></worldbody></mujoco>',
        "replicates create more than 250000 elements",
    ),
    "a count inside none": (
        f'<mujoco><worldbody><replicate count="0"><replicate count="{HUGE}"><site/></replicate>'
        "</replicate></worldbody></mujoco>",
        "replicates create more than 250000 elements",
    ),
    "contacts": (
        _model('<sensor><contact body1="b" num="2147483647" data="found force"/></sensor>'),
        "<contact>: with the sensors before it, sensordata has 8589934588 numbers",
    ),
    "pixels": (
        _model(
            '<sensor><rangefinder camera="c"/></sensor>',
            '<camera name="c" resolution="100000 100000"/>',
        ),
        "<rangefinder>: with the sensors before it, sensordata has 10000000000 numbers",
    ),
    "many sensors": (
        _model('<sensor><user dim="60000000"/><user dim="60000000"/></sensor>'),
        "<user>: with the sensors before it, sensordata has 120000000 numbers",
    ),
    "numeric": (
        _model(f'<custom><numeric name="n" size="{HUGE}" data="1"/></custom>'),
        "<numeric name='n'>: size has 2000000000 numbers; the limit is 100000000",
    ),
    "nkey": (_model(f'<size nkey="{HUGE}"/>', "<joint/>"), "nkey has"),
    "nuserdata": (_model(f'<size nuserdata="{HUGE}"/>'), "nuserdata has 2000000000 numbers"),
    "nuser": (_model(f'<size nuser_geom="{HUGE}"/>'), "nuser_geom has 2000000000 numbers"),
    "sensor": (_model(f'<sensor><user dim="{HUGE}"/></sensor>'), "dim has 2000000000 numbers"),
    "history": (
        _model(f'<sensor><clock nsample="{HUGE}"/></sensor>'),
        "nsample has 4000000000 numbers",
    ),
    "flexcomp": (
        '<mujoco><worldbody><flexcomp name="f" type="grid" count="1000 1000 1000" dim="3" '
        'spacing=".1 .1 .1" radius=".01"/></worldbody></mujoco>',
        "<flexcomp name='f'>: count asks for more than 4000000 points; lower it",
    ),
    "activation": (
        _model(
            f'<actuator><general joint="j" dyntype="user" actdim="{HUGE}"/></actuator>',
            '<joint name="j"/>',
        ),
        "actdim has 2000000000 numbers",
    ),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_refused_before_memory_is_spent(what):
    text, message = TOO_MUCH[what]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError) as error:
        compile_string(text)
    assert message in str(error.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.slow
def test_models_that_attach_each_other_twice():
    """Thirty small files that would be a billion bodies."""
    twice = "<asset><model name='m' file='{}.xml'/></asset><worldbody>" + "".join(
        f"<attach model='m' body='b' prefix='{side}'/>" for side in "lr"
    )
    files = {}
    for i in range(30):
        worlds = twice.format(i + 1).replace("<worldbody>", "<worldbody><body name='b'><frame>")
        files[f"{i}.xml"] = f"<mujoco>{worlds}</frame></body></worldbody></mujoco>".encode()
    files["30.xml"] = (
        f"<mujoco><worldbody><body name='b'>{BALL}</body></worldbody></mujoco>".encode()
    )
    with pytest.raises(ModelError, match="the model grows beyond 250000 elements here"):
        compile_string(files["0.xml"].decode(), files)


def _around(inside: str, tag: str, count: int, attrs: str = "") -> str:
    """Return a model of nested elements."""
    tree = f"<{tag} {attrs}>" * count + inside + f"</{tag}>" * count
    return f"<mujoco><worldbody>{tree}</worldbody></mujoco>"


BODY = f"<body>{BALL}</body>"
CLASSES = '<default class="main">' + "".join(f'<default class="c{i}">' for i in range(490))
DEEP = {
    "frames": _around("", "frame", 496),
    "frames around a body": _around(BODY, "frame", 494, 'pos="1 0 0"'),
    "scaled frames": _around(BODY, "frame", 494, 'scale="1.001"'),
    "bodies": _around(BALL, "body", 495),
    "replicates": _around(BODY, "replicate", 490, 'count="1"'),
    "classes": f"<mujoco>{CLASSES}{'</default>' * 491}</mujoco>",
}


@pytest.mark.parametrize("what", DEEP)
def test_depth_takes_no_stack(what):
    """All that the parser lets pass is compiled, however little of Python's stack is left."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)
    try:
        spec = Spec.from_string(DEEP[what])
        flatten(spec)
        compile_string(spec.to_xml())
    finally:
        sys.setrecursionlimit(limit)
