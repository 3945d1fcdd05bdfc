"""Constants recomputed in JAX are the compiler's, and MuJoCo's after the same changes."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import world
from tolerance import DIFFERENCE, FLOAT32, ROUNDING, STAGE, STAGES

import jaxsim
from jaxsim.enums import MINVAL
from jaxsim.model.model import Model

BOX = '<geom type="box" size=".1 .2 .3" pos=".1 .05 .02" euler="10 20 30"/>'

# every kind of derived field, on bodies whose inertia is nowhere diagonal
PARTS = f"""
<mujoco>
  <option density="1.2"/>
  <statistic extent="3"/>
  <worldbody>
    <geom type="plane" size="1 2 .1" pos="0 0 -1"/>
    <camera name="fixed" pos="1 2 3" mode="targetbody" target="ball"/>
    <light pos="1 2 5" dir="0 1 -1"/>
    <site name="world" pos=".3 -.2 .5"/>
    <body name="free" pos="0 0 1"><freejoint/>{BOX}
      <geom type="ellipsoid" size=".1 .2 .3" pos="0 .3 0" fluidshape="ellipsoid" margin=".01"/>
      <geom type="capsule" size=".1 .2" pos="0 -.3 0" fluidshape="ellipsoid" gap=".02"/>
      <geom type="cylinder" size=".1 .2" pos=".3 0 0"/>
      <geom size=".1" pos="-.3 0 0" fluidshape="ellipsoid"/>
      <site name="s0" pos=".1 .2 .3" euler="3 40 5"/>
      <camera pos=".1 .2 .3" euler="10 20 30"/>
      <body name="ball" pos=".4 0 0" euler="0 30 0">
        <joint name="b" type="ball" pos=".1 0 0" armature=".3"/>{BOX}
        <body pos=".4 0 0">
          <joint name="h" axis="1 2 3" ref="30"/><joint type="slide"/>{BOX}
          <site name="s1" pos=".1 .1 0"/>
        </body>
      </body>
      <body name="arm" pos="0 .4 0">
        <joint name="k" axis="0 1 0" pos="0 .1 .2"/>{BOX}<site name="s2" pos="0 0 .2"/>
      </body>
    </body>
    <body name="mocap" mocap="true" pos="1 1 1"><geom size=".1"/><site name="s3"/></body>
    <body name="lone" pos="3 0 0"><joint name="l" axis="0 0 1" springref="20"/>{BOX}
      <geom name="round" type="cylinder" size=".1 .2" pos="0 .1 0"/>
      <site name="s4" pos=".5 .2 0"/><light pos="0 0 1" mode="track"/>
    </body>
    <body name="slider" pos="0 3 0">
      <joint type="slide" axis="1 0 0" armature="2"/><joint type="slide" axis="0 1 0"/>
      <geom size=".1"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="arm" body2="lone" anchor=".1 .2 .3"/>
    <weld body1="ball" body2="arm" anchor=".1 .2 .3"/>
    <weld body1="lone" body2="arm" relpose="1 2 3 1 0 0 0"/>
    <joint joint1="h" joint2="k"/>
  </equality>
  <tendon>
    <fixed name="f" armature="2">
      <joint joint="h" coef="1"/><joint joint="k" coef="-2"/><joint joint="l" coef="3"/>
    </fixed>
    <spatial name="s" armature=".5" stiffness="3"><site site="s1"/><site site="s2"/></spatial>
    <spatial name="w">
      <site site="world"/><geom geom="round"/><site site="s4"/>
      <pulley divisor="2"/><site site="s0"/><site site="s3"/>
    </spatial>
  </tendon>
  <actuator>
    <motor joint="h" armature=".2" gear="3"/>
    <motor tendon="s" armature=".1" gear="2"/>
    <motor tendon="w"/>
    <motor site="s0" gear="1 2 3 4 5 6"/>
    <motor site="s1" refsite="s2" gear="1 2 3 4 5 6"/>
    <motor jointinparent="b" gear="1 2 3"/>
    <adhesion body="arm" ctrlrange="0 1"/>
    <general cranksite="s1" slidersite="s2" cranklength="2"/>
  </actuator>
</mujoco>
"""

RTOL = STAGES["rtol"]

# numbers to be changed, and by how much; sizes and masses by a factor
FACTORS = "body_mass body_inertia geom_size dof_armature tendon_armature actuator_armature".split()
SHIFTS = (
    "body_pos body_ipos jnt_pos geom_pos site_pos cam_pos light_pos actuator_gear"
    " actuator_cranklength geom_margin geom_gap".split()
)
TURNS = "body_quat body_iquat geom_quat site_quat cam_quat jnt_axis light_dir".split()

COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
set_const = jax.jit(jaxsim.set_const, compiler_options=COMPILER)


@pytest.fixture(scope="module")
def parts():
    return jaxsim.load_model(PARTS)


def public(mj: mujoco.MjModel, name: str, like) -> np.ndarray:
    return np.reshape(np.array(getattr(mj, name), np.float64), np.shape(like))


def leaves(m: Model) -> dict:
    """The array fields that MuJoCo's model has too, by name."""
    names = (n for n, f in Model.fields.items() if not f.static and f.nested is None)
    ours = ("plugin_state0", "plugin_params")
    return {n: getattr(m, n) for n in names if n not in ours and getattr(m, n) is not None}


def same(got: Model, want: Model) -> None:
    for (path, a), (_, b) in zip(
        jax.tree.leaves_with_path(got), jax.tree.leaves_with_path(want), strict=True
    ):
        np.testing.assert_allclose(a, b, **STAGES, err_msg=jax.tree_util.keystr(path))


def changes(m: Model, seed: int) -> dict:
    """Random changes of what a user may change."""
    rng = np.random.default_rng(seed)

    def noise(value, spread):
        return spread * rng.standard_normal(np.shape(value))

    new = {n: np.array(getattr(m, n)) * np.exp(noise(getattr(m, n), 0.2)) for n in FACTORS}
    new |= {n: np.array(getattr(m, n)) + np.abs(noise(getattr(m, n), 0.1)) for n in SHIFTS}
    for name in TURNS:
        turned = np.array(getattr(m, name)) + noise(getattr(m, name), 0.1)
        new[name] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
    # MuJoCo refuses to move the inertial frame of a body that was compiled as simple
    for name in ("body_ipos", "body_iquat"):
        kept = np.asarray(m.body_simple)[:, None] > 0
        new[name] = np.where(kept, np.array(getattr(m, name)), new[name])
    coef = np.where(m.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT, 1.5, 1.0)
    new["wrap_prm"] = np.array(m.wrap_prm) * coef
    new["eq_data"] = np.array(m.eq_data)
    new["eq_data"][:3, :3] += rng.standard_normal((3, 3))
    new["qpos0"] = np.array(m.qpos0)
    new["qpos0"][:3] += rng.standard_normal(3)
    return new


def test_the_compilers_constants(parts):
    same(set_const(parts), parts)


SO3 = 'gaintype="so3" biastype="so3" gainprm="2" biasprm="0 -2 -.2"'

# Every way of a string past a sphere and a cylinder: ends, and the side site.
WAYS = (
    ("near", "on", ""),
    ("near", "on", 'sidesite="outside"'),
    ("far", "high", ""),
    ("far", "high", 'sidesite="inside"'),
)
STRINGS = "".join(
    f'<spatial><site site="{a}"/><geom geom="{geom}" {side}/><site site="{b}"/></spatial>'
    for geom in ("sphere", "cylinder")
    for a, b, side in WAYS
)

# These, and the actuators that PARTS does not have.
PATHS = f"""
<mujoco>
  <worldbody>
    <geom name="sphere" size=".2" contype="0" conaffinity="0"/>
    <geom name="cylinder" type="cylinder" size=".2 1" contype="0" conaffinity="0"/>
    <site name="near" pos="-.5 .05 .02"/><site name="far" pos="-.4 .3 .1"/>
    <site name="outside" pos=".02 -.6 .1"/><site name="inside" pos="0 .05 .02"/>
    <body pos=".6 0 0">
      <joint name="ball" type="ball" pos=".1 0 .1"/>{BOX}
      <site name="on" pos="0 .02 .05"/><site name="high" pos="-.2 .3 .2"/>
      <body pos=".2 0 .1"><joint name="hinge" axis="1 2 3"/>{BOX}
        <site name="end" pos=".1 .2 0" euler="10 20 30"/></body>
    </body>
  </worldbody>
  <tendon>{STRINGS}</tendon>
  <actuator>
    <general joint="ball" {SO3}/><general site="end" refsite="near" {SO3}/>
    <motor joint="ball" gear="1 2 3"/><motor joint="hinge" gear="2"/>
    <motor jointinparent="hinge" gear="3"/>
  </actuator>
</mujoco>
"""


def test_the_compilers_paths_and_transmissions():
    """The compiler has its own wrapping and transmissions (`compile/reference`)."""
    m = jaxsim.load_model(PATHS)
    same(set_const(m), m)
    # Paths wrap or are bent, except the straight line that misses the geom.
    straight = np.array(m.tendon_length0).reshape(2, 4)
    assert (straight[:, 1] > straight[:, 0] + 0.05).all()
    assert (straight[:, 3] > straight[:, 2] + 1e-3).all()


@pytest.mark.parametrize("seed", range(3))
def test_mujocos_constants_after_changes(parts, seed):
    mj = mujoco.MjModel.from_xml_string(PARTS)
    new = changes(parts, seed)
    for name, value in new.items():
        getattr(mj, name)[...] = value.reshape(getattr(mj, name).shape)
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    m = set_const(parts.replace(**{n: jnp.asarray(v) for n, v in new.items()}))
    for name, value in leaves(m).items():
        np.testing.assert_allclose(
            value,
            public(mj, name, value),
            rtol=RTOL,
            atol=STAGE["atol"],
            err_msg=name,
        )


@pytest.mark.slow
def test_vmap_is_the_loop(parts):
    new = [changes(parts, seed) for seed in range(3)]
    stacked = {n: jnp.stack([jnp.asarray(c[n]) for c in new]) for n in new[0]}
    some = {n: stacked[n] for n in ("body_mass", "body_pos", "jnt_axis", "geom_size")}
    many = jax.vmap(lambda v: jaxsim.set_const(parts.replace(**v)))
    together = jax.jit(many, compiler_options=COMPILER)(some)
    for k in range(3):
        alone = set_const(parts.replace(**{n: v[k] for n, v in some.items()}))
        same(world(together, k), alone)


SMALL = """
<mujoco>
  <worldbody>
    <site name="w" pos=".3 -.2 .5"/>
    <body pos="0 0 1" euler="10 20 30"><freejoint/>
      <geom type="ellipsoid" size=".1 .2 .3" pos=".1 0 0" fluidshape="ellipsoid"/>
      <body pos="0 .4 0"><joint name="k" axis="0 1 0" pos="0 .1 .2"/>
        <geom type="box" size=".1 .2 .3" pos=".1 .05 .02" euler="10 20 30"/>
        <site name="s" pos=".1 0 .2"/>
      </body>
    </body>
  </worldbody>
  <tendon><spatial name="t"><site site="w"/><site site="s"/></spatial></tendon>
  <actuator><motor tendon="t" gear="2"/><motor joint="k" gear="3" armature=".1"/></actuator>
</mujoco>
"""


def test_gradient_is_the_difference_quotient():
    m = jaxsim.load_model(SMALL)
    names = ("body_mass", "body_inertia", "body_pos", "actuator_gear", "geom_size", "site_pos")
    rng = np.random.default_rng(0)
    at = {n: getattr(m, n) for n in names}
    along = {
        n: jnp.asarray(np.where(v != 0, rng.standard_normal(v.shape), 0)) for n, v in at.items()
    }
    weights = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape)), m)

    def scalar(values):
        changed = jaxsim.set_const(m.replace(**values))
        pairs = zip(jax.tree.leaves(changed), jax.tree.leaves(weights), strict=True)
        return sum(jnp.sum(jnp.tanh(a) * w) for a, w in pairs)

    both = jax.jit(jax.value_and_grad(scalar), compiler_options=COMPILER)  # one program
    gradient = both(at)[1]
    reverse = sum(jnp.vdot(gradient[n], along[n]) for n in names)

    def moved(h):
        return both({n: at[n] + h * along[n] for n in names})[0]

    h = 1e-6
    np.testing.assert_allclose(reverse, (moved(h) - moved(-h)) / (2 * h), rtol=DIFFERENCE["rtol"])


@pytest.mark.slow
def test_single_precision():
    m = jaxsim.load_model(SMALL)
    single = jax.tree.map(lambda a: a.astype(jnp.float32), m)
    got = set_const(single)
    for name, value in leaves(got).items():
        assert value.dtype == jnp.float32, name
        np.testing.assert_allclose(value, getattr(m, name), **FLOAT32, err_msg=name)


def test_a_spring_length_of_minus_one_is_measured(parts):
    spring = np.array(parts.tendon_lengthspring)
    spring[1] = -1
    m = set_const(parts.replace(tendon_lengthspring=jnp.asarray(spring)))
    mj = mujoco.MjModel.from_xml_string(PARTS)
    np.testing.assert_allclose(m.tendon_lengthspring, mj.tendon_lengthspring, rtol=RTOL)


def test_statistics_are_measured_unless_they_were_given(parts):
    heavy = set_const(parts.replace(body_mass=2 * parts.body_mass))
    np.testing.assert_allclose(heavy.stat.meanmass, 2 * parts.stat.meanmass, **ROUNDING)
    assert heavy.stat.extent == 3
    given = "<mujoco><statistic extent='7'/><worldbody/></mujoco>"
    theirs = jaxsim.put_model(mujoco.MjModel.from_xml_string(given))
    changed = theirs.replace(stat=theirs.stat.replace(meansize=jnp.asarray(3.0)))
    assert set_const(changed).stat.extent == 7
    assert set_const(changed).stat.meansize == set_const(theirs).stat.meansize != 3


def test_height_fields_and_meshes():
    """The first follow from the sizes of their assets; the bounds of meshes stay."""
    mj = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <asset>
          <hfield name="field" nrow="2" ncol="2" size="1 2 .5 .1" elevation="0 1 0 0"/>
          <mesh name="mesh" vertex="0 0 0 1 0 0 0 2 0 0 0 3"/>
        </asset>
        <worldbody>
          <geom type="hfield" hfield="field"/>
          <body><joint/><geom type="mesh" mesh="mesh" fluidshape="ellipsoid"/></body>
        </worldbody>
      </mujoco>""")
    m = jaxsim.put_model(mj)
    mj.hfield_size[:] *= [[2, 3, 0.5, 4]]
    mj.geom_aabb[1] *= 1.5
    mj.geom_size[1] *= 1.2
    changed = {n: public(mj, n, getattr(m, n)) for n in ("hfield_size", "geom_aabb", "geom_size")}
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    m = set_const(m.replace(**{n: jnp.asarray(v) for n, v in changed.items()}))
    for name in ("geom_size", "geom_aabb", "geom_rbound", "geom_fluid", "dof_length"):
        value = getattr(m, name)
        np.testing.assert_allclose(value, public(mj, name, value), rtol=RTOL, err_msg=name)


@pytest.mark.parametrize("kind", ['type="grid" count="3 3 1"', 'type="grid" count="3 1 1" dim="1"'])
def test_edges_of_flexes(kind):
    """Vertices that slide on their own, but for one that is pinned to a turning body."""
    xml = f"""
      <mujoco>
        <worldbody>
          <body name="b"><joint axis="1 2 3"/><geom size=".1"/>
            <flexcomp name="f" {kind} spacing=".1 .2 .3" mass="2">
              <pin id="0"/><edge equality="true"/><contact selfcollide="none"/>
            </flexcomp>
          </body>
        </worldbody>
      </mujoco>"""
    m = jaxsim.load_model(xml)
    same(set_const(m), m)
    mj = mujoco.MjModel.from_xml_string(xml)
    new = {n: 1.5 * np.array(getattr(m, n)) for n in ("body_pos", "body_mass", "flex_vert")}
    for name, value in new.items():
        getattr(mj, name)[...] = value
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    m = set_const(m.replace(**{n: jnp.asarray(v) for n, v in new.items()}))
    for name in ("flexedge_length0", "flexedge_invweight0", "dof_length", "body_invweight0"):
        value = getattr(m, name)
        np.testing.assert_allclose(
            value, public(mj, name, value), rtol=STAGES["rtol"], atol=MINVAL, err_msg=name
        )


def test_an_interpolated_flex():
    """Its vertices follow nodes and have no body; its edges have no constants."""
    m = jaxsim.load_model("""
      <mujoco>
        <worldbody>
          <body name="b">
            <flexcomp name="f" type="grid" count="2 2 2" spacing=".1 .1 .1" dim="3" mass="1"
              dof="trilinear"><contact selfcollide="none"/></flexcomp>
          </body>
        </worldbody>
      </mujoco>""")
    same(set_const(m), m)


def test_a_model_without_dofs():
    m = jaxsim.load_model("<mujoco><worldbody><body pos='1 2 3'/></worldbody></mujoco>")
    same(set_const(m), m)
