"""Caches have bounds: models that are loaded, stepped and dropped leave nothing behind."""

import ast
import gc
from pathlib import Path

import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.cache import bounded_cache
from jaxsim.model.structure import Structure
from jaxsim.transforms import program_cache
from jaxsim.transforms.program_cache import ProgramCache

PACKAGE = Path(jaxsim.__file__).parent
MODEL = """<mujoco><worldbody><body name="{}">
  <joint axis="0 1 0"/><geom size=".1" pos=".1 0 0" contype="0" conaffinity="0"/>
</body></worldbody></mujoco>"""


def loaded(name: str) -> jaxsim.Model:
    """A model with a structure of its own: names belong to it."""
    return jaxsim.load_model(MODEL.format(name))


def live() -> int:
    """Count the structures."""
    gc.collect()
    return sum(isinstance(x, Structure) for x in gc.get_objects())


def test_no_cache_is_without_a_bound():
    """`functools.cache` is unbounded, and `lru_cache` may be: `bounded_cache` asks for a number."""
    for path in {*PACKAGE.rglob("*.py")} - {PACKAGE / "cache.py"}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert not {a.name for a in node.names} & {"cache", "lru_cache"}, path
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "functools":
                assert node.attr not in ("cache", "lru_cache"), path


def test_no_program_of_a_model_is_kept_for_ever():
    """A function that lives as long as its module is compiled by `ProgramCache`, not by
    `jax.jit`."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign):
                assert not ast.unparse(node.value).startswith("jax.jit(worlds("), path
            if isinstance(node, ast.FunctionDef) and [a.arg for a in node.args.args][:1] == ["m"]:
                assert not any("jax.jit" in ast.unparse(x) for x in node.decorator_list), path


def test_a_bounded_cache_drops_what_was_used_longest_ago():
    @bounded_cache(2)
    def made(key):
        return [key]

    first = made(1)
    made(2)
    assert made(1) is first
    made(3)
    assert made(1) is first
    with pytest.raises(ValueError, match="expected at least 1"):
        bounded_cache(0)


def test_programs_are_dropped_with_the_last_models(monkeypatch):
    monkeypatch.setattr(program_cache, "MAX_PROGRAMS", 2)
    double = ProgramCache(lambda m, x: 2 * x + m.qpos0)
    before = live()
    for k in range(6):
        m = loaded(f"a{k}")
        assert double(m, jnp.ones(1))[0] == 2
        del m
    assert live() - before == 2


def test_models_of_one_structure_share_a_program():
    traced = []

    def count(m, x):
        traced.append(m)
        return x + m.qpos0

    run = ProgramCache(count)
    for _ in range(3):
        run(loaded("same"), jnp.ones(1))
    assert len(traced) == 1


def test_models_that_are_loaded_and_dropped_leave_nothing():
    before = live()
    for k in range(20):
        jaxsim.make_data(loaded(f"b{k}"))
    assert live() <= before
