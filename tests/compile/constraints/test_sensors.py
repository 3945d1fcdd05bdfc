"""Every sensor equals MuJoCo's."""

import pytest
from compile.oracle import assert_agrees, assert_refused


def model(sensors, size=""):
    return f"""
        <mujoco>
          <size {size}/>
          <worldbody>
            <camera name="cam" resolution="4 3"/>
            <camera name="plain"/>
            <camera name="none" resolution="0 3"/>
            <camera name="minus" resolution="-1 -1"/>
            <body name="a">
              <joint name="j"/><joint name="lim" type="slide" range="0 1"/>
              <geom name="g1" size=".1"/><site name="s"/>
              <body name="b" pos="1 1 1">
                <joint name="ball" type="ball" range="0 90"/><geom name="g2" size=".1"/>
              </body>
            </body>
            <body name="c">
              <freejoint name="free"/><geom name="g3" size=".1"/><site name="s2"/>
            </body>
          </worldbody>
          <tendon>
            <fixed name="t"><joint joint="j" coef="1"/></fixed>
            <fixed name="tl" range="0 1"><joint joint="j" coef="1"/></fixed>
          </tendon>
          <actuator><motor name="m" joint="j"/><orientation name="o" joint="ball"/></actuator>
          <sensor>{sensors}</sensor>
        </mujoco>"""


FRAMES = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel".split()
ALL_CONTACT = "found force torque dist pos normal tangent linvel angvel"

SENSORS = [
    *(
        f'<{tag} site="s"/>'
        for tag in "touch accelerometer velocimeter gyro force torque magnetometer".split()
    ),
    *(f'<{tag} joint="j"/>' for tag in "jointpos jointvel jointactuatorfrc".split()),
    *(f'<{tag} joint="ball"/>' for tag in "ballquat ballangvel".split()),
    *(
        f'<jointlimit{what} joint="{joint}"/>'
        for what in ("pos", "vel", "frc")
        for joint in ("lim", "ball")
    ),
    *(f'<tendon{what} tendon="t"/>' for what in ("pos", "vel", "actuatorfrc")),
    *(f'<tendonlimit{what} tendon="tl"/>' for what in ("pos", "vel", "frc")),
    *(f'<actuator{what} actuator="{name}"/>' for what in ("pos", "vel", "frc") for name in "mo"),
    *(f'<{tag} objtype="body" objname="b"/>' for tag in [*FRAMES, "framelinacc", "frameangacc"]),
    *(f'<{tag} objtype="geom" objname="g1" reftype="xbody" refname="c"/>' for tag in FRAMES),
    '<framepos objtype="camera" objname="cam" reftype="site" refname="s"/>',
    '<framepos objtype="xbody" objname="world" reftype="camera" refname="cam"/>',
    *(f'<{tag} body="a"/>' for tag in "subtreecom subtreelinvel subtreeangmom".split()),
    '<insidesite site="s" objtype="body" objname="c"/>',
    '<insidesite site="s" objtype="geom" objname="g3" enclosed="true"/>',
    *(f'<{tag} geom1="g1" geom2="g3"/>' for tag in ("distance", "normal", "fromto")),
    *(f'<{tag} body1="a" geom2="g3" cutoff="3"/>' for tag in ("distance", "normal", "fromto")),
    '<camprojection site="s" camera="cam"/>',
    '<rangefinder site="s" cutoff="3"/>',
    '<rangefinder camera="cam" data="point normal"/>',
    '<rangefinder camera="plain"/>',
    '<rangefinder site="s" data="dist dir origin point normal depth"/>',
    "<contact/>",
    *(f'<contact geom1="g1" geom2="g3" data="{field}"/>' for field in ALL_CONTACT.split()),
    f'<contact body1="a" subtree2="c" num="3" data="{ALL_CONTACT}"/>',
    *(
        f'<contact site="s" body2="a" reduce="{how}" data="dist"/>'
        for how in ("mindist", "maxforce", "netforce")
    ),
    "<e_potential/>",
    "<e_kinetic/>",
    '<clock cutoff="2" noise="1" nsample="2" interp="cubic" delay=".1" interval=".1 -.02"'
    ' user="1 2"/>',
    '<user dim="3" objtype="body" objname="a" datatype="axis" needstage="vel"/>',
    '<user dim="1" needstage="none" datatype="positive" noise="1" cutoff="2"/>',
]


@pytest.mark.parametrize("sensor", SENSORS)
def test_sensor(sensor):
    assert_agrees(model(sensor))


def test_all_sensors_at_once_have_their_addresses():
    assert_agrees(model("".join(SENSORS) + '<clock name="end" nsample="3"/>'))


@pytest.mark.parametrize(
    ("sensor", "word"),
    [
        ('<touch site="q"/>', "names no site"),
        ('<jointpos joint="ball"/>', "hinge or a slide"),
        ('<ballquat joint="free"/>', "ball joint"),
        ('<jointlimitpos joint="j"/>', "no limit"),
        ('<tendonlimitpos tendon="t"/>', "no limit"),
        ('<framequat objtype="body" objname="a" cutoff="1"/>', "cutoff"),
        ('<framepos objtype="geom" objname="g"/>', "did you mean 'g"),
        ('<distance geom1="g1" geom2="g1"/>', "the same"),
        ('<contact geom1="g1" num="0"/>', "num"),
        ('<user dim="2" datatype="axis"/>', "must be 3"),
        ('<user dim="-1"/>', "dim"),
        ('<clock cutoff="-1"/>', "negative"),
        *((f'<rangefinder camera="{c}"/>', "needs a resolution") for c in ("none", "minus")),
        *((f'<contact {side}=""/>', f"{side} is empty") for side in ("geom1", "body2", "site")),
        ('<clock delay=".1"/>', "nsample"),
        ('<clock interval=".1 .2"/>', "interval"),
        ('<clock name="a"/><clock name="a"/>', "exists already"),
    ],
)
def test_refused(sensor, word):
    assert_refused(model(sensor), word)


@pytest.mark.parametrize("tag", ["rangefinder", "contact"])
def test_data_in_another_order_is_refused(tag):
    assert_refused(model(f'<{tag} site="s" data="normal dist"/>'), "data")


def test_a_tactile_sensor_in_a_model_without_geoms_is_refused():
    assert_refused('<mujoco><sensor><tactile geom="g" mesh="m"/></sensor></mujoco>', "'g'")


@pytest.mark.parametrize("bare", ["", 'contype="0" conaffinity="0"', 'contype="0"'])
def test_a_tactile_sensor_needs_a_body_that_can_touch(bare):
    """A geom of the sensor's own body; one on a body that is welded to it is not enough."""
    xml = f"""
        <mujoco>
          <asset><mesh name="pad" builtin="plate" params="2 3"/></asset>
          <worldbody>
            <body><freejoint/><geom name="g" size=".1" {bare}/>
              <body><geom name="other" size=".1"/></body></body>
          </worldbody>
          <sensor><tactile geom="other" mesh="pad" cutoff=".3"/>
            <tactile name="skin" geom="g" mesh="pad" nsample="2" delay=".1"/></sensor>
        </mujoco>"""
    if "conaffinity" in bare:
        assert_refused(xml, "its body has no geom with contype or conaffinity")
    else:
        assert_agrees(xml)
