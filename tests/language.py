"""Find paraphrases of established terms, and docstrings that open with a sentence fragment.

The terms are those of `docs/glossary.md`. `tests/language_budget.toml` has the number of findings
that each folder may still have; it may only go down.

    python tests/language.py                    list the findings of the whole project
    python tests/language.py jaxsim/physics     list the findings of some files or folders
    python tests/language.py --lower            lower the budgets to the present numbers
"""

import argparse
import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUDGET = Path(__file__).with_name("language_budget.toml")
SOURCES = ("jaxsim", "tests", "benchmarks", "examples", "docs", "notebooks")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
GENERATED = ROOT / "docs/reference"  # its text is that of the tables and docstrings it comes from

# a paraphrase, and what to write; each has a row in the second table of docs/glossary.md
TERMS = {
    r"(?<!\bin )\bturns?\b(?! (on|off|out|to|into|back|around)\b)"
    r"(?!( \w+){1,2} (on|off)\b)": "iteration",
    r"\brooms?\b": "capacity",
    r"\bstands? (in|for|at|there|once|beside|apart)\b": "is stored in, is defined in, represents",
    r"\b(is|are|be|been|being) (told|asked|said)\b": "is specified, is requested",
    r"\b(says|tells)\b": "returns, reports, specifies",
    r"\bwritten out\b": "unrolled",
    r"\banew\b|\bonce more\b": "recompute, again",
    r"\bbeside\b": "compared with, next to",
    r"\bhangs? together\b|\bto do with each other\b": "connected, coupled",
    r"\bfalls? apart\b": "is block-diagonal",
    r"\bstirs?\b": "is disturbed, wakes",
    r"\b(nobody|whoever|a person|people)\b": "the user, or the passive voice",
    r"\blikewise\b": "a full sentence",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bthings?\b": "the noun itself",
    r"\bdear\b": "expensive",
    r"\bkey frames?\b": "keyframe",
    r"\bsorted out\b": "rejected, pruned",
    r"(?<!takes )(?<!take )(?<!took )(?<!taken )(?<!taking )(?<!\bin )(?<!decimal )(?<!first )"
    r"\bplaces?\b": "slot, index, address, position",
    r"\bgone through\b": "traversed",
    r"\b(\w*al|optim|minim|maxim|linear|regular|random|parametr|discret|vector|organ|recogn|summar"
    r"|util|stabil|synchron|character|categor|memor|factor|symmetr)is"
    r"(e|es|ed|ing|ation|er)s?\b": "American spelling: -ize",
    r"\b(colour|neighbour|behaviour|favour)(s|ed|ing)?\b|\bcentred?\b": "American spelling",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): write for pattern, write in TERMS.items()}
ANY = re.compile("|".join(f"(?:{pattern})" for pattern in TERMS), re.IGNORECASE)
FRAGMENT = re.compile(
    r"(What|Whether|How|Of|As|The same|That of|Those|Where|Which|With|Likewise|In one|From|By|For"
    r"|If)\b"
)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")


class Finding(NamedTuple):
    """A phrase to rewrite: its file, line and kind (`words` or `fragments`), and the reason."""

    path: Path
    line: int
    kind: str
    reason: str

    @property
    def folder(self) -> str:
        """The folder whose budget counts it: `jaxsim/physics`, `docs`; a file of the root."""
        parts = self.path.relative_to(ROOT).parts
        return "/".join(parts[: 2 if parts[0] == "jaxsim" and len(parts) > 2 else 1])

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.reason}"


def findings(paths: list[Path]) -> Iterator[Finding]:
    """Yield the findings of the Python files, pages and notebooks among `paths` and below."""
    for top in paths:
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for path in files:
            if path.suffix in (".py", ".md", ".ipynb") and GENERATED not in path.parents:
                yield from findings_of(path)


def findings_of(path: Path) -> Iterator[Finding]:
    """Yield the findings of one file."""
    text = path.read_text()
    if path == Path(__file__).resolve() or path == ROOT / "docs/glossary.md":
        return  # they name the paraphrases
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    tree = ast.parse(text) if path.suffix == ".py" else None
    for line, part in markdown(text) if tree is None else python(text, tree):
        if not ANY.search(part):
            continue
        plain = QUOTED.sub("", part)
        for pattern, write in PATTERNS.items():
            for match in pattern.finditer(plain):
                yield Finding(path, line, "words", f"{match[0]!r}: write {write}")
    for line, doc in () if tree is None else docstrings(tree):
        if FRAGMENT.match(doc):
            yield Finding(path, line, "fragments", f"docstring opens with {doc.splitlines()[0]!r}")


def markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page with their numbers, without fenced and indented code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.startswith("    "):
            yield number, line


def python(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings, comments and messages of a file, by line."""
    for start, doc in docstrings(tree):
        yield from enumerate(doc.splitlines(), start)
    if any("#" in line and ANY.search(line) for line in text.splitlines()):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in statements(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from strings(node.exc)
    if re.search(r"\bhelp=|\bwarn\(", text):
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            yield from shown_strings(call)


def shown_strings(call: ast.Call) -> Iterator[tuple[int, str]]:
    """Yield the help texts of an option or command, and the text of a warning, with their lines."""
    if getattr(call.func, "attr", "") == "warn":
        for argument in call.args[:1]:
            yield from strings(argument)
    for keyword in call.keywords:
        if keyword.arg in ("help", "description", "epilog"):
            yield from strings(keyword.value)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements in it; expressions are not traversed."""
    yield node
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, block, ()):
            yield from statements(child)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes and functions, with their lines."""
    for node in statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node)
            if doc:
                yield node.body[0].lineno, doc


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the string constants in an expression, parts of f-strings among them."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def project() -> list[Path]:
    """Return the folders and files that have budgets."""
    return [ROOT / name for name in (*SOURCES, *FILES) if (ROOT / name).exists()]


def counts(found: list[Finding]) -> dict[str, Counter[str]]:
    """Return the number of findings of each kind, by folder."""
    table: dict[str, Counter[str]] = {}
    for finding in found:
        table.setdefault(finding.folder, Counter())[finding.kind] += 1
    return table


def budget() -> dict[str, dict[str, int]]:
    """Return the table of budgets; a folder without a row has none left."""
    return tomllib.loads(BUDGET.read_text()) if BUDGET.exists() else {}


def lower() -> None:
    """Write the present numbers as budgets; a number that has risen keeps its old budget."""
    old, now = budget(), counts(list(findings(project())))
    lines = [
        "# Findings that a folder may have; `python tests/language.py --lower` rewrites this.\n"
    ]
    for folder, found in sorted(now.items()):
        limits = {
            kind: min(found[kind], old.get(folder, {}).get(kind, 0)) if old else found[kind]
            for kind in ("words", "fragments")
        }
        if any(limits.values()):
            lines.append(f'["{folder}"]\n' + "".join(f"{k} = {n}\n" for k, n in limits.items()))
    BUDGET.write_text("\n".join(lines))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--lower", action="store_true", help="lower the budgets")
    given = parser.parse_args()
    if given.lower:
        lower()
        return
    for finding in findings([path.resolve() for path in given.paths] or project()):
        sys.stdout.write(f"{finding}\n")


if __name__ == "__main__":
    main()
