"""What asks for more than any machine has is refused at once, with its place."""

import resource
import time

import pytest

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

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
    "a million bodies": (_nested(3), "replicates ask for more than 250000 elements"),
    "a count": (
        f'<mujoco><worldbody><replicate count="{HUGE}"/></worldbody></mujoco>',
        "replicates ask for more than 250000 elements",
    ),
    "numeric": (
        _model(f'<custom><numeric name="n" size="{HUGE}" data="1"/></custom>'),
        "<numeric name='n'>: size asks for 2000000000 numbers; the most is 100000000",
    ),
    "nkey": (_model(f'<size nkey="{HUGE}"/>', "<joint/>"), "nkey asks for"),
    "nuserdata": (_model(f'<size nuserdata="{HUGE}"/>'), "nuserdata asks for 2000000000 numbers"),
    "nuser": (_model(f'<size nuser_geom="{HUGE}"/>'), "nuser_geom asks for 2000000000 numbers"),
    "sensor": (_model(f'<sensor><user dim="{HUGE}"/></sensor>'), "dim asks for 2000000000 numbers"),
    "history": (
        _model(f'<sensor><clock nsample="{HUGE}"/></sensor>'),
        "nsample asks for 4000000000 numbers",
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
        "actdim asks for 2000000000 numbers",
    ),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_refused_before_memory_is_spent(what):
    text, message = TOO_MUCH[what]
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises(ModelError) as error:
        compile_string(text)
    assert message in str(error.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes
    assert time.perf_counter() - start < 5


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
    start = time.perf_counter()
    with pytest.raises(ModelError, match="the model grows beyond 250000 elements here"):
        compile_string(files["0.xml"].decode(), files)
    assert time.perf_counter() - start < 60
