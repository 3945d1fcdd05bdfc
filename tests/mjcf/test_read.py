"""Files and texts are read into typed trees; errors have location and remedy."""

import mujoco
import numpy as np
import pytest
from lxml import etree

from jaxsim.errors import ModelError, SourceLocation
from jaxsim.mjcf import parse, read_file, read_string


def _problems(text: str) -> list[str]:
    with pytest.raises(ModelError) as caught:
        read_string(text, name="arm.xml")
    return str(caught.value).splitlines()


def test_a_typed_tree():
    root = read_string(
        """<mujoco model="m">
  <!-- a -- comment -->
  <worldbody>
    <body name="b" mocap="true">
      <geom size=".1 2" condim="4" name="" user="1 2 3"/>
    </body>
  </worldbody>
</mujoco>""",
        name="arm.xml",
    )
    geom = root.find("worldbody").find("body").find("geom")
    assert root.attrs == {"model": "m"}
    assert list(geom.attrs) == ["size", "condim", "user"]
    np.testing.assert_array_equal(geom.attrs["size"], [0.1, 2.0])
    assert geom.attrs["condim"] == 4
    assert geom.place == SourceLocation("arm.xml", 5)
    assert geom.row.tag == "geom"
    assert [e.tag for e in root.walk()] == ["mujoco", "worldbody", "body", "geom"]


def test_repeated_sections_stay_apart():
    root = read_string("<mujoco><asset/><worldbody/><asset/></mujoco>")
    assert [child.tag for child in root.children] == ["asset", "worldbody", "asset"]


# Errors inside <worldbody>, and their messages.
IN_WORLD = [
    ("<geom siz='1'/>", "<geom> has no attribute 'siz'; did you mean 'size'?"),
    ("<geom Size='1'/>", "<geom> has no attribute 'Size'; did you mean 'size'?"),
    (
        "<body><joint name='elbow' range='0 1 2'/></body>",
        "<joint name='elbow'>: range needs 2 numbers, got 3 ('0 1 2')",
    ),
    ("<geom size='1 2 3 4'/>", "<geom>: size needs 1 to 3 numbers, got 4 ('1 2 3 4')"),
    ("<geom type='shpere'/>", "<geom>: type cannot be 'shpere'; did you mean 'sphere'?"),
    ("<geom type=' box'/>", "<geom>: type cannot be ' box'; did you mean 'box'?"),
    (
        "<body mocap='7'/>",
        "<body>: mocap cannot be '7'; it is one of: false, true",
    ),
    ("<goem/>", "<worldbody> has no element <goem>; did you mean <geom>?"),
    ("<zzzzzz/>", "<worldbody> has no element <zzzzzz>; remove it"),
    ("<geom><site name='s'/></geom>", "<site name='s'> cannot stand in <geom>; it belongs in"),
    ("<frame scale='1 2'/>", "<frame>: scale needs 1 or 3 numbers, got 2 ('1 2')"),
    ("<joint/>", "<joint> cannot stand in <worldbody>; it belongs in <body>"),
    ("<frame><joint/></frame>", "<joint> cannot stand in <frame>; it belongs in <body>"),
    ("<inertial pos='0 0 0' mass='1'/>", "<inertial> cannot stand in <worldbody>"),
    ("<body><replicate count='2'><joint/></replicate></body>", "<joint> cannot stand in <repli"),
    ("<replicate/>", "<replicate> needs the attribute 'count'"),
    ("<replicate count=''/>", "<replicate> needs the attribute 'count'"),
    (
        "<composite type='cable'/>",
        "<composite> was removed in MuJoCo 4.0; write a <flexcomp>, for a cable one of dim='1'",
    ),
    (
        "<geom quat='1 0 0 0' euler='0 0 0'/>",
        "<geom>: quat, euler exclude each other; keep one",
    ),
    (
        "<body><inertial pos='0 0 0' mass='1'/><inertial pos='0 0 0' mass='1'/></body>",
        "<body> has more than one <inertial>; merge it with that of arm.xml:3",
    ),
]


@pytest.mark.parametrize(("text", "message"), IN_WORLD)
def test_messages_of_the_tree(text, message):
    said = _problems(f"<mujoco>\n<worldbody>\n{text}\n</worldbody>\n</mujoco>")
    assert len(said) == 1
    assert said[0].startswith(f"arm.xml:3: {message}")


# Errors inside <mujoco>, and their messages.
IN_ROOT = [
    ("<worldbody name='w'/>", "<worldbody name='w'> has no attributes, got 'name'"),
    ("<light/>", "<light> cannot stand in <mujoco>; it belongs in <worldbody>"),
    (
        "<sensor><framepos objtype='site' objname='s' reftype='body'/></sensor>",
        "<framepos>: reftype needs refname as well",
    ),
    (
        "<sensor><touch/></sensor>",
        "<touch> needs the attribute 'site'",
    ),
    (
        "<sensor><rangefinder/></sensor>",
        "<rangefinder>: give site, or camera",
    ),
    (
        "<equality><connect body1='a'/></equality>",
        "<connect>: give site1 and site2, or body1 and anchor",
    ),
    (
        "<equality><weld body1='a' site1='s' site2='t'/></equality>",
        "<weld>: site1, site2, body1 exclude each other; keep one: site1 and site2, or body1",
    ),
    ("<option><flag/><flag/></option>", "<option> has more than one <flag>; merge it with"),
    ("<compiler coordinate='global'/>", "<compiler>: coordinate='global' is gone; give poses"),
    (
        "<compiler eulerseq='xyq'/>",
        "<compiler>: eulerseq needs three letters of 'xyzXYZ', such as 'xyz', got 'xyq'",
    ),
    ("<custom><text name='t'/></custom>", "<text name='t'> is empty; give data"),
    ("<custom><text name='t'>no</text></custom>", "<text name='t'> is empty; give data"),
    (
        "<custom><text name='t' data='a'><![CDATA[b]]></text></custom>",
        "<text name='t'> has its text twice, as data and as CDATA; keep one",
    ),
    (
        "<default class='k'/>",
        "<default class='k'> is the outermost class, which is called 'main'; put it inside",
    ),
    ("<default><default/></default>", "<default> inside another needs the attribute 'class'"),
    (
        "<asset><material name='m' texture='t'><layer texture='t' role='rgb'/></material></asset>",
        "<material name='m'>: texture and <layer> exclude each other; make it a layer",
    ),
    (
        "<statistic meanmas='1'/>",
        "<statistic> has no attribute 'meanmas'; did you mean 'meanmass'?",
    ),
    ("<statistic q='1'/>", "<statistic> has no attribute 'q'; it has: meaninertia, meanmass,"),
]


@pytest.mark.parametrize(("text", "message"), IN_ROOT)
def test_messages_of_the_sections(text, message):
    said = _problems(f"<mujoco>\n{text}\n</mujoco>")
    assert len(said) == 1
    assert said[0].startswith(f"arm.xml:2: {message}")


# Texts that are no model at all.
BROKEN = [
    ("", "arm.xml: the file is empty; a model needs at least <mujoco/>"),
    (" \n ", "arm.xml: the file is empty; a model needs at least <mujoco/>"),
    ("PK\3\4\0\0", "arm.xml: this is a binary file; an MJCF model is XML text"),
    ("solid x", "arm.xml: this is no XML text; a model begins with <mujoco>"),
    ("root & x\ny", "arm.xml: this is no XML text; a model begins with <mujoco>"),
    ("root <a", "arm.xml:1: this is no XML text; a model begins with <mujoco>"),
    ("<!-- <mujoco/>", "arm.xml:1: broken XML, <!-- is not closed; close it, or remove it"),
    ("<mujoco>\n<!-- a ><![CDATA[ --></mujoco", "arm.xml:2: broken XML"),
    ("<mujoco/>\n<!x", "arm.xml:2: broken XML, <!x is not closed; close it, or remove it"),
    ("<mujoco>\n<worldbody>", "arm.xml:2: broken XML, the text ends inside <worldbody>, opened"),
    (
        "<mujoco>\n<worldbody>\n</mujoco>",
        "arm.xml:3: broken XML, mismatched tag; <worldbody> of line 2 is not closed yet",
    ),
    (
        "<mujoco>\n<option timestep=.1/></mujoco>",
        "arm.xml:2: broken XML, AttValue: \" or ' expected; write attributes as"
        " name=\"value\" and close every tag with > ('<option timestep=.1/></mujoco>')",
    ),
    ("<mujoco a='1' a='2'/>", "arm.xml:1: broken XML, Attribute a redefined; keep one"),
    ("<!-- a -->\n<?b c?><mujoco/>", "arm.xml:2: <?b?> must precede everything else"),
    ("<!-- a --><?xml version='1.0'?><mujoco/>", "arm.xml:1: <?xml?> must precede everything else"),
    ("<mujoco>\n<?b c?></mujoco>", "arm.xml:2: <?b?> must precede everything else"),
    ("<mujoco/><mujoco>", "arm.xml:1: broken XML, the text ends inside <mujoco>, opened in line 1"),
    ("<mujoco/>\n text\n", "arm.xml:2: broken XML, text after the last element; remove it"),
    ("<mujoco/> &\n", "arm.xml:1: broken XML, text after the last element; remove it"),
    ("<mujoco/> a > ", "arm.xml:1: broken XML, text after the last element; remove it"),
    ("<mujoco>\n<a b='1'\n c=2/><!--", "arm.xml:3: broken XML, AttValue: "),
    ("<mujoco/>\n</>", "arm.xml:2: broken XML, an end tag that closes nothing; remove it ('</>')"),
    ("</mujoco><mujoco/>", "arm.xml:1: broken XML, an end tag that closes nothing; remove it"),
    ("<mujoco model='\1'/>", "arm.xml:1: broken XML, invalid character in attribute value; rem"),
    (
        "<mujoco model='&#0;'/>",
        "arm.xml:1: broken XML, xmlParseCharRef: invalid xmlChar value 0; r",
    ),
    ("<mujoco/></mujoco", "arm.xml:1: broken XML, expected '>'; write attributes"),
    (
        "<foo/>",
        "arm.xml:1: <foo> is not an MJCF model; the outermost element must be <mujoco>",
    ),
    (
        "<mujocoinclude/>",
        "arm.xml:1: <mujocoinclude> is a part of a model; load the file that includes it",
    ),
    (
        "<mujoco><worldbody>" + "<body>" * 498 + "</body>" * 498 + "</worldbody></mujoco>",
        "arm.xml:1: <body> is nested more than 499 elements deep; flatten the model",
    ),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_model(text, message):
    said = _problems(text)
    assert len(said) == 1
    assert said[0].startswith(message)


def test_all_problems_are_reported_at_once():
    said = _problems(
        "<mujoco>\n<option a='1' gravity='0'/>\n<worldbody><goem/></worldbody></mujoco>"
    )
    assert [line.split(" ")[0] for line in said] == ["arm.xml:2:", "arm.xml:2:", "arm.xml:3:"]


# Texts that XML forbids or MuJoCo allows, and that must be read.
ALLOWED = [
    "\n <?xml version='1.0'?>\n<mujoco/>",
    "<?xml version='1.0' encoding='nonsense'?>\n<?xml-model href='x'?><!-- a --><mujoco/>",
    "<mujoco><!-- a -- b ---></mujoco>",
    "<mujoco>text<worldbody>more</worldbody></mujoco>",
    "<mujoco xmlns='http://x' xsi:noNamespaceSchemaLocation='m.xsd'/>",
    "<!DOCTYPE mujoco><mujoco/>",
    '<!DOCTYPE m [\n<!ENTITY a "aa">\n<!ENTITY b "&a;&a;">]><mujoco model="&b;"/>',
    '<!DOCTYPE m [<!ENTITY a SYSTEM "/etc/passwd">]><mujoco>&a;</mujoco>',
    '<!DOCTYPE m SYSTEM "http://x.org/m.dtd"><mujoco/>',
    "before <mujoco/> & after <!-- -->",
    "<![CDATA[a]]><mujoco><!a><!b '<'>text ]]> &a;</mujoco><![CDATA[b]]>",
    "<mujoco model='<!-- a -->'><!-- -- <mujoco> --></mujoco>",
    "<mujoco>" + "<!-- -- -->" * 3 + "</mujoco>" + "<a/>" * 1000,
    "<mujoco model='a & b < c'/>",
    "<mujoco><worldbody><geom name='g'type='sphere'size='1'/></worldbody></mujoco>",
    "<mujoco><worldbody>" + "<body>" * 496 + "</body>" * 496 + "</worldbody></mujoco>",
    "<mujoco><option/><option/><default/><default class='main'/></mujoco>",
    "<mujoco><worldbody><geom size='1' pos='' type='sphere'/></worldbody></mujoco>",
    "<mujoco model='&a;'/>",
    "<mujoco/>\n</mujoco>",
    "<mujoco/></worldbody> << & text",
    "<mujoco/><mujoco model='m'><option/></mujoco>",
    "<mujoco/>\0 zeros",
    "<mujoco/></mujoco><?xml version='1.0'?><!-- <",
    "<mujoco><body name='b'><geom size='1'/></body><frame><body/></frame></mujoco>",
    "<mujoco><worldbody><replicate count='2' prefix='c'/></worldbody></mujoco>",
    "<mujoco><worldbody><frame color='red'/></worldbody></mujoco>",
]


@pytest.mark.parametrize("text", ALLOWED, ids=range(len(ALLOWED)))
def test_optional_syntax_is_accepted(text):
    assert read_string(text).tag == "mujoco"
    mujoco.MjModel.from_xml_string(text)


def test_bodies_outside_the_world_are_checked_and_dropped(caplog):
    root = read_string("<mujoco>\n<body name='b'><geom size='1'/></body><option/></mujoco>")
    assert [child.tag for child in root.children] == ["option"]
    assert "<body name='b'> stands outside <worldbody> and is ignored" in caplog.text


def test_numbers_that_are_none_are_told(caplog):
    root = read_string("<mujoco><worldbody><site name='s' pos='0 nan 0'/></worldbody></mujoco>")
    assert np.isnan(root.children[0].children[0].attrs["pos"][1])
    assert "<site name='s'>: pos has nan" in caplog.text
    said = _problems("<mujoco>\n<body name='b'><goem/></body></mujoco>")
    assert said == ["arm.xml:2: <body> has no element <goem>; did you mean <geom>?"]


def test_slips_in_loose_elements_are_refused():
    said = _problems("<mujoco><worldbody>\n<replicate coutn='2' count='2'/></worldbody></mujoco>")
    assert said == ["arm.xml:2: <replicate> has no attribute 'coutn'; did you mean 'count'?"]


@pytest.mark.parametrize("inside", ["<geom size='1' foo='1'/>", "<body foo='1'/>"])
def test_what_stands_in_a_loose_element_is_loose(inside, caplog):
    """MuJoCo asks for no attributes inside of frames, nor below."""
    text = f"<mujoco><worldbody><frame><body>{inside}</body></frame></worldbody></mujoco>"
    mujoco.MjModel.from_xml_string(text)
    read_string(text)
    assert "attribute 'foo' is ignored, as in MuJoCo" in caplog.text
    around = text.replace("<frame>", "").replace("</frame>", "<frame/>")
    assert "has no attribute 'foo'" in _problems(around)[0]


def test_slips_do_not_shift_lines():
    geom = "<geom\n name='g'a='1'/>"
    text = f"<mujoco model='a & b'>\n<!-- x\n--\n -->\n<worldbody>{geom}</worldbody></mujoco>"
    assert _problems(text)[0].startswith("arm.xml:5: <geom name='g'> has no attribute 'a'")


def test_a_dtd_has_no_effect(caplog):
    declared = '<!ENTITY a "x"><!ATTLIST mujoco model CDATA "from the DTD">'
    root = read_string(f"<!DOCTYPE mujoco [{declared}]>\n<mujoco/>", name="arm.xml")
    assert root.attrs == {}
    assert "arm.xml:1: <!DOCTYPE...> has no effect, as in MuJoCo" in caplog.text
    assert read_string(f"<!DOCTYPE m [{declared}]><mujoco model='&a;'/>").attrs["model"] == "&a;"


@pytest.mark.parametrize("start", ["<!--", "<![CDATA[", "<?a ", "<!a ", "<a b='", '<a b="'])
def test_what_is_not_closed_is_read_once(start):
    # a reader that goes back for each would take minutes
    with pytest.raises(ModelError):
        read_string("<mujoco>" + start * 200_000)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(encoding):
    text = "<mujoco model='Bär'/>".encode(encoding)
    assert read_string(text).attrs["model"] == "Bär"


def test_declared_encoding():
    text = "<?xml version='1.0' encoding='gbk'?><mujoco model='机器人'/>".encode("gbk")
    assert read_string(text).attrs["model"] == "机器人"


@pytest.mark.parametrize(
    "encoding", ["undefined", "unicode_escape", "raw_unicode_escape", "utf-7", "utf-16-le", "hex"]
)
def test_what_is_no_character_set_is_not_used(encoding):
    text = f"<?xml version='1.0' encoding='{encoding}'?><mujoco model='B\xe4r \\ud800'/>"
    assert read_string(text.encode("latin-1")).attrs["model"] == "B\xe4r \\ud800"


def test_text_of_a_cdata_section():
    root = read_string(
        "<mujoco><custom><text name='t'><![CDATA[a <!--b--> & c]]></text></custom></mujoco>"
    )
    assert root.find("custom").find("text").attrs["data"] == "a <!--b--> & c"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("many", [3, 70_000])  # libxml2 counts the lines of elements to 65,535
def test_lines(many, end):
    """An element stands where its start tag begins, on whatever line that is."""
    option = "<option\n a='1'\n/>"
    text = "<mujoco>" + "\n" * many + f"{option}\n<!--\n-->{option}<b:c/></mujoco>"
    said = _problems(text.replace("\n", end))
    assert [line.split(" ")[0] for line in said] == [
        f"arm.xml:{line}:" for line in (many + 1, many + 5, many + 7)
    ]
    said = _problems(("<mujoco>" + "\n" * many + "<a\n b=>").replace("\n", end))
    assert said[0].startswith(f"arm.xml:{many + 2}: broken XML")


def test_names_with_prefixes_are_names():
    """A prefix, declared or not, never hides what the name would be without it."""
    said = _problems("<mujoco xmlns:x='u' x:b='1'>\n<x:option/><option y:timestep='1'/></mujoco>")
    assert said[0].startswith("arm.xml:2: <mujoco> has no element <x:option>")
    assert said[1].startswith("arm.xml:2: <option> has no attribute 'y:timestep'")
    assert _problems("<mujoco>\n<a x:b='1' x:b='2'/></mujoco>")[0].startswith(
        "arm.xml:2: broken XML, Attribute x:b redefined; keep one"
    )
    assert len(_problems("<mujoco><jaxsim-cdata text='a'/><j:cdata text='b'/></mujoco>")) == 2


# Values, as they stand between quotes.
VALUES = [
    "a &amp; b",
    "&amp;#38;",
    "&#38;amp;",
    "&#x26;#38;",
    "& &lt;&gt;&quot;&apos; <",
    "&#65;&#x42;",
    "&amp",
    "x:y='z'w",
    "a\tb\nc",
    "xmlns:a",
]


@pytest.mark.parametrize("value", VALUES)
def test_values_equal_those_of_mujoco(value):
    text = f'<mujoco model="{value}"><asset/></mujoco>'
    expected = mujoco.MjSpec.from_string(text).modelname
    if "\t" in value:
        expected = expected.replace("\t", " ").replace("\n", " ")  # XML makes them spaces
    assert read_string(text).attrs["model"] == expected


def test_entities_do_not_grow():
    """Ten levels of ten each would be ten billion letters."""
    levels = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(10))
    text = f'<!DOCTYPE m [<!ENTITY e0 "x">{levels}]><mujoco model="&e10;">&e10;</mujoco>'
    assert read_string(text).attrs == {"model": "&e10;"}
    inside = f'<mujoco model="&e10;">{text[: text.index("<mujoco")]}&e10;</mujoco>'
    assert read_string(inside).attrs == {"model": "&e10;"}


@pytest.mark.parametrize(
    "dtd",
    [
        '<!DOCTYPE m [<!ENTITY a SYSTEM "{}">]>',
        '<!DOCTYPE m SYSTEM "{}">',
        '<!DOCTYPE m [<!ENTITY % p SYSTEM "{}">%p;]>',
        '<!DOCTYPE m [<!ENTITY % p SYSTEM "{}"><!ENTITY a "%p;">]>',
    ],
)
def test_nothing_outside_the_text_is_read(dtd, tmp_path):
    secret = tmp_path / "secret.dtd"
    secret.write_text('<!ENTITY a "secret"><!ATTLIST mujoco model CDATA "secret">')
    text = dtd.format(secret.as_uri()) + "<mujoco><custom><text name='&a;' data='b'>&a;</text>"
    root = read_string(text + "</custom></mujoco>")
    assert root.attrs == {}
    assert root.find("custom").find("text").attrs == {"name": "&a;", "data": "b"}


def test_the_parser_alone_reads_nothing_else(tmp_path):
    """The second protection: a DTD that passed the repair would have no effect either."""

    def read(entities: str) -> dict[str, str]:
        text = f"<!DOCTYPE d [{entities}]><d><mujoco model='&a;'>&a;</mujoco></d>"
        builder = parse._Builder(parse.Repaired(text, [0, 1], True, None), "arm.xml")
        etree.fromstring(text.encode(), parse._parser(builder))
        return builder.outermost[0].attrs

    assert read('<!ENTITY a "inside">') == {"model": "&a;"}
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(etree.XMLSyntaxError, match="external entity"):
        read(f'<!ENTITY a SYSTEM "{(tmp_path / "secret").as_uri()}">')
    levels = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(10))
    with pytest.raises(etree.XMLSyntaxError, match="amplification"):
        read(f'<!ENTITY e0 "x">{levels}<!ENTITY a "&e10;">')


def test_a_value_longer_than_ten_million_bytes():
    value = "1 " * 5_500_000
    root = read_string(f"<mujoco><custom><text name='t' data='{value}'/></custom></mujoco>")
    assert root.find("custom").find("text").attrs["data"] == value


def test_elements_far_too_deep():
    said = _problems("<mujoco>\n" + "<body>" * 100_000)
    assert said[0].startswith("arm.xml:2: <body> is nested more than 499 elements deep")


def test_files(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text("<mujoco model='m'/>")
    assert read_file(path).attrs["model"] == "m"
    assert read_file(path, assets={str(path): b"<mujoco model='n'/>"}).attrs["model"] == "n"


def test_files_that_cannot_be_read(tmp_path):
    def said(path) -> str:
        with pytest.raises(ModelError) as caught:
            read_file(path)
        return str(caught.value)

    missing = tmp_path / "no.xml"
    assert said(missing).startswith(f"{missing}: there is no such file; the current folder is '")
    assert said(tmp_path) == f"{tmp_path}: this is a folder; give the XML file inside it"
    assert "cannot be read: embedded null byte" in said("a\0b")
