"""Files and identifiers that docstrings, comments and pages name exist.

A rename does not reach prose. Files are searched by their path. Lower-case identifiers must occur
in the code of the package; constants and classes in that of the folder of the file, in a file that
the same line names, or among what packages export. Words that are no names of this project are
listed in `FOREIGN`; formula symbols are excluded by their form.
"""

import ast
import builtins
import io
import re
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "jaxsim"
SOURCES = sorted(PACKAGE.rglob("*.py"))
GENERATED = ROOT / "docs/reference"  # text of tables and docstrings
PAGES = [
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if GENERATED not in p.parents),
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
]
OTHER_CODE = sorted(
    p for f in ("tests", "benchmarks", "examples", "docs") for p in (ROOT / f).rglob("*.py")
)

# a file by the end of its path
FILE = re.compile(r"(?<![\w/.{}<-])[a-z_][\w/.-]*\.(?:py|md)\b(?![\w.]*\()")
# folders whose names all others may use
SHARED = (PACKAGE, PACKAGE / "model", PACKAGE / "model" / "record", PACKAGE / "math")

# files of the user, of the built site, and of tests
PLACEHOLDERS = (
    *("program.py", "reference/api/index.md", "developer/contributing.md"),
    *("developer/changelog.md", "jaxsim.md", "page.md", "gone/file.py"),
)
NO_WORDS = re.compile(FILE.pattern + r"|\bnoqa: \S+|\"[^\"]*\"")  # paths and texts
TICKS = re.compile(r"`([^`]+)`")
WORD = re.compile(r"(?<![\w.<\"'-])_?[A-Za-z]\w*")
CAPITALS = re.compile(r"(?<![\w-])_?[A-Z][A-Z0-9_]{2,}\b")
CAMEL = re.compile(r"\b_?[A-Z][a-z]+[A-Z]\w+\b")
CLASS = re.compile(r"(?<![\w.<\"'-])_?[A-Z][a-z]\w+")
METHOD = re.compile(r"(?<![\w./])_?[A-Z]\w*[a-z]\w*(?=\.[a-z_]\w+)")  # the class
SNAKE = re.compile(r"\b_?[a-z]\w{2,}_[a-z]\w{2,}\b")


# words that look like identifiers of this project and are none, by what they are
FOREIGN = {
    word
    for words in (
        # formats, protocols and standards
        "ANSI API CRC CSR CSV COLLADA CommonMark DNS DTD GIF GLB GMSH HTML HTTP IDAT JSON KTX MJCF"
        " MCAP MJZ MSH OBJ OFF PLY PNG RFC SHA SKN STL SVG TOML URDF URI USD UTF WORLD XDG XML"
        " Host Origin indptr",
        # methods of the literature
        "APG CCD CEM EPA FMA GJK JVP KKT LDL LTDL LuGre MPC MPPI PCG PCG32 PPO SAC SAT SHAC TD3"
        " TwoSum VJP XSH XYZ mt19937_64",
        # publishers, journals, conferences, volumes
        "ACM BIT CACM CoRL DeepMind ICLR ICRA IEC IEEE III IROS NIPS NeurIPS SIAM SIGGRAPH TVCG",
        # platforms and other projects with their names
        "APG CPU CleanRL ConfigDict EpisodeData GPU KhronosGroup LAPACK LLVM MJX MarchingCubeCpp"
        " MlpPolicy MuJoCo NVIDIA OpenGL PrimalSearch ROS RecordVideo Renderer SIGHUP SIGTERM TPU"
        " TensorBoard TimeLimit TimeStep VecMonitor XLA XLA_FLAGS JAXSIM_XLA_FLAGS"
        " JAXSIM_STORE_PROGRAMS anon"
        " hash_combine CUDA_VISIBLE_DEVICES JAX_LOCAL_DEVICE_IDS JAX_NUM_CPU_DEVICES"
        " include_extras lowering_platforms make_vec nohup sameframe solNoSlip solPGS to_state_dict"
        " unordered_map wrap_for_brax_training",
        # placeholders for what the user writes
        "CONFIG FILE FOLDER FUNCTION HOST MODEL MODULE NAME PORT SECONDS optimizer_state"
        " SIGMA phases planner regulator robots",
        # symbols of formulas, and axes of arrays, that are longer than others
        "B_23 H_FF jac_axis jac_point jacp_dot mat1 mat2 q_wanted step_dot v_wanted",
        # names that are put together in the program: suffixes, labels
        "MjModel POS_KINEMATICS _RZ _TX _TY _twist_0 _twist_1 next_observation",
        # words of pages: MuJoCo's sysid, settings of JAX and XLA, other packages, arguments, forms
        # of programs in benchmarks
        "ARGUMENTS InertiaType LevenbergMarquardt MjSpec ModelSequences Newton PATH PYTHON"
        " ParameterDict RUN Short SignalTransform SystemTrajectory What Whether"
        " body_inertia_param body_or_frame_or_site clear_caches default_report"
        " device_put_replicated gradient_kernels jax_debug_nans link_idx log_compiles name_bodyadr"
        " xla_cpu_enable_concurrency_optimized_scheduler xla_cpu_multi_thread_eigen"
        " xla_dump_hlo_pass_re",
    )
    for word in words.split()
}
STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))


class Text(NamedTuple):
    """A Python file.

    Attributes:
      prose: its docstrings and comments, by line.
      strings: its other strings, with their lines.
      names: names in the code.
      words: words in the other strings.
    """

    prose: dict[int, str]
    strings: list[tuple[int, str]]
    names: frozenset[str]
    words: frozenset[str]


@cache
def read(path: Path) -> Text:
    """Read a Python file."""
    source = path.read_text()
    lines = source.splitlines()
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    prose = {
        number: lines[number - 1]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None
        for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    documented, names, strings = {*prose}, set(), []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            names.add(token.string)
        elif token.type == tokenize.COMMENT:
            prose[token.start[0]] = token.string
        elif token.type in STRINGS and token.start[0] not in documented:
            strings.append((token.start[0], token.string))
    words = frozenset(word for _, text in strings for word in re.findall(r"\w+", text))
    return Text(prose, strings, frozenset(names), words)


@cache
def folder_names(folder: Path) -> frozenset[str]:
    """Return the names in the code of the files of a folder, without its subfolders."""
    return frozenset().union(*(read(path).names for path in folder.glob("*.py")))


@cache
def public_names() -> frozenset[str]:
    """Return the names that every file may use: built-in, exported by a package, shared by all."""
    shared = [path for path in SOURCES if path.parent in SHARED or path.name == "__init__.py"]
    return frozenset(dir(builtins)).union(*(read(path).names for path in shared))


@cache
def package_names() -> frozenset[str]:
    """Return the names, the words of data, and the files and folders of the whole package."""
    files = {part for path in SOURCES for part in path.relative_to(ROOT).with_suffix("").parts}
    return frozenset(files).union(*(read(path).names | read(path).words for path in SOURCES))


def is_known(word: str, line: str, path: Path) -> bool:
    """Return whether a word that a line of prose in `path` has is the name of something."""
    if word in FOREIGN or word.startswith("mj") or is_part_of_name(word):
        return True
    if word[0] != "_" and not word[0].isupper():
        return word in package_names()
    cited = [f for name in FILE.findall(line) for f in SOURCES if str(f).endswith(f"/{name}")]
    owned = folder_names(path.parent).union(*(read(f).names for f in cited))
    return word in owned or word in public_names()


@cache
def is_part_of_name(word: str) -> bool:
    """Return whether a word is the beginning (`geom_`) or end (`_bar`) of names of the package."""
    if word.endswith("_"):
        return any(name.startswith(word) for name in package_names())
    return word[0] == "_" and word[1:2].islower() and any(n.endswith(word) for n in package_names())


def words_to_check(line: str) -> set[str]:
    """Return the words of a line of prose that look like identifiers.

    All words in backticks do, apart from lower-case axes of shapes such as `[npairs, *W]`; outside
    of them words in capitals, CamelCase and snake_case, apart from symbols of formulas such as x_t.
    """
    line = NO_WORDS.sub(" ", line)
    plain = TICKS.sub("", line)
    found = {*CAPITALS.findall(plain), *CAMEL.findall(plain), *SNAKE.findall(plain)}
    for quoted in TICKS.findall(line):
        axes = re.findall(r"\[[^]]*\]", quoted)
        found |= {w for axis in axes for w in CAPITALS.findall(axis)}
        for part in re.split(r"\[[^]]*\]", quoted):
            found |= {w for w in WORD.findall(part) if len(w) > 2}
    return found


def stale_names(path: Path) -> list[str]:
    """Return the words in the prose of a file that look like identifiers and are none."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for number, line in read(path).prose.items()
        if not line.lstrip().startswith((">>>", "..."))  # examples run as tests
        for word in sorted(words_to_check(line))
        if not is_known(word, line, path)
    ]


@pytest.mark.parametrize("package", sorted({p.relative_to(PACKAGE).parts[0] for p in SOURCES}))
def test_identifiers_in_prose_exist(package):
    paths = [p for p in SOURCES if p.relative_to(PACKAGE).parts[0] == package]
    assert not [text for path in paths for text in stale_names(path)]


@pytest.mark.parametrize(
    ("line", "stale"),
    [
        ("`[n, GONE_POINTS]`", ["GONE_POINTS"]),
        ("at most GONE of them, by GJK", ["GONE"]),
        ("returns a GoneClass of MuJoCo", ["GoneClass"]),
        ("see gone_function, with x_t and sum_i w_i", ["gone_function"]),
        ("`gonefield`, `[nworlds, *W]`, `qpos`, `geom_`", ["gonefield"]),
        ("`_private_gone` and `_MAX_GONE`", ["_MAX_GONE", "_private_gone"]),
        ("mj_gone, `mju_gone`, gone/file.py, `a = 'GONE'`  # noqa: B023", []),
    ],
)
def test_stale_name_is_found(line, stale):
    here = PACKAGE / "physics" / "step.py"
    assert sorted(w for w in words_to_check(line) if not is_known(w, line, here)) == stale


def test_classes_of_methods_in_messages_exist():
    """Such as `PackedLower.add_contact_blocks`, in strings that are no docstrings."""
    missing = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in SOURCES
        for number, text in read(path).strings
        for word in METHOD.findall(text)
        if not is_known(word, text, path)
    ]
    assert not missing


def test_constant_of_another_folder_needs_its_file():
    here = PACKAGE / "physics" / "step.py"
    assert not is_known("FAN_SLICES", "FAN_SLICES", here)
    assert is_known("FAN_SLICES", "FAN_SLICES (assets/mesh/directions.py)", here)
    assert is_known("FAN_SLICES", "FAN_SLICES", PACKAGE / "assets" / "mesh" / "hull.py")


def test_identifiers_in_pages_exist():
    """Constants, classes and snake_case names in backticks, outside of blocks of code."""
    folders = ("benchmarks", "configs", "docs", "tests")
    files = {p.stem for folder in folders for p in (ROOT / folder).rglob("*.*")}
    files |= {p.stem for p in ROOT.glob("*.md")}
    known = package_names() | public_names() | files
    code = frozenset().union(*(read(path).names for path in SOURCES))
    missing = []
    for page in PAGES:
        blocks = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
        text = blocks.sub(lambda m: "\n" * m[0].count("\n"), page.read_text())
        for number, line in enumerate(text.splitlines(), 1):
            quoted = " ".join(TICKS.findall(NO_WORDS.sub(" ", line)))
            constants = {*CAPITALS.findall(quoted), *CLASS.findall(quoted)} - code - files
            others = {w for w in {*SNAKE.findall(quoted)} - known if not is_part_of_name(w)}
            missing += [
                f"{page.relative_to(ROOT)}:{number}: {word}"
                for word in sorted((constants | others) - FOREIGN)
                if not word.startswith("mj") and not line.startswith("    ")
            ]
    assert not missing


def test_files_in_prose_exist():
    """In the package a path starts at the folder of the file, or at a folder above."""
    missing = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in SOURCES
        for number, line in read(path).prose.items()
        for name in FILE.findall(line)
        if not any(
            (folder / name).exists() for folder in path.parents if ROOT in (folder, *folder.parents)
        )
        and name not in PLACEHOLDERS
    ]
    assert not missing


def test_files_in_pages_and_code_exist():
    """Outside of the prose of the package a path is the end of that of a file; messages too."""
    paths = (*SOURCES, *OTHER_CODE, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    parts = [path.relative_to(ROOT).parts for path in paths]
    tails = {"/".join(p[k:]) for p in parts for k in range(len(p))}
    missing = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in (*SOURCES, *OTHER_CODE, *PAGES)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for name in FILE.findall(line)
        if name not in tails and name not in PLACEHOLDERS
    ]
    assert not missing


def test_page_of_the_architecture_lists_the_packages():
    """Its table has one row for each folder of the package, and no other."""
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(
        r"^\| (`.*?) \|", text.partition("## Packages")[2].partition("\n## ")[0], re.M
    )
    listed = [name for row in rows for name in re.findall(r"`(\w+/?)`", row)]
    folders = [f"{p.name}/" for p in PACKAGE.iterdir() if (p / "__init__.py").exists()]
    modules = [p.stem for p in PACKAGE.glob("[a-z]*.py")]
    assert sorted(listed) == sorted(folders + modules)


def test_page_of_the_architecture_lists_existing_subfolders():
    """A row names folders of its package alone."""
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 20
    missing = [
        f"{package}/{name}"
        for package, contents in rows
        for name in re.findall(r"`(\w+)/`", contents)
        if not (PACKAGE / package / name / "__init__.py").exists()
    ]
    assert not missing
