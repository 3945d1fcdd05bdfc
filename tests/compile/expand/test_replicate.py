"""Replicated trees equal MuJoCo's in place, order and name."""

import pytest
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

PARTS = [
    '<replicate count="4" offset="1 0 0" euler="0 0 90">'
    '<body name="a"><geom size=".1"/></body></replicate>',
    '<body name="x"/><replicate count="10" offset="1 0 0"><body name="a"/></replicate>'
    '<body name="y"/>',
    '<replicate count="2" sep="-"><replicate count="2" offset="0 1 0"><site name="s"/>'
    "</replicate></replicate>",
    '<body><replicate count="3" euler="10 20 30" offset="1 .5 .2">'
    '<geom size=".1" pos="1 0 0" name="g"/></replicate></body>',
    '<replicate count="1"><body name="a"/></replicate>',
    '<frame pos="1 0 0"><replicate count="2"><body><freejoint/><geom size="1"/></body>'
    "</replicate></frame>",
]


@pytest.mark.parametrize("parts", PARTS)
def test_parts(parts):
    assert_agrees(f"<mujoco><worldbody>{parts}</worldbody></mujoco>")


def _copied(rest: str, inside: str = "", after: str = "") -> str:
    """A replicated body between two others, and what refers to them."""
    one = '<joint name="j{0}"/><geom name="g{0}" size="1"/><site name="s{0}"/><site name="t{0}"/>'
    body = '<body name="b{0}">' + one + "</body>"
    return (
        f'<mujoco><worldbody>{body.format("a")}<replicate count="2">{inside}{body.format("r")}'
        f"</replicate>{after}{body.format('z')}</worldbody>{rest}</mujoco>"
    )


@pytest.mark.parametrize(
    "rest",
    [
        '<equality><weld body1="ba" body2="br"/><weld body1="br"/></equality>',
        '<equality><connect site1="sr" site2="sa"/><joint joint1="jr"/></equality>',
        '<equality><joint joint1="ja" joint2="jr"/></equality>',
        '<tendon><spatial><site site="sa"/><site site="sr"/></spatial></tendon>',
        '<tendon><fixed><joint joint="ja" coef="1"/><joint joint="jr" coef="2"/></fixed></tendon>',
        '<tendon><spatial name="x"><site site="sa"/><geom geom="ga" sidesite="sr"/>'
        '<site site="ta"/></spatial></tendon><actuator><motor tendon="x"/></actuator>'
        '<sensor><tendonpos tendon="x"/></sensor><equality><tendon tendon1="x"/></equality>',
        '<tendon><spatial><site site="sr"/><geom geom="ga" sidesite="ta"/>'
        '<site site="sa"/></spatial></tendon>',
        '<contact><pair geom1="ga" geom2="gr"/><exclude body1="ba" body2="br"/></contact>',
        '<sensor><distance geom1="ga" geom2="gr"/></sensor>',
        '<actuator><general site="sa" refsite="sr"/><general site="sr" refsite="tr"/></actuator>',
        '<actuator><general slidersite="sr" cranksite="sa" cranklength="1"/></actuator>',
        '<custom><numeric name="n" data="1"/><tuple name="u"><element objtype="body" objname="br"/>'
        '<element objtype="numeric" objname="n"/></tuple></custom>',
        '<custom><tuple name="u"><element objtype="body" objname="br"/>'
        '<element objtype="body" objname="ba"/></tuple></custom>',
    ],
)
def test_what_refers_to_the_inside_and_the_outside(rest):
    assert_agrees(_copied(rest))


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (_copied('<equality><weld body1="bz" body2="br"/></equality>'), "'br'"),
        (_copied('<contact><exclude body1="bz" body2="br"/></contact>'), "'br'"),
        (_copied('<sensor><distance geom1="gr" geom2="gz"/></sensor>'), "'gr'"),
        (
            _copied('<tendon><spatial><site site="sr"/><site site="sz"/></spatial></tendon>'),
            "'sr'",
        ),
        (_copied("", '<light mode="targetbody" target="ba"/>'), "target='ba0'"),
        (_copied("", '<camera mode="targetbody" target="world"/>'), "target='world0'"),
        (
            _copied(
                '<contact><exclude body1="br" body2="q"/></contact>',
                after='<replicate count="2"><body name="q"/></replicate>',
            ),
            "'br'",
        ),
    ],
)
def test_elements_after_a_replicate_cannot_be_referenced_by_copies(model, word):
    assert_refused(model, word)


def test_absurd_counts_are_refused_before_memory_is_spent():
    nested = '<replicate count="1000">' * 5 + '<site name="s"/>' + "</replicate>" * 5
    with pytest.raises(ModelError, match="lower their counts"):
        compile_string(f"<mujoco><worldbody>{nested}</worldbody></mujoco>")


def test_what_refers_to_the_copies_is_copied_too():
    compiled = assert_agrees("""
        <mujoco>
          <worldbody>
            <site name="t"/>
            <replicate count="2" sep="_">
              <body name="a">
                <joint name="j"/>
                <geom size="1" name="g"/>
                <site name="s"/>
                <body name="b"><site name="q"/><geom size="1" name="h"/><joint name="k"/></body>
              </body>
            </replicate>
          </worldbody>
          <sensor>
            <framepos name="1" objtype="site" objname="t"/>
            <framepos name="2" objtype="site" objname="s" reftype="site" refname="q"/>
            <actuatorpos name="3" actuator="m"/>
          </sensor>
          <actuator><motor name="m" joint="j"/><motor name="n" tendon="f"/></actuator>
          <contact>
            <exclude name="e" body1="world" body2="a"/>
            <pair name="p" geom1="g" geom2="h"/>
          </contact>
          <tendon>
            <fixed name="f"><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed>
            <spatial name="l"><site site="t"/><site site="s"/></spatial>
          </tendon>
        </mujoco>""")
    assert compiled.names["sensor"] == ("1", "2_0", "3_0", "2_1", "3_1")
    assert compiled.names["tendon"] == ("f_0", "l_0", "f_1", "l_1")
