"""`<pair>` and `<exclude>` compile to the fields of MuJoCo."""

import pytest
from compile.oracle import assert_agrees, assert_refused


def model(contacts, defaults=""):
    return f"""
        <mujoco>
          <default>{defaults}</default>
          <worldbody>
            <geom name="floor" type="plane" size="1 1 1" condim="4" friction=".3" margin=".1"/>
            <body name="a"><joint/><geom name="g1" size=".1" solref=".1 .2" gap=".2"/>
              <body name="b" pos="1 1 1">
                <joint/><geom name="g2" size=".1"/><geom name="g3" size=".1"/>
              </body>
            </body>
            <body name="c"><joint/><geom name="g4" size=".1"/></body>
          </worldbody>
          <contact>{contacts}</contact>
        </mujoco>"""


@pytest.mark.parametrize(
    "contacts",
    [
        '<pair geom1="g1" geom2="g4"/>',
        '<pair geom1="g4" geom2="g1" name="p"/><pair geom1="g4" geom2="g1"/>',
        '<pair geom1="g3" geom2="g2"/><pair geom1="g2" geom2="g3"/><pair geom1="g2" geom2="g2"/>',
        '<pair name="x" geom1="g4" geom2="g2"/><pair name="y" geom1="g1" geom2="floor"/>',
        '<pair geom1="floor" geom2="g2" condim="6" friction="2 3" solref=".5" solimp=".1" gap=".1"'
        ' solreffriction="3 4" margin=".2" adhesion="7"/>',
        '<exclude name="n" body1="b" body2="c"/><exclude body1="c" body2="a"/>'
        '<exclude body1="b" body2="a"/>',
        '<exclude body1="a" body2="a"/><exclude body1="world" body2="c"/>',
    ],
)
def test_pairs_and_excludes_equal_mujoco(contacts):
    assert_agrees(model(contacts))


def test_pairs_inherit_from_default_classes():
    defaults = (
        '<pair condim="6" friction="2 3" margin=".5"/>'
        '<default class="s"><pair solref=".1"/></default>'
    )
    contacts = '<pair geom1="g1" geom2="g4"/><pair class="s" geom1="g2" geom2="g4" friction="1"/>'
    assert_agrees(model(contacts, defaults))


@pytest.mark.parametrize(
    ("contacts", "word"),
    [
        ('<pair geom1="g1" geom2="g44"/>', "did you mean 'g4'"),
        ('<pair geom1="g1"/>', "geom2"),
        ('<pair geom1="g1" geom2="g2" condim="2"/>', "condim"),
        ('<exclude body1="a" body2="q"/>', "names no body"),
        (
            '<pair name="p" geom1="g1" geom2="g2"/><pair name="p" geom1="g1" geom2="g4"/>',
            "exists already",
        ),
    ],
)
def test_invalid_pair_is_rejected_with_the_reason(contacts, word):
    assert_refused(model(contacts), word)
