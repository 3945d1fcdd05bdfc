"""Generate pages of the documentation site: a hook of MkDocs.

Each API page lists the public names of one namespace, read from the syntax of its `__init__.py`,
and leaves signatures and docstrings to mkdocstrings. The pages exist only in the site that
`make docs` builds: nothing is generated into the repository, and nothing here is in the wheel.
"""

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "reference/api"
# namespaces with a page of their own; `jaxsim` itself has one page for each of its subpackages
NAMESPACES = ("control", "derivative", "envs", "functions", "identify", "learn", "view")
# files of the repository's root that are pages of the site, too
ROOT_FILES = {
    "developer/contributing.md": "CONTRIBUTING.md",
    "developer/changelog.md": "CHANGELOG.md",
}
OPTIONS = "    options:\n      heading_level: 3\n"


class Name(NamedTuple):
    """A public name: its dotted path, the module that defines it, and its name there."""

    path: str
    module: str
    original: str

    @property
    def identifier(self) -> str:
        """The path for mkdocstrings: that of the definition if a submodule has the same name."""
        hidden = source_of(self.path).is_dir() or source_of(self.path).with_suffix(".py").exists()
        return f"{self.module}.{self.original}" if hidden else self.path

    def block(self) -> str:
        """Return the block of a page that mkdocstrings replaces by the documentation."""
        return f"::: {self.identifier}\n{OPTIONS}      heading: {self.path}\n"


def public_names(package: str) -> list[Name]:
    """Return the names that the `__init__.py` of a package re-exports (`from a import b as b`).

    Submodules and private names are left out. The order is that of the file.
    """
    tree = ast.parse((source_of(package) / "__init__.py").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [
        Name(f"{package}.{alias.asname}", str(node.module), alias.name)
        for node in imports
        for alias in node.names
        if alias.asname and not alias.asname.startswith("_")
        if not _is_module(f"{node.module}.{alias.name}")
    ]


def source_of(package: str) -> Path:
    """Return the folder of a package, given by its dotted name."""
    return ROOT.joinpath(*package.split("."))


def _is_module(dotted: str) -> bool:
    """Return whether a dotted name is a module file, not a name defined in its package."""
    path = source_of(dotted)
    if not (path.with_suffix(".py").exists() or path.is_dir()):
        return False
    # a package may export a function under the name of its submodule
    parent, _, name = dotted.rpartition(".")
    folder = source_of(parent)
    home = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return f" as {name}\n" not in home.read_text()


def summary(package: str) -> str:
    """Return the first paragraph of a package's docstring, on one line."""
    path = source_of(package)
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    doc = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def pages() -> dict[str, str]:
    """Return the Markdown of each API page by its path in the site."""
    groups = {
        f"jaxsim.{part}": list(names)
        for part, names in groupby(public_names("jaxsim"), key=lambda n: n.module.split(".")[1])
    }
    texts = {
        f"{FOLDER}/{package.replace('.', '-')}-names.md": "\n".join(_root_page(package, names))
        for package, names in groups.items()
    }
    for namespace in NAMESPACES:
        package = f"jaxsim.{namespace}"
        texts[f"{FOLDER}/{package.replace('.', '-')}.md"] = "\n".join(_page(package))
    return {f"{FOLDER}/index.md": "\n".join(_index(groups)), **texts}


def _index(groups: dict[str, list[Name]]) -> Iterator[str]:
    yield "# Public names\n"
    yield "Signatures and docstrings of the public names, generated from the source.\n"
    yield "## In `jaxsim`\n\n| defined in | names |\n| --- | --- |"
    for package, names in groups.items():
        page = f"{package.replace('.', '-')}-names.md"
        links = ", ".join(f"[`{n.path.partition('.')[2]}`]({page}#{n.identifier})" for n in names)
        yield f"| [`{package}`]({page}) | {links} |"
    yield "\n## Namespaces\n\n| namespace | contents |\n| --- | --- |"
    for namespace in NAMESPACES:
        package = f"jaxsim.{namespace}"
        yield f"| [`{package}`]({package.replace('.', '-')}.md) | {summary(package)} |"


def _root_page(package: str, names: list[Name]) -> Iterator[str]:
    yield f"# jaxsim: {package.partition('.')[2]}\n"
    yield f"{summary(package)} The names are in `jaxsim`: `import jaxsim`.\n"
    yield from (name.block() for name in names)


def _page(package: str) -> Iterator[str]:
    yield f"# {package}\n"
    yield f"{summary(package)}\n"
    yield from (name.block() for name in public_names(package))


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the files of the site; MkDocs calls this hook."""
    from mkdocs.structure.files import File  # the tests of the pages do not need MkDocs

    root = {page: (ROOT / name).read_text() for page, name in ROOT_FILES.items()}
    root = {page: text.replace("](docs/", "](../") for page, text in root.items()}
    for path, text in {**pages(), **root}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside of `docs/` by their paths; MkDocs calls this hook."""
    up = "../" * page.file.src_uri.count("/")
    for target, name in ROOT_FILES.items():
        markdown = markdown.replace(f"](../{up}{name})", f"]({up}{target})")
    folders = "benchmarks|configs|examples|jaxsim|notebooks"
    return re.sub(rf"\[[^\]]*\]\((?:\.\./)+((?:{folders})/[^)]*)\)", r"`\1`", markdown)
