"""Generate pages of the documentation site: a hook of MkDocs.

Each API page lists the public names of one namespace, read from the syntax of its `__init__.py`,
and leaves signatures and docstrings to mkdocstrings. The pages exist only in the site that
`make docs` builds: nothing is generated into the repository, and nothing here is in the wheel.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "reference/api"
# namespaces with a page of their own
NAMESPACES = (
    *(
        "stages",
        "support",
        "functions",
        "derivative",
        "control",
        "identify",
        "envs",
        "learn",
        "learn.dataset",
        "view",
    ),
    *("extend", "enums"),
)
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
    """Return the names that a namespace defines, or re-exports (`from a import b as b`).

    Submodules and private names are left out. The order is that of the file.
    """
    tree = ast.parse(file_of(package).read_text())
    lazy = [node for test in tree.body if isinstance(test, ast.If) for node in test.body]
    imports = [node for node in (*tree.body, *lazy) if isinstance(node, ast.ImportFrom)]
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return [Name(f"{package}.{name}", package, name) for name in classes] + [
        Name(f"{package}.{alias.asname}", str(node.module), alias.name)
        for node in imports
        for alias in node.names
        if alias.asname and not alias.asname.startswith("_")
        if not _is_module(f"{node.module}.{alias.name}") and node.module != package
    ]


def source_of(package: str) -> Path:
    """Return the folder of a package, given by its dotted name."""
    return ROOT.joinpath(*package.split("."))


def file_of(package: str) -> Path:
    """Return the file of a package or module, given by its dotted name."""
    path = source_of(package)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def groups() -> dict[str, list[Name]]:
    """Return the public names of `jaxsim` by the comments in its `__all__`, in that order."""
    names = {name.path: name for name in public_names("jaxsim")}
    listed = file_of("jaxsim").read_text().partition("__all__ = [")[2].partition("]")[0]
    found: dict[str, list[Name]] = {}
    for line in listed.splitlines()[1:]:
        word = line.strip().strip('",')
        if word.startswith("# "):
            group = found[word[2:]] = []
        elif f"jaxsim.{word}" in names:
            group.append(names[f"jaxsim.{word}"])
    return found


def _is_module(dotted: str) -> bool:
    """Return whether a dotted name is a module file, not a name defined in its package."""
    path = source_of(dotted)
    if not (path.with_suffix(".py").exists() or path.is_dir()):
        return False
    # a package may export a function under the name of its submodule
    parent, _, name = dotted.rpartition(".")
    return f" as {name}\n" not in file_of(parent).read_text()


def summary(package: str) -> str:
    """Return the first paragraph of a package's docstring, on one line."""
    doc = ast.get_docstring(ast.parse(file_of(package).read_text())) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def pages() -> dict[str, str]:
    """Return the Markdown of each API page by its path in the site."""
    texts = {f"{FOLDER}/jaxsim.md": "\n".join(_root_page())}
    for namespace in NAMESPACES:
        package = f"jaxsim.{namespace}"
        texts[f"{FOLDER}/{package.replace('.', '-')}.md"] = "\n".join(_page(package))
    return {f"{FOLDER}/index.md": "\n".join(_index()), **texts}


def _index() -> Iterator[str]:
    yield "# Public names\n"
    yield "Signatures and docstrings of the public names, generated from the source.\n"
    yield "## In `jaxsim`\n\n| for | names |\n| --- | --- |"
    for group, names in groups().items():
        links = [f"[`{n.path.partition('.')[2]}`](jaxsim.md#{n.identifier})" for n in names]
        yield f"| {group} | {', '.join(links)} |"
    yield "\n## Namespaces\n\n| namespace | contents |\n| --- | --- |"
    for namespace in NAMESPACES:
        package = f"jaxsim.{namespace}"
        yield f"| [`{package}`]({package.replace('.', '-')}.md) | {summary(package)} |"


def _root_page() -> Iterator[str]:
    yield "# jaxsim\n"
    for group, names in groups().items():
        yield f"## {group.capitalize()}\n"
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
