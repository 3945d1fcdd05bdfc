"""Forces of contacts, limits and equalities as sensors and bodies feel them, against MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics import oracle
from states import random_state
from tolerance import SOLVER

from jaxsim.physics.collision.contact_list import contacts_from_list
from jaxsim.physics.collision.driver import CollisionResult
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.sensor.sensor import all_sensors

pytestmark = pytest.mark.long

SCENE = """
<mujoco><option cone="{cone}" gravity="1 0 -9.81"/><default><geom condim="{condim}"/></default>
<worldbody><geom name="floor" type="plane" size="3 3 .1"/><site name="ground" size="3"/>
  <body name="a" pos="0 0 .19"><joint type="slide" axis="0 0 1"/><joint axis="0 1 1"/>
    <joint type="slide" axis="1 0 0"/><geom size=".2" friction="1 .1 .2"/>
    <site name="sa" type="{shape}" size="{size}" pos=".02 .03 -.2" euler="10 20 30"/>
    <body name="b" pos=".45 0 0"><joint name="h" axis="0 1 0" range="-.5 .3"/>
      <geom size=".2 .1" type="capsule" euler="0 90 0"/><site name="sb" euler="30 40 10"/></body>
  </body>
  <body name="c" pos="0 0 .58"><freejoint/><geom size=".2"/><site name="sc" size=".1 .1 .1"/></body>
</worldbody>
<tendon><fixed name="t" range="-.005 .002"><joint joint="h" coef="2"/></fixed></tendon>
<equality>{equality}</equality>
<sensor>
  <touch name="touch" site="sa"/><touch site="sb"/><touch site="sc"/><touch site="ground"/>
  <force site="sa"/><torque site="sb"/><force site="sb"/><torque site="sc"/><force site="sc"/>
  <accelerometer site="sb"/><framelinacc objtype="body" objname="c"/>
  <frameangacc objtype="site" objname="sa"/>
  {contacts}
  <jointlimitfrc name="limit" joint="h"/><tendonlimitfrc tendon="t"/>
</sensor></mujoco>
"""
EQUALITIES = """<connect body1="a" body2="c" anchor="0 0 .3"/><weld site1="sb" site2="sc"/>
  <weld body1="c" body2="b" torquescale=".7"/><connect site1="sa" site2="sc"/>"""
ALL = 'data="found force torque dist pos normal tangent linvel angvel"'
CONTACTS = f"""<contact geom1="floor" body2="a" {ALL}/><contact body1="c" {ALL} num="3"/>
  <contact subtree2="a" {ALL} num="2" reduce="maxforce"/><contact data="found dist" num="4"/>
  <contact subtree1="a" num="3" reduce="mindist" data="dist pos"/><contact site="sa" {ALL}/>
  <contact site="ground" subtree2="a" reduce="netforce" data="found force torque dist pos normal"/>
  <contact subtree1="a" subtree2="a"/><contact body1="c" body2="a" data="normal"/>
  <contact geom1="floor" num="2" data="found force"/><contact body1="b" data="found"/>"""
CASES = {
    "pyramid 3": {},
    "pyramid 6": {"condim": 6, "shape": "box", "size": ".1 .2 .1"},
    "cone 3": {"cone": "elliptic", "shape": "cylinder", "size": ".05 .3"},
    "cone 4": {"cone": "elliptic", "condim": 4, "shape": "capsule", "size": ".05 .1"},
    "frictionless": {"condim": 1, "shape": "ellipsoid", "size": ".3 .3 .4"},
    "equalities": {"equality": EQUALITIES},
    "contact sensors": {"contacts": CONTACTS, "condim": 4},
}

SIMILAR = ("pyramid 6", "cone 4", "frictionless")


def build(
    cone="pyramidal", condim=3, shape="sphere", size=".1", equality="", contacts=""
) -> mujoco.MjModel:
    return oracle.compile_xml(
        SCENE.format(
            cone=cone, condim=condim, shape=shape, size=size, equality=equality, contacts=contacts
        )
    )


def given_contacts(m, d) -> CollisionResult:
    """The oracle's contacts as the constraint rows and sensors take them."""
    return CollisionResult(
        contacts_from_list(m, d.contact), d.ncon, jnp.zeros_like(d.ncon), packed=True
    )


def stage(m, d):
    d = d.replace(found=given_contacts(m, d))
    d = all_sensors(m, d.replace(rows=make_rows(m, d).rows))
    return d.replace(found=None, rows=None)


@pytest.mark.short("contact sensors")
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c in SIMILAR else c for c in CASES]
)
def test_sensors_and_body_forces_equal_those_of_mujoco(case):
    mj = build(**CASES[case])
    felt = np.zeros(mj.nsensordata)
    for seed in range(8):
        mjd = random_state(mj, seed, spread=0.03)
        mujoco.mj_rnePostConstraint(mj, mjd)
        d = jax.jit(stage)(*oracle.pair(mj, mjd))
        np.testing.assert_allclose(d.sensordata, mjd.sensordata, **SOLVER)
        np.testing.assert_allclose(d.cfrc_ext.to_array(), mjd.cfrc_ext, **SOLVER)
        np.testing.assert_allclose(d.cfrc_int.to_array(), mjd.cfrc_int, **SOLVER)
        np.testing.assert_allclose(d.cacc.to_array(), mjd.cacc, **SOLVER)
        felt += mjd.sensordata != 0
    assert felt[mj.sensor("touch").adr[0]] > 0
    assert case == "frictionless" or felt[mj.sensor("limit").adr[0]] > 0
