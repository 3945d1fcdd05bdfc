"""Compiled programs are kept between runs, unless that is not wanted or cannot be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jaxsim.cli.cache import _delete_oldest_programs, cache_folder, keep_programs, user_cache

BALL = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"


@pytest.fixture
def no_folder():
    """Reset JAX to the state without a cache folder."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_the_folder_is_where_each_system_keeps_such_files(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert user_cache("linux") == Path("/home/ada/.cache")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache("linux") == Path("/home/ada/.cache")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/ada")
    assert user_cache("linux") == Path("/var/ada")
    assert user_cache("darwin") == Path("/home/ada/Library/Caches")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert user_cache("win32") == Path("/local")
    assert cache_folder().parent == Path("/var/ada/jaxsim")


@pytest.mark.usefixtures("no_folder")
def test_the_folder_is_made_and_used(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keep_programs()
    assert jax.config.jax_compilation_cache_dir == str(cache_folder())
    assert cache_folder().is_dir()


@pytest.mark.usefixtures("no_folder")
def test_a_folder_that_cannot_be_written_is_said_in_one_line(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep_programs()
    assert jax.config.jax_compilation_cache_dir is None
    said = capsys.readouterr().err
    assert said.startswith("compiled programs are not kept: ")
    assert said.endswith("; set XDG_CACHE_HOME, or give --no-cache\n")
    assert said.count("\n") == 1


def test_cache_folder_set_by_the_user_is_kept(monkeypatch, tmp_path):
    before = jax.config.jax_compilation_cache_dir
    assert before is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_programs()
    assert jax.config.jax_compilation_cache_dir == before
    assert not list(tmp_path.iterdir())


def test_oldest_programs_are_deleted_first(tmp_path):
    for age, name in enumerate("abc"):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    _delete_oldest_programs(tmp_path, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def run_with_cache(folder: Path, command: list[str]) -> str:
    """Run a command in a process of its own, with a cache in the folder; return its output."""
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "JAXSIM_STORE_PROGRAMS": "1",
    }
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    run = f"import sys; from jaxsim.cli import main; sys.exit(main({command}))"
    return subprocess.run(
        [sys.executable, "-c", run], cwd=folder, env=environment, check=True,
        capture_output=True, text=True,
    ).stdout  # fmt: skip


def programs_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "cache").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_second_run_finds_the_programs_of_the_first(tmp_path):
    (tmp_path / "ball.xml").write_text(BALL)
    command = "rollout ball.xml --worlds 2 --steps 2 --contacts 1".split()
    run_with_cache(tmp_path, [*command, "--no-cache"])
    assert programs_in(tmp_path) == set()
    assert "compiled in" in run_with_cache(tmp_path, command)
    first = programs_in(tmp_path)
    assert any(name.endswith(".jaxsim-program") for name in first)
    assert "loaded in" in run_with_cache(tmp_path, command)
    assert programs_in(tmp_path) == first


@pytest.mark.slow
def test_the_second_fit_is_loaded_and_finds_the_same(tmp_path):
    """Its program holds the measurements, the parameters and the model as constants."""
    file = Path(__file__).resolve().parents[2] / "configs" / "identify" / "arm.toml"
    command = ["identify", str(file), "--tier", "fast", "--out"]
    first, second = (run_with_cache(tmp_path, [*command, name]) for name in ("one", "two"))
    assert "trace 0.0 s, compile 0.0 s" not in first
    assert "trace 0.0 s, compile 0.0 s, load" in second
    one, two = (json.loads((tmp_path / n / "fit.json").read_text()) for n in ("one", "two"))
    assert one["parameters"] == two["parameters"]
