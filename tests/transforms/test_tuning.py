"""Thresholds: one record that a context replaces and a benchmark measures; no others exist."""

import ast
import importlib.util
import re
import sys
from dataclasses import asdict, fields
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

import jaxsim
from jaxsim.physics.partition import inertia_blocks
from jaxsim.transforms import tuning
from jaxsim.transforms.materialize import materialize_result
from jaxsim.transforms.program_cache import ProgramCache
from jaxsim.transforms.tuning import Tuning

pytestmark = pytest.mark.kernels

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "jaxsim"
NAMES = [f.name for f in fields(Tuning)]
PENDULUMS = """<mujoco><worldbody>
  <body><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0" contype="0" conaffinity="0"/></body>
  <body><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def m() -> jaxsim.Model:
    return jaxsim.load_model(PENDULUMS)


def kernels(function, *args) -> int:
    """Return the number of kernels of a program."""
    return len(re.findall("xla_cpu_small_call", jax.jit(function).lower(*args).as_text()))


def test_values_are_replaced_inside_of_the_context():
    assert tuning.tuning() == Tuning()
    with tuning.override(max_unrolled_dofs=16, search_lanes=32):
        with tuning.override(search_lanes=64):
            assert tuning.tuning() == Tuning(max_unrolled_dofs=16, search_lanes=64)
        assert tuning.tuning().search_lanes == 32
    assert tuning.tuning() == Tuning()


def test_platforms_have_values_of_their_own():
    with jaxsim.for_platform("cuda"):
        assert tuning.tuning().search_lanes > Tuning().search_lanes
        with tuning.override(search_lanes=8):
            assert tuning.tuning().search_lanes == 8


def test_an_unknown_threshold_is_refused():
    with pytest.raises(TypeError, match="max_unroled_dofs'; did you mean 'max_unrolled_dofs'"):
        tuning.override(max_unroled_dofs=16)


@pytest.mark.slow
def test_a_step_is_traced_anew_for_other_thresholds(m):
    d = jaxsim.make_data(m)
    usual = kernels(jaxsim.step, m, d)
    with tuning.override(max_kernel_operations=40):
        short = kernels(jaxsim.step, m, d)
    assert short > usual
    assert kernels(jaxsim.step, m, d) == usual


def test_results_do_not_depend_on_thresholds(m):
    d = jaxsim.make_data(m).replace(qvel=jnp.array([0.3, -0.2]))
    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)))
    worlds = jaxsim.replicate(d, 3)
    found = many(m, worlds)
    with tuning.override(max_kernel_operations=40, world_tiles=(1, 2, 2), min_block_speedup=9):
        other = many(m, worlds)
    np.testing.assert_allclose(other.qpos, found.qpos, rtol=1e-12)


def test_layouts_of_a_structure_are_kept_for_each_set_of_thresholds(m):
    assert len(inertia_blocks(m)) == 2
    with tuning.override(min_block_speedup=5):
        assert len(inertia_blocks(m)) == 1
    assert len(inertia_blocks(m)) == 2


def test_a_call_keeps_the_thresholds_for_which_it_was_made(m):
    d = jaxsim.make_data(m)
    usual = kernels(jaxsim.step, m, d)
    with tuning.override(max_kernel_operations=40):
        short = kernels(jaxsim.step, m, d)
        jaxpr = jax.make_jaxpr(jaxsim.step)(m, d)
    leaves = jax.tree.leaves((m, d))
    assert usual < kernels(jaxpr_as_fun(jaxpr), *leaves) == short


def seen_lanes(x: jax.Array) -> jax.Array:
    return x + tuning.tuning().search_lanes


CACHES = {
    "program cache": ProgramCache(seen_lanes),
    "materialized result": lambda x: materialize_result(seen_lanes, x),
    "jit": jax.jit(seen_lanes),
}


@pytest.mark.parametrize("name", CACHES)
def test_no_cache_returns_a_program_of_other_thresholds(name):
    function, zero = CACHES[name], jnp.zeros(())
    assert function(zero) == Tuning().search_lanes
    with tuning.override(search_lanes=7):
        assert function(zero) == 7
    assert function(zero) == Tuning().search_lanes


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("tuning_benchmark", ROOT / "benchmarks/tuning.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_every_threshold_is_measured_by_the_benchmark(benchmark):
    assert list(benchmark.MEASUREMENTS) == NAMES


def test_a_measurement_runs_both_forms(benchmark, monkeypatch):
    two = benchmark.Threshold(benchmark.programs.padded_scatter, (1, 2))
    monkeypatch.setitem(benchmark.MEASUREMENTS, "max_padding_factor", two)
    found = benchmark.measure("max_padding_factor", repeats=1)
    assert [row["size"] for row in found["rows"]] == [1, 2]
    assert all(row["run"] > 0 and row["compile"] > 0 for row in found["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_forms_of_a_measurement_are_different_programs(benchmark, monkeypatch, name):
    texts = []

    def lowered(values, make, *size):
        with tuning.override(**values):
            function, args = make(*size)
            texts.append(jax.jit(function).lower(*args).as_text())
        if len(texts) == 2:
            raise StopIteration
        return lambda: None, 0.0

    monkeypatch.setattr(benchmark, "compiled", lowered)
    if benchmark.MEASUREMENTS[name].platform == "cpu":
        with pytest.raises(StopIteration):
            benchmark.measure(name, repeats=1)
        assert texts[0] != texts[1]


def test_the_page_lists_every_threshold_with_its_value():
    page = (ROOT / "docs/developer/tuning.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|.*\| (.*)\|$", page.partition("## The")[2], re.M)
    shown = {n: f"{v:,}" if isinstance(v, int) else str(v) for n, v in asdict(Tuning()).items()}
    assert {name: value for name, value, _ in rows} == shown
    measured = (ROOT / "docs/developer/measurements.md").read_text()
    studies = {study.strip() for *_, study in rows} - {""}
    assert not {study for study in studies if f"# {study}\n" not in measured}


def test_every_threshold_is_read():
    texts = [p.read_text() for p in PACKAGE.rglob("*.py")]
    read = {name for text in texts for name in re.findall(r"\b(?:tuning(?:\(\))?|t)\.(\w+)", text)}
    assert not set(NAMES) - read


# Folders whose code is traced into programs, and what constants of at least 2 are in there.
TRACED = """arrays batch control derivative functions identify linalg math physics transforms
    view/flex view/picture"""
NO_THRESHOLDS = {
    "rounding, in units of the machine epsilon": """
        _BOX_ROUNDING_ULPS _DISTANCE_ROUNDING_ULPS _MIN_STEP _PERIOD_ROUNDING_ULPS
        _PIVOT_ROUNDING_ULPS _POSE_ROUNDING_ULPS _SAME_POINT_ULPS _SLOPE_ROUNDING
        _SLOPE_ROUNDING_ULPS _STEP_ROUNDING_ULPS
        _VOLUME_ROUNDING_ULPS""",
    "iterations of a method, and its parameters": """
        NEWTON_STEPS _FIRST_DAMPING_INCREASE _MAX_ADVANCEMENT_STEPS _MAX_DOUBLING_STEPS
        _MAX_ELLIPSOID_STEPS _MAX_ITERATIONS _MAX_NEWTON_STEPS _MAX_POLAR_ITERATIONS
        _MAX_RETURN_MAPPING_STEPS _MAX_SPHERE_TRACING_STEPS _MAX_STALLED_ITERATIONS
        _MAX_STEP_TRIALS _MAX_SWEEPS _NEWTON_ITERATIONS _NUM_HYPOTHESES _NUM_STEP_LENGTHS
        _MAX_CROSSINGS _MAX_LAYERS SMOOTHING_CUTOFF FREQUENCY_SQUARED _POOL_SIZE _FADE_DELAY
        _MAX_QUIET_COUNT _QUIET_ONCE_AGE _TIED_REACH""",
    "capacities, and estimates of what happens in a scene": """
        AT_A_TIME CAP_CORNERS DEFAULT_REST_POINTS MAX_COMPUTED_RANK MAX_CALLS MAX_CONTACTS_PER_PAIR
        MAX_MESH_CONTACTS MAX_PATCH_POINTS MAX_PLANE_CORNERS MAX_PROGRAMS MAX_TRACES
        NEAR_GEOMS_PER_CLUSTER
        PLANE_MESH_SLOTS ROWS_PER_POINT SPARE_CAPACITY _BOX_PAIR_FACTOR _CAPACITY_MULTIPLE
        _CLUSTER_PAIR_FACTOR _CONTACTS_ON_BAR _CONTACTS_ON_BOX _CONTACTS_PER_ELEMENT
        _DEFAULT_CONTACT_CAPACITY _FREE_BODY_FACTOR _MAX_VERTICES _MIN_CONTACT_CAPACITY
        _MIN_FREE_BODY_CONTACTS _PRISMS_AT_CORNER""",
    "geometry: dofs of a free body, corners of an element, cells that a ray can cross": """
        BLOCK_WIDTH CORNERS_PER_FACE MAX_ELEMENT_VERTICES _CELLS_PER_STEP _CORNERS_PER_FACE
        _PIVOTS_PER_STEP""",
    "bounds on what users ask for and on what they are shown": """
        MAX_ARRAY MAX_LISTED MAX_SECONDS _CURVE_SECONDS _MAX_CONTACT_CAPACITY _MAX_FACTOR
        _MAX_FOLDER_BYTES
        _MAX_NAMED_LINES _MAX_PICTURE_SIDE _MAX_ROLLOUT_STEPS _MAX_SHININESS _MAX_SIGNAL_POINTS
        _MAX_STUDY_ARRAY""",
    "codes, columns and sizes of records, numbers that stand for none": """
        FLAT_FACE H_SIZE NO_MASS NUM_GEOM_GROUPS TORQUE_SCALE _AXES _HALF_SIGNIFICAND_BITS
        _LCG_MULTIPLIER _NO_PAIR _ORIGIN_INSIDE _RATIO_SLOT _RECORD_SIZE _SKYBOX_TYPE
        _SRGB_COLORSPACE _THICKNESS_COLUMN _UINT32_MASK _UNREACHED _WORD_BITS""",
    "properties of XLA and of devices": "WARP_SIZE _MIN_COMPUTE_CAPABILITY _MIN_LIBRARY_SUM",
}


def constants() -> dict[str, str]:
    """Return the numbers of at least 2 that modules define, by name, with their files."""
    found = {}
    for path in (p for folder in TRACED.split() for p in (PACKAGE / folder).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            value = number(getattr(node, "value", None))
            if isinstance(targets[0], ast.Name) and value is not None and value >= 2:
                found[targets[0].id] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return found


def number(node: ast.AST | None) -> float | None:
    """Return the value of an expression of numbers alone."""
    inner = list(ast.walk(node)) if node else []
    if not inner or not all(
        isinstance(n, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop)
        or (isinstance(n, ast.Constant) and type(n.value) in (int, float))
        for n in inner
    ):
        return None
    return eval(ast.unparse(node))


def test_no_threshold_is_defined_elsewhere():
    """A new constant is a field of `Tuning`, or a number of another kind."""
    known = " ".join(NO_THRESHOLDS.values()).split()
    assert len(known) == len(set(known))
    found = constants()
    assert not {name: where for name, where in found.items() if name not in known}
