"""Functions of the physics say what they take and return; `Array` is an array `[items, *W]`."""

import ast
from pathlib import Path

import pytest

PHYSICS = Path(__file__).resolve().parents[2] / "jaxsim" / "physics"
FILES = sorted(PHYSICS.rglob("*.py"))


def functions(tree: ast.Module):
    """Functions and methods of a file; what is made inside a function is its own business."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, node.args.args
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    static = any(ast.unparse(d) == "staticmethod" for d in method.decorator_list)
                    yield method, method.args.args if static else method.args.args[1:]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PHYSICS).as_posix())
def test_functions_are_typed(path):
    untyped = []
    for function, arguments in functions(ast.parse(path.read_text())):
        given = [*arguments, *function.args.kwonlyargs]
        if function.returns is None or any(a.annotation is None for a in given):
            untyped.append(f"{function.name}, line {function.lineno}")
    assert not untyped
