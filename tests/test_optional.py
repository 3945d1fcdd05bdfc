"""Errors of missing optional dependencies give a command that works in a clone and without one."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jaxsim.optional import DISTRIBUTION, MissingExtra, install_hint, require

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The metadata that an installation of this version has."""
    folder = tmp_path / f"{DISTRIBUTION.replace('-', '_')}-0.dist-info"
    folder.mkdir()
    lines = [f"Metadata-Version: 2.4\nName: {PROJECT['name']}\nVersion: 0"]
    lines += [f"Requires-Dist: {package}" for package in PROJECT["dependencies"]]
    for extra, packages in EXTRAS.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {package}; extra == '{extra}'" for package in packages]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("extra", EXTRAS)
def test_hint_names_the_packages_of_an_extra(installed, extra):
    packages = " ".join(f"'{package}'" for package in EXTRAS[extra])
    assert install_hint(extra) == f"install the extra '{extra}': pip install {packages}"


def test_hint_reads_double_quotes_in_metadata(monkeypatch):
    lines = ["jax>=0.10", 'viser>=1.1; extra == "view"', 'viser>=1.0 ; extra == "test"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    assert install_hint("view").endswith("pip install 'viser>=1.1'")
    assert install_hint("test").endswith("pip install 'viser>=1.0'")


def test_hint_is_that_of_a_clone_without_an_installation(monkeypatch):
    def not_installed(name):
        raise importlib.metadata.PackageNotFoundError(name)

    hint = "install the extra 'view': pip install '.[view]' in a clone of jaxsim"
    monkeypatch.setattr(importlib.metadata, "requires", not_installed)
    assert install_hint("view") == hint
    # an installation from before the extra was added
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["jax>=0.10"])
    assert install_hint("view") == hint


def test_missing_module_is_named_with_the_hint_and_the_cause(installed):
    message = "this needs no_such_module; install the extra 'images': pip install 'pillow>=10.0' "
    with pytest.raises(MissingExtra, match=re.escape(message + "(No module named")):
        require("no_such_module", "images")


def test_registration_without_gymnasium_names_the_extra():
    code = "import sys; sys.modules['gymnasium'] = None; import jaxsim_gymnasium"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = "MissingExtra: jaxsim_gymnasium needs Gymnasium; install the extra 'rl': pip install"
    assert message in run.stderr


def test_all_messages_use_the_hint():
    """No message names the distribution, which may be on no package index; and all extras exist."""
    texts = {p: p.read_text() for p in [*ROOT.glob("jaxsim*.py"), *ROOT.rglob("jaxsim/**/*.py")]}
    own = ROOT / "jaxsim" / "optional.py"
    assert [p for p, text in texts.items() if f"{DISTRIBUTION}[" in text and p != own] == []
    called = r"""(?:require\("[\w.]+", |install_hint\()["']([\w-]+)["']"""
    named = {extra for text in texts.values() for extra in re.findall(called, text)}
    assert len(named) > 8
    assert named <= set(EXTRAS)
