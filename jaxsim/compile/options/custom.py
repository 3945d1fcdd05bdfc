"""Compile `<custom>`: numbers, texts and lists of objects for the user of the model."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.compile.step import declare_pass
from jaxsim.enums import ObjType
from jaxsim.spec import SpecElement


@declare_pass(
    needs="assets bodies geoms joints sites cameras lights tendons actuators equalities sensors",
    gives="numeric text tuple",
)
def custom(c: Compilation) -> None:
    """Add `numeric_*`, `text_*` and `tuple_*`."""
    elements = c.spec.section("custom")
    kinds = {tag: [e for e in elements if e.tag == tag] for tag in ("numeric", "text", "tuple")}
    for kind, found in kinds.items():
        c.register(kind, found, [e.name for e in found])
    _add_concatenated_table(c, "numeric", [_numbers(c, e) for e in kinds["numeric"]], np.float64)
    texts = [_zero_terminated_text(c, e) for e in kinds["text"]]
    _add_concatenated_table(c, "text", [np.frombuffer(text, np.uint8) for text in texts], np.uint8)
    c.fields["text_data"] = b"".join(texts)
    _tuples(c, kinds["tuple"])


def _add_concatenated_table(c: Compilation, kind: str, rows: list[np.ndarray], dtype: type) -> None:
    """Add rows of any length as a concatenated table, with their sizes and addresses."""
    size = np.array([len(row) for row in rows], np.int32)
    c.fields.update(
        {
            f"n{kind}": len(rows),
            f"n{kind}data": int(size.sum()),
            f"{kind}_size": size,
            f"{kind}_adr": (np.cumsum(size) - size).astype(np.int32),
            f"{kind}_data": np.concatenate([*rows, np.zeros(0, dtype)]).astype(dtype),
        }
    )


def _numbers(c: Compilation, e: SpecElement) -> np.ndarray:
    """Return the data, padded with zeros to `size`."""
    data = np.zeros(0) if e.own("data") is None else np.atleast_1d(e.own("data"))
    size = int(e.own("size")) if e.own("size") is not None else len(data)
    if size <= 0:
        c.fault(e, "it is empty; give data, or a positive size")
    elif len(data) > size:
        c.fault(e, f"data has {len(data)} numbers, but size='{size}'")
    row = np.zeros(max(size, 0) if fits_bounds(c, e, "size", size) else 0)
    row[: len(data)] = data[: len(row)]
    return row


def _zero_terminated_text(c: Compilation, e: SpecElement) -> bytes:
    """Return the text with a terminating zero byte."""
    if not e.own("data"):
        c.fault(e, "its data is empty; give a text, or remove the element")
    return (e.own("data") or "").encode() + b"\0"


def _tuples(c: Compilation, tuples: list[SpecElement]) -> None:
    """Add `tuple_objtype`, `tuple_objid` and `tuple_objprm`, concatenated."""
    entries = [e for element in tuples for e in element.children]
    for element in tuples:
        if not element.children:
            c.fault(element, "it is empty; add an element, or remove it")
    size = np.array([len(element.children) for element in tuples], np.int32)
    types = [ObjType[e.get("objtype").upper()] for e in entries]
    ids = []
    for e, objtype in zip(entries, types, strict=True):
        kind = "body" if objtype == ObjType.XBODY else objtype.name.lower()
        ids.append(c.resolve_name(kind, e.get("objname"), e, "objname"))
    c.fields.update(
        ntuple=len(tuples),
        ntupledata=len(entries),
        tuple_size=size,
        tuple_adr=(np.cumsum(size) - size).astype(np.int32),
        tuple_objtype=np.array(types, np.int32),
        tuple_objid=np.array(ids, np.int32),
        tuple_objprm=np.array([e.get("prm") or 0.0 for e in entries], np.float64),
    )
