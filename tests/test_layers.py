"""A file imports from its own layer or a lower one; the compiler knows no jax, none knows MuJoCo.

The walk reads the imports of every file, those inside functions included, without running any.
"""

import ast
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "jaxsim"

# the rows of the design; a name is a module or package directly under jaxsim
ROWS = (
    "atomic_write enums cache escape errors spelling optional trace_context version xla",
    "math mjcf assets",
    "model spec",
    "extend compile",
    "arrays transforms linalg",
    "physics",
    "io",
    "batch functions derivative plugins stages support",
    "view envs control identify mjx",
    "learn",
    "cli",
    "__main__",
)
MOST = 16  # files of a folder, without its __init__
ROW = {name: i for i, names in enumerate(ROWS) for name in names.split()}
WITHOUT_JAX = (
    *("atomic_write", "cache", "escape", "errors", "enums", "spelling", "mjcf", "assets", "spec"),
    "compile",
)
FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


@cache
def imports(path: Path) -> frozenset[str]:
    """Full names of the modules that a file imports; `from a import b` gives a.b if it is one."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports with their full name"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else str(node.module))
    return frozenset(found)


def reached(module: str, seen: set[str]) -> set[str]:
    """All modules that importing a module leads to, apart from the root package itself."""
    for name in imports(MODULES[module]):
        if name not in seen:
            seen.add(name)
            if name in MODULES and name != "jaxsim":
                reached(name, seen)
    return seen


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_part_has_a_row():
    parts = {part(module) for module in MODULES} - {""}
    assert parts <= ROW.keys(), "give the new part its row in this table and in the design"


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    if part(module) == "":
        return  # the root re-exports from everywhere
    mine = ROW[part(module)]
    for name in imports(MODULES[module]):
        if name.startswith("jaxsim."):
            assert ROW[part(name)] <= mine, f"{module} imports {name}, which is above it"
        assert name != "jaxsim", f"{module}: import the module that has the name"


def test_the_physics_does_not_know_the_compiler():
    known = {
        f"{module} imports {name}"
        for module in MODULES
        if part(module) == "physics"
        for name in imports(MODULES[module])
        if part(name) == "compile" and name.startswith("jaxsim.")
    }
    assert not known


@pytest.mark.parametrize("module", [m for m, p in MODULES.items() if p.name == "__init__.py"])
def test_no_package_exports_a_name_of_its_submodule(module):
    """Such a submodule could not be reached as an attribute."""
    tree = ast.parse(MODULES[module].read_text())
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    hidden = [n for n, full in names.items() if f"{module}.{n}" in MODULES and full not in MODULES]
    assert not hidden, f"{module}: rename the submodule, not the name: {hidden}"


def test_imports_have_no_cycles():
    """Files that lead back to themselves; imports for types and inside functions count."""
    graph = {
        m: {n for n in imports(p) if n in MODULES} for m, p in MODULES.items() if m != "jaxsim"
    }
    assert not circles(graph)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of files that all lead to each other."""

    @cache
    def leads_to(start: str) -> frozenset[str]:
        seen, todo = set(), [start]
        while todo:
            for name in graph.get(todo.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
        return frozenset(seen)

    inside = [m for m in graph if m in leads_to(m)]
    groups = {frozenset(n for n in inside if n in leads_to(m) and m in leads_to(n)) for m in inside}
    return sorted(sorted(g) for g in groups)


def test_folders_have_few_files():
    for folder in {path.parent for path in FILES} - {PACKAGE}:
        files = [p for p in folder.glob("*.py") if p.name != "__init__.py"]
        assert len(files) <= MOST, f"{folder}: {len(files)} files; which of them belong together?"


@pytest.mark.parametrize("module", [m for m in MODULES if part(m) in WITHOUT_JAX])
def test_the_compiler_knows_no_jax(module):
    assert not {n for n in reached(module, set()) if n.split(".")[0] in ("jax", "jaxlib")}


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_mujoco(module):
    """`jaxsim compare` asks for it by name, if it is there."""
    assert not {n for n in imports(MODULES[module]) if n.split(".")[0] == "mujoco"}


@pytest.mark.parametrize("module", [m for m in MODULES if part(m) == "physics"])
def test_the_physics_opens_no_files(module):
    assert not {"os", "pathlib", "io", "lxml"} & {n.split(".")[0] for n in imports(MODULES[module])}


def test_dependencies_are_those_that_are_imported():
    used = {n.split(".")[0] for path in FILES for n in imports(path)}
    used -= {"jaxsim"} | set(sys.stdlib_module_names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {text.split(">=")[0] for text in project["dependencies"]}
    assert used <= declared
    assert declared <= used | {"jaxlib"}


def test_minval_is_defined_once():
    """MuJoCo's mjMINVAL, under whatever name it is used, is that of enums.py."""
    again = [p.name for p in FILES if "1e-15" in p.read_text() and p.name != "enums.py"]
    assert not again
