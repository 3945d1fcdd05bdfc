"""Every real number of a model is a leaf: it can be batched, and has an effect or an exemption.

All leaves of a model are perturbed one by one, the perturbed models stacked, and run at once.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import STIFF

import jaxsim
from jaxsim.model.model import Model

pytestmark = pytest.mark.long

MODELS = {
    "machine": """
<mujoco>
  <option density="1.2" viscosity=".1" wind="1 2 3" magnetic=".1 .2 .3" cone="elliptic"
          impratio="3">
    <flag energy="enable"/>
  </option>
  <custom><numeric name="n" data="1 2"/><tuple name="t">
    <element objtype="body" objname="base" prm="1"/></tuple>
  </custom>
  <size nuser_body="1" nuser_jnt="1" nuser_geom="1" nuser_site="1" nuser_cam="1"
        nuser_tendon="1" nuser_actuator="1" nuser_sensor="1"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1" margin=".1" gap=".05" solmix="2" solref=".03 1"/>
    <light pos="0 0 3" dir="0 1 -1"/>
    <site name="w" pos=".3 -.2 .5"/>
    <body name="mocap" mocap="true" pos="0 0 3"><geom size=".1" contype="0"/></body>
    <body name="base" pos="0 0 .32" gravcomp=".3"><freejoint/>
      <geom type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid" contype="0" conaffinity="0"/>
      <geom name="foot" size=".3" pos="0 0 -.05" condim="6" friction="1 .01 .002" margin=".02"
        adhesion="3" surfacevel=".1 .2 .3 .4 .5 .6"/>
      <geom name="heel" size=".3" pos="0 .2 -.05" condim="3"/>
      <geom name="hand" size=".1" pos=".5 0 0"/>
      <site name="s0" pos=".1 .2 .3" euler="3 40 5"/>
      <site name="sole" pos="0 0 -.2" size=".001"/>
      <camera name="cam" pos=".1 .2 .3" euler="10 20 30"/>
      <camera mode="track" pos="1 0 0"/><camera mode="trackcom"/>
      <body name="ball" pos=".4 0 0" euler="0 30 0">
        <joint name="b" type="ball" pos=".1 0 0" armature=".3" damping="2" range="0 .1"
               margin=".05"/>
        <geom type="box" size=".1 .2 .3" pos=".1 .05 .02" mass="1" euler="10 20 30"/>
        <body name="tip" pos=".4 0 .3">
          <joint name="h" axis="1 2 3" ref="30" range="0 10" stiffness="3" springref="40"
                 springyield="4" margin=".3" frictionloss=".5" damping=".1"/>
          <joint name="x" type="slide" damping=".3" frictionloss="9" actuatorfrcrange="-.1 .1"/>
          <geom name="end" size=".1" pos=".05 0 0"/><site name="s1" pos=".1 .1 0"/>
        </body>
      </body>
    </body>
    <body name="lone" pos="2 0 .5"><joint name="l" axis="0 0 1"/>
      <geom size=".2" pos=".1 0 0"/>
      <geom name="round" type="cylinder" size=".1 .2" pos="0 .1 0" contype="0" conaffinity="0"/>
      <site name="s2" pos=".5 .2 0"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="floor" geom2="hand" margin=".3" condim="4" solref=".1 1" adhesion="2"/>
    <pair geom1="floor" geom2="end" gap=".01"/>
  </contact>
  <equality>
    <connect body1="tip" body2="lone" anchor=".1 .2 .3"/>
    <weld body1="base" body2="mocap" torquescale=".3"/>
    <joint joint1="h" joint2="l" polycoef="0 .1 .2 .3 .4"/>
  </equality>
  <tendon>
    <fixed name="f" armature=".2" frictionloss="1e5" damping=".2" stiffness="2" springlength=".1 .2"
           springyield=".01" range="0 .1" margin=".05" actuatorfrcrange="-.3 .3">
      <joint joint="h" coef="1"/><joint joint="x" coef="-2"/>
    </fixed>
    <spatial name="s" stiffness="3" springlength=".1" frictionloss=".3">
      <site site="w"/><geom geom="round"/><site site="s2"/>
      <pulley divisor="2"/><site site="s0"/><site site="s1"/>
    </spatial>
  </tendon>
  <actuator>
    <general joint="h" dyntype="filter" dynprm=".1" gainprm="2" biastype="affine"
             biasprm="1 2 3" actrange="-.1 .1" actlimited="true" armature=".1" damping=".2"/>
    <motor tendon="f" gear="3"/>
    <motor joint="x" forcerange="-.1 .1" gear="3"/>
    <motor joint="l" ctrlrange="-.1 .1"/>
    <motor tendon="s" nsample="3" delay=".003" interp="linear"/>
    <motor site="s0" gear="1 2 3 4 5 6"/>
    <muscle joint="l" lengthrange="-1 1"/>
    <general cranksite="s1" slidersite="s2" cranklength="2"/>
  </actuator>
  <sensor>
    <accelerometer site="s1" cutoff=".1"/><magnetometer site="s0"/>
    <gyro site="s1" nsample="3" delay=".0031" interp="linear"/>
    <framepos objtype="camera" objname="cam"/><framequat objtype="camera" objname="cam"/>
    <subtreecom body="base"/>
    <touch site="sole"/><framequat objtype="geom" objname="heel"/>
    <jointlimitpos joint="h" nsample="2" interval=".01 -.002"/><tendonlimitpos tendon="f"/>
  </sensor>
  <keyframe><key time="1" mpos="1 2 3"/></keyframe>
</mujoco>""",
    "override": """
<mujoco>
  <option o_margin=".1" o_solref=".03 1.2" o_solimp=".8 .9 .01 .4 2" o_friction=".5 .4 .1 .01 .02"
          tolerance="1e-2" ls_tolerance=".1">
    <flag override="enable"/>
  </option>
  <asset><mesh name="wedge" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 1" condim="6" contype="3"/>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".2 .3 .1"/></body>
    <body pos="1 0 .05"><freejoint/>
      <geom type="mesh" mesh="wedge" contype="0" conaffinity="2"/>
    </body>
    <body pos="5 0 2"><joint axis="0 0 1" frictionloss="1e4"/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>""",
    "soft": """
<mujoco>
  <option timestep=".001"><flag contact="disable" energy="enable"/></option>
  <worldbody><camera/>
    <body name="arm"><joint axis="0 1 .2"/><geom size=".05" mass=".4"/>
      <flexcomp name="cloth" type="grid" count="2 3 1" spacing=".1 .1 .1" dim="2" mass=".3">
        <pin id="0"/><edge damping=".2"/>
        <elasticity young="1e3" poisson=".3" thickness=".1" damping=".1" elastic2d="both"/>
      </flexcomp>
      <flexcomp name="shell" type="grid" count="2 2 2" spacing=".1 .1 .1" dim="3" mass=".3"
        dof="trilinear"><pin id="0"/>
        <elasticity young="1e3" poisson=".3" thickness=".1" damping=".1" elastic2d="both"/>
      </flexcomp>
    </body>
    <flexcomp name="rope" type="grid" count="3 1 1" spacing=".1 .1 .1" dim="1" mass=".3">
      <edge stiffness="9" damping="0"/></flexcomp>
    <flexcomp name="held" type="grid" count="3 1 1" spacing=".1 .1 .1" dim="1" mass=".3">
      <edge equality="true"/></flexcomp>
    <flexcomp name="tight" type="grid" count="2 2 2" spacing=".1 .1 .1" dim="3" mass=".3"
      dof="trilinear"><edge equality="strain"/></flexcomp>
  </worldbody>
</mujoco>""",
}


# leaves that nothing here reads, and why
WITHOUT_EFFECT = {
    ".*_user|numeric_data|tuple_objprm": "data of the user",
    ".*_rgba|light_(?!(pos|dir)$).*|mat_.*|tendon_width": "for viewers",
    "cam_(fovy|ipd|sensorsize|intrinsic)": "for viewers",
    "stat.(meaninertia|meanmass|meansize|extent|center)": "for viewers and users",
    "body_(subtreemass|margin)|dof_(M0|length)|geom_aabb": "the physics reads what it follows from",
    "(actuator|tendon)_length0": "the physics reads what it follows from",
    "geom_rbound": "decides what is looked at; a larger radius finds nothing new",
    "mesh_(normal|texcoord)": "for viewers",
    "mesh_(scale|pos|quat)": "the physics reads what it follows from",
    "mesh_polynormal": "it tells which face of a hull is meant",
    "(hfield|oct|skin)_.*": "they neither collide nor move",
    "flex_(solmix|solref|solimp|friction|margin|gap)": "contacts are off (test_flex_contacts.py)",
    "flex_yield": "nothing here yields (physics/flex/test_yield.py)",
    "flex_(size|texcoord)": "for viewers",
    "opt.ccd_tolerance": "of a method that is not there",
    "opt.ls_tolerance": "the iterations end in one place, however far each line is searched",
    "opt.sleep_tolerance": "the trees of these models do not sleep",
    "opt.noslip_tolerance": "these models have no such iterations",
    "plugin_(state0|params)": "these models have no plugins (tests/extend)",
    "sensor_noise": "MuJoCo does not apply it either",
}

# where a small change is too small to matter
SPREAD = {
    "opt.tolerance": 1e12,  # the solver stops early
    "geom_gap": 1.0,  # contacts are found farther away
    "pair_gap": 1.0,
    "site_size": 1.0,  # a touch sensor reaches a contact
}
# the second slides: the solver has work to do
SPEEDS = {"machine": 0.1, "override": 3.0, "soft": 0.1}
ROUNDING = 1e-11  # smaller changes are none
ALONE = ("override",)  # run one by one too; for the other the program takes long to compile
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once


def run(m: Model, d: jaxsim.Data) -> list:
    """Everything that the numbers of a model can change."""
    start = jaxsim.make_data(m)
    reset = jaxsim.reset_data_keyframe(m, start, 0) if m.nkey else start
    end = jaxsim.step(m, d)
    # slots without a contact are unspecified, except that they have none
    there = end.contact.geom[:, 0] >= 0
    seen = jax.tree.map(
        lambda a: jnp.where(there.reshape(-1, *(1,) * (a.ndim - 1)), a, 0), end.contact
    )
    results = (end.replace(contact=seen), start, reset)
    return [a for a in jax.tree.leaves(results) if a.dtype != jnp.bool]


def state(m: Model, speed: float) -> jaxsim.Data:
    rng = np.random.default_rng(1)

    def noise(size, spread=0.1):
        return jnp.asarray(spread * rng.standard_normal(size))

    # of the solver's last iterations statistics have nothing but rounding
    d = jaxsim.make_data(m, "all").replace(solver=None)
    qpos = jaxsim.support.integrate_pos(m, d.qpos, noise(m.nv, 0.03), 1.0)
    history = d.history + noise(m.nhistory, 1e-4)  # times keep their order
    inputs = {"act": noise(m.na), "ctrl": 0.5 + noise(m.nu), "history": history}
    return d.replace(qpos=qpos, qvel=noise(m.nv, speed), **inputs)


def perturbed(m: Model) -> tuple[list[str], Model]:
    """The model as it is, then once for each leaf with that leaf changed; stacked."""
    paths, tree = jax.tree.flatten_with_path(m)
    names = [jax.tree_util.keystr(path).lstrip(".") for path, _ in paths]
    rng = np.random.default_rng(0)
    stacked = []
    for k, (name, (_, leaf)) in enumerate(zip(names, paths, strict=True)):
        rows = np.repeat(np.asarray(leaf)[None], len(names) + 1, axis=0)
        noise = rng.uniform(0.5, 1, leaf.shape)
        rows[k + 1] += SPREAD.get(name, 1e-3 + 1e-2 * np.abs(rows[k + 1])) * noise
        stacked.append(rows)
    return names, jax.tree.unflatten(tree, stacked)


@pytest.fixture(scope="module")
def effects():
    """Return the largest change that each leaf made in any model.

    On the way: a world's results depend on its own model, wherever in the batch it is, and equal
    those of the model alone.
    """
    found: dict[str, float] = {}
    for model, xml in MODELS.items():
        m = jaxsim.load_model(xml)
        d = state(m, SPEEDS[model])
        names, models = perturbed(m)
        many = jax.jit(jax.vmap(run, (0, None)), compiler_options=COMPILER)
        together = many(models, d)
        reversed_models = jax.tree.map(lambda a: a[::-1], models)
        for a, b in zip(together, many(reversed_models, d), strict=True):
            np.testing.assert_allclose(a, b[::-1], rtol=1e-6, atol=STIFF["atol"])
        if model in ALONE:
            alone = jax.jit(run, compiler_options=COMPILER)
            for k, name in enumerate(names):
                one = alone(jax.tree.map(lambda a, k=k: a[k + 1], models), d)
                for a, b in zip(together, one, strict=True):
                    np.testing.assert_allclose(
                        a[k + 1], b, rtol=1e-6, atol=STIFF["atol"], err_msg=name
                    )
        for k, name in enumerate(names):
            changes = [_change(a[0], a[k + 1]) for a in map(np.asarray, together)]
            found[name] = max(found.get(name, 0.0), *changes)
    return found


def _change(before: np.ndarray, after: np.ndarray) -> float:
    """The largest change of an output, in units of its size."""
    scale = 1 + np.abs(before).max(initial=0)
    return float(np.abs(after - before).max(initial=0) / scale)


@pytest.mark.slow
def test_every_leaf_matters_or_it_is_said_why_not(effects):
    wrong = []
    for name, change in effects.items():
        reasons = [why for pattern, why in WITHOUT_EFFECT.items() if re.fullmatch(pattern, name)]
        if reasons:
            wrong += [f"{name} has an effect, and a reason: {reasons}"] * (change > ROUNDING)
        elif not change > ROUNDING:
            wrong.append(f"{name} has no effect: say why")
    assert not wrong, "\n".join(wrong)
