"""The code of the README and of the notebooks runs as shown."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
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
def test_a_notebook(path):
    """In a process of its own, in single precision, as a reader runs it."""
    cells = json.loads(path.read_text())["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    env = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True)


def test_names_in_the_readme_exist():
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


def test_every_function_named_in_the_documents_exists():
    """`jaxsim/physics/body/rne.py:bias` is a function, class or table that this file defines."""
    texts = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    found = [
        (text.relative_to(ROOT), path, name)
        for text in texts
        for path, name in re.findall(r"([a-z_][\w/]*\.py):([A-Za-z_][\w.]*\w)", text.read_text())
    ]
    assert len(found) > 50
    missing = [
        f"{text}: {path}:{name}"
        for text, path, name in found
        if not (ROOT / path).exists() or name not in definitions(ROOT / path)
    ]
    assert not missing, "\n".join(missing)


def definitions(path: Path) -> set[str]:
    """Return the names that a file defines: functions, classes, tables, and "Class.method"."""

    def names(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from names(node.body, f"{node.name}.")
            targets = node.targets if isinstance(node, ast.Assign) else ()
            yield from (prefix + t.id for t in targets if isinstance(t, ast.Name))
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield prefix + node.target.id

    return {*names(ast.parse(path.read_text()).body)}


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and MkDocs derive them."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower() for title in titles]
    return {re.sub(r"\s+", "-", w) for w in words}


def test_the_links_between_documents_lead_somewhere():
    for text in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        name = text.relative_to(ROOT)
        for link, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", text.read_text()):
            if "reference/api/" in link:  # a page of the site alone (docs/tools/site.py)
                continue
            target = text.parent / link if link else text
            assert target.exists(), f"{name}: {link}"
            if anchor:
                assert anchor in anchors(target), f"{name}: {link}#{anchor}"
        for path in re.findall(
            r"`((?:docs|configs|benchmarks|tests)/[\w/]+\.\w+)`", text.read_text()
        ):
            assert (ROOT / path).exists(), f"{name}: {path}"
