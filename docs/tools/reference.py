"""Write the generated pages of `docs/reference/`: all of them, or those named.

python docs/tools/reference.py
python docs/tools/reference.py fields mjcf
"""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PAGES = ("fields", "functions", "mjcf", "settings", "stages")


def write(names: list[str]) -> None:
    """Write the pages `names`, each from the module of its name in this folder."""
    sys.path.insert(0, str(FOLDER.parent))
    for name in names or PAGES:
        if name not in PAGES:
            sys.exit(f"docs/tools/reference.py: unknown page {name!r}; one of {', '.join(PAGES)}")
        page = importlib.import_module(f"tools.{name}").reference()
        (FOLDER.parent / "reference" / f"{name}.md").write_text(page)


if __name__ == "__main__":
    write(sys.argv[1:])
