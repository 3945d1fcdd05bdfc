"""Tables of a model on the page: sizes, bodies, joints, actuators."""

from typing import Any

import numpy as np

from jaxsim import escape
from jaxsim.enums import JointType
from jaxsim.model.model import Model

_MAX_TABLE_ROWS = 200  # limit on rows of a table
_SIZE_NAMES = "nq nv nu na nbody njnt ngeom nsite ncam nmesh ntendon neq nsensor nkey ncontact"


def add_tables(gui: Any, m: Model) -> None:
    """Add the tables to the panel, collapsed."""
    with gui.add_folder("Model", expand_by_default=False, order=30):
        for title, head, rows in model_tables(m):
            if rows:
                with gui.add_folder(title, expand_by_default=False):
                    gui.add_markdown(markdown_table(head, rows))


_TableRow = tuple[str, ...]


def model_tables(m: Model) -> list[tuple[str, _TableRow, list[_TableRow]]]:
    """Return title, header and rows of each table."""
    mass = np.asarray(m.body_mass)
    bodies: list[_TableRow] = [
        (
            str(i),
            _name(m, "body", i),
            _name(m, "body", m.body_parentid[i]),
            f"{mass[i]:.4g}",
        )
        for i in range(m.nbody)
    ]
    limits = np.asarray(m.jnt_range)
    joints: list[_TableRow] = [
        (
            str(i),
            _name(m, "joint", i),
            JointType(int(m.jnt_type[i])).name.lower(),
            _name(m, "body", m.jnt_bodyid[i]),
            f"{limits[i, 0]:.3g} to {limits[i, 1]:.3g}" if m.jnt_limited[i] else "",
        )
        for i in range(m.njnt)
    ]
    sizes: list[_TableRow] = [(name, str(getattr(m, name))) for name in _SIZE_NAMES.split()]
    sizes.append(("timestep", f"{float(m.opt.timestep):g} s"))
    sizes.append(("mass", f"{mass.sum():.4g} kg"))
    return [
        ("sizes", ("", ""), sizes),
        ("bodies", ("id", "body", "parent", "mass [kg]"), bodies),
        ("joints", ("id", "joint", "type", "body", "range"), joints),
    ]


def markdown_table(head: _TableRow, rows: list[_TableRow]) -> str:
    """Return a table in Markdown; its cells are escaped."""
    lines = [
        "| " + " | ".join(map(escape.markdown, row)) + " |"
        for row in (head, *rows[:_MAX_TABLE_ROWS])
    ]
    lines.insert(1, "|" + " --- |" * len(head))
    more = len(rows) - _MAX_TABLE_ROWS
    return "\n".join(lines) + (f"\n\nand {more} more" if more > 0 else "")


def _name(m: Model, kind: str, i: int) -> str:
    return dict(m.structure.names)[kind][i] or f"({i})"
