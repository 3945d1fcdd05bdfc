"""What the README and the notebooks show runs as it stands there."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
def test_the_python_of_the_readme(monkeypatch):
    monkeypatch.chdir(ROOT)
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(code[1], "README.md", "exec"), names)
    assert names["worlds"].qpos.shape[0] == 1024
    assert names["gradient"].shape == (20, names["m"].nu)
    assert names["gradient"].any()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook(monkeypatch, path):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec"), names)


def test_the_readme_names_what_there_is():
    text = (ROOT / "README.md").read_text()
    for path in re.findall(r"(?:configs|docs|jaxsim/\w+)/[\w/]+\.\w+", text):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make (\w[\w-]*)", text, re.MULTILINE):
        assert f"\n{target}:" in makefile, target


def test_the_python_of_the_page_on_specs():
    text = (ROOT / "docs/spec.md").read_text()
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "spec.md", "exec"), names)
    assert names["m"].nu == 1
    assert "<inertial" in names["text"]


def test_every_file_named_in_prose_exists():
    """Docstrings, comments and pages name files by the end of their path."""
    folders = ("jaxsim", "tests", "docs", "benchmarks")
    texts = [p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".py", ".md")]
    texts += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    files = [f"/{p.relative_to(ROOT)}" for f in folders for p in (ROOT / f).rglob("*.py")]
    missing = [
        f"{text.relative_to(ROOT)}: {name}"
        for text in texts
        for name in re.findall(r"(?<![\w/])[a-z_][\w/]*\.py\b", text.read_text())
        if not any(path.endswith(f"/{name}") for path in files)
    ]
    assert not missing, "\n".join(missing)
