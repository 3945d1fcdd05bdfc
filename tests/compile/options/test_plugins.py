"""Plugins are declared, numbered and configured as in MuJoCo; unknown ones are refused."""

import pytest
from compile.oracle import assert_agrees, assert_refused

import jaxsim

GRID = '<config key="size" value="7 5"/><config key="fov" value="45 40"/>'

MODEL = """
<mujoco>
  <sensor>
    {sensors}
  </sensor>
  <actuator>
    {actuators}
  </actuator>
  <worldbody>
    <site name="s"/>
    <body name="b"><joint name="j"/><geom size=".1"/>{inside}</body>
  </worldbody>
  <extension>
    {extension}
  </extension>
</mujoco>
"""
DECLARED = """
<plugin plugin="mujoco.pid"/><plugin plugin="mujoco.sensor.touch_grid"/>
<plugin plugin="mujoco.sdf.bolt"/>
"""


def model(actuators="", sensors="", inside="", extension=DECLARED) -> str:
    return MODEL.format(actuators=actuators, sensors=sensors, inside=inside, extension=extension)


def pid(attrs="", **config) -> str:
    settings = "".join(f'<config key="{k}" value="{v}"/>' for k, v in config.items())
    return f'<plugin plugin="mujoco.pid" joint="j" {attrs}>{settings}</plugin>'


def grid(attrs='objtype="site" objname="s"', **config) -> str:
    settings = "".join(f'<config key="{k}" value="{v}"/>' for k, v in config.items())
    return f'<plugin plugin="mujoco.sensor.touch_grid" {attrs}>{settings}</plugin>'


def test_instances_are_numbered_in_the_order_of_reading():
    extension = """
    <plugin plugin="mujoco.pid">
      <instance name="shared"><config key="kd" value="2"/></instance>
    </plugin>
    <plugin plugin="mujoco.sensor.touch_grid"/>
    <plugin plugin="mujoco.sdf.torus"><instance name="ring"/></plugin>
    """
    assert_agrees(
        model(
            '<motor joint="j"/><plugin name="a" plugin="mujoco.pid" joint="j"/>'
            '<plugin instance="shared" joint="j" gear="3" ctrlrange="0 1"/>',
            f'<clock/><plugin name="g" plugin="mujoco.sensor.touch_grid" objtype="site" '
            f'objname="s" cutoff="2">{GRID}<config key="nchannel" value="3"/></plugin><clock/>',
            extension=extension,
        )
    )


@pytest.mark.parametrize(
    "actuator",
    [
        pid(kp=3, kd=".5"),
        pid('actdim="1"', ki=3),
        pid('actdim="2"', slewmax=0, ki=-1),
        pid('dyntype="filter" dynprm=".2"', imax=3),
        pid('dyntype="integrator" actdim="2" actrange="0 1" actearly="true"', ki=3),
        pid(ki=0, kp="x"),
        pid('class="soft"'),
    ],
)
def test_activations(actuator):
    soft = '<default><default class="soft"><general gear="4" ctrlrange="0 2"/></default></default>'
    assert_agrees(model(actuator).replace("<sensor>", f"{soft}<sensor>", 1))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"extension": '<plugin plugin="mujoco.pdi"/>'}, ("did you mean 'mujoco.pid'",)),
        ({"extension": '<plugin plugin="lab.unknown"/>'}, ("is not known",)),
        ({"actuators": pid(), "extension": ""}, ("must be declared",)),
        ({"actuators": '<plugin joint="j"/>'}, ("needs plugin, or the instance",)),
        ({"actuators": '<plugin joint="j" instance="i"/>'}, ("names no instance",)),
        (
            {
                "extension": '<plugin plugin="mujoco.pid"><instance name="i"/></plugin>',
                "actuators": '<plugin joint="j" instance="i" plugin="nosuch"/>',
            },
            ("plugin='nosuch' is not declared",),
        ),
        ({"actuators": pid(kpp=1)}, ("no setting of mujoco.pid", "did you mean 'kp'")),
        ({"actuators": pid(ki=1)}, ("actdim='1'",)),
        ({"actuators": pid('actdim="3"')}, ("actdim='0'",)),
        ({"actuators": pid('dyntype="user"')}, ("actdim='0'",)),
        ({"actuators": pid('actdim="1"', slewmax=-1)}, ("slewmax",)),
        ({"actuators": pid().replace("</", '<config key="kp" value="1"/>' * 2 + "</")}, ("twice",)),
        ({"actuators": '<plugin plugin="mujoco.sensor.touch_grid" joint="j"/>'}, ("sensors",)),
        ({"sensors": '<plugin plugin="mujoco.pid"/>'}, ("actuators",)),
        ({"inside": '<plugin plugin="mujoco.pid"/>'}, ("passive force",)),
        ({"sensors": grid(size="7 5")}, ("fov",)),
        ({"sensors": grid(fov="7 5")}, ("size",)),
        ({"sensors": grid(size="0 5", fov="7 5")}, ("positive",)),
        ({"sensors": grid(size="2 5", fov="190 5")}, ("190",)),
        ({"sensors": grid(size="2 5", fov="90 5", nchannel=7)}, ("nchannel",)),
        ({"sensors": grid(size="2 5", fov="90 5", gamma=2)}, ("gamma",)),
        ({"sensors": grid('objtype="body" objname="b"', size="2 5", fov="90 5")}, ("site",)),
    ],
)
def test_refused(parts, words):
    assert_refused(model(**parts), *words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("solid", ("was removed in MuJoCo 3.2.4", "<elasticity young='...'")),
        ("membrane", ("was removed in MuJoCo 3.2.4", "<elasticity elastic2d='stretch'")),
        ("shell", ("was removed in MuJoCo 3.3.3", "<elasticity elastic2d='bend'")),
    ],
)
def test_what_flexes_do_now_is_named_once_with_the_remedy(name, words):
    plugin = f"mujoco.elasticity.{name}"
    soft = f"""<flexcomp name="soft" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01">
      <plugin plugin="{plugin}"><config key="damping" value="1"/></plugin></flexcomp>"""
    declared = f'<plugin plugin="{plugin}"/>'
    xml = model(inside=soft, extension=declared)
    with pytest.raises(jaxsim.ModelError) as found:
        jaxsim.load_model(xml)
    (problem,) = found.value.problems
    assert declared in xml.splitlines()[problem.place.line - 1]
    assert all(text in problem.message for text in (plugin, "<flexcomp>", *words))
