"""Compile tendons: `tendon_*`, and `wrap_*`, the objects on their paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from jaxsim.compile.asset import assets
from jaxsim.compile.columns import Column, copy_columns, polynomial_coefficients, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.limit_flags import is_limited
from jaxsim.compile.reference.pose import lineage
from jaxsim.compile.step import declare_pass
from jaxsim.enums import GeomType, JointType, TendonType, WrapType
from jaxsim.model.derived import AUTOMATIC_LENGTH
from jaxsim.spec import SpecElement

_COLUMNS = (
    Column("tendon_group", "group", dtype=np.int32),
    Column("tendon_range", "range", 2),
    Column("tendon_actfrcrange", "actuatorfrcrange", 2),
    Column("tendon_solref_lim", "solreflimit", 2),
    Column("tendon_solimp_lim", "solimplimit", 5),
    Column("tendon_solref_fri", "solreffriction", 2),
    Column("tendon_solimp_fri", "solimpfriction", 5),
    Column("tendon_margin", "margin"),
    Column("tendon_stiffness", "stiffness"),
    Column("tendon_damping", "damping"),
    Column("tendon_frictionloss", "frictionloss"),
    Column("tendon_springyield", "springyield"),
    Column("tendon_armature", "armature"),
)


_DEFAULT_WIDTH, _DEFAULT_RGBA = 0.003, (0.5, 0.5, 0.5, 1.0)


class PathObject(NamedTuple):
    """An object on a path.

    Attributes:
      kind: its type.
      objid: its id, -1 for a pulley or an unknown name.
      prm: coefficient of a joint, id of the side site of a geom or -1, divisor of a pulley, 0 for a
        site.
      element: its element.
    """

    kind: WrapType
    objid: int
    prm: float
    element: SpecElement


@declare_pass(needs="read_settings assets bodies geoms joints sites tree", gives="ten tendon wrap")
def tendons(c: Compilation) -> None:
    """Add all fields of tendons that do not need the reference pose."""
    elements = c.spec.section("tendon")
    c.register("tendon", elements, [tendon.name for tendon in elements])
    paths = [[_PATH_READERS[e.tag, w.tag](c, e, w) for w in e.children] for e in elements]
    for element, path in zip(elements, paths, strict=True):
        _check_path(c, element, path)
    num = np.array([len(path) for path in paths], np.int32)
    wraps = [wrap for path in paths for wrap in path]
    c.fields.update(
        ntendon=len(elements),
        nwrap=len(wraps),
        tendon_type=np.array([TendonType[e.tag.upper()] for e in elements], np.int32),
        tendon_num=num,
        tendon_adr=(np.cumsum(num) - num).astype(np.int32),
        tendon_matid=np.array([_material(c, e) for e in elements], np.int32),
        tendon_actuatorid=np.full(len(elements), -1, np.int32),
        wrap_type=np.array([w.kind for w in wraps], np.int32),
        wrap_objid=np.array([w.objid for w in wraps], np.int32),
        wrap_prm=np.array([w.prm for w in wraps], np.float64),
        tendon_stiffnesspoly=polynomial_coefficients(elements, "stiffness"),
        tendon_dampingpoly=polynomial_coefficients(elements, "damping"),
        tendon_lengthspring=np.array([_springlength(c, e) for e in elements]).reshape(-1, 2),
        tendon_limited=np.array([is_limited(c, e, "limited", "range") for e in elements], bool),
        tendon_actfrclimited=np.array([_has_force_limit(c, e) for e in elements], bool),
    )
    copy_columns(c, elements, _COLUMNS)
    user_data(c, "tendon", elements)
    _add_width_and_color(c, elements)
    _check_armature(c, elements)
    _plastic(c, elements)
    if not c.problems:
        _pattern(c, paths)


def _joint(c: Compilation, _: SpecElement, w: SpecElement) -> PathObject:
    joint = c.resolve_attribute("joint", w, "joint")
    if joint >= 0 and c.fields["jnt_type"][joint] not in (JointType.SLIDE, JointType.HINGE):
        c.fault(w, f"joint='{w.get('joint')}' must be a hinge or a slide")
    return PathObject(WrapType.JOINT, joint, float(w.get("coef")), w)


def _site(c: Compilation, _: SpecElement, w: SpecElement) -> PathObject:
    return PathObject(WrapType.SITE, c.resolve_attribute("site", w, "site"), 0.0, w)


_WRAP_TYPE_OF_GEOM = {GeomType.SPHERE: WrapType.SPHERE, GeomType.CYLINDER: WrapType.CYLINDER}


def _geom(c: Compilation, _: SpecElement, w: SpecElement) -> PathObject:
    geom, side = c.resolve_attribute("geom", w, "geom"), c.resolve_attribute("site", w, "sidesite")
    kind = _WRAP_TYPE_OF_GEOM.get(c.fields["geom_type"][geom]) if geom >= 0 else WrapType.SPHERE
    if kind is None:
        c.fault(
            w, f"geom='{w.get('geom')}' must be a sphere or a cylinder for a tendon to wrap around"
        )
    return PathObject(kind or WrapType.SPHERE, geom, float(side), w)


def _read_pulley(c: Compilation, _: SpecElement, w: SpecElement) -> PathObject:
    divisor = float(w.get("divisor"))
    if not divisor > 0:
        c.fault(w, f"divisor='{divisor:g}' must be positive")
    return PathObject(WrapType.PULLEY, -1, divisor, w)


_PATH_READERS: dict[
    tuple[str, str], Callable[[Compilation, SpecElement, SpecElement], PathObject]
] = {
    ("fixed", "joint"): _joint,
    ("spatial", "site"): _site,
    ("spatial", "geom"): _geom,
    ("spatial", "pulley"): _read_pulley,
}

_GEOM_WRAPS = (WrapType.SPHERE, WrapType.CYLINDER)


def _check_path(c: Compilation, tendon: SpecElement, path: list[PathObject]) -> None:
    """Check that each branch of a path starts and ends with a site, and has sites around each
    geom."""
    if not path:
        c.fault(tendon, "its path is empty; add joints to a fixed tendon, sites to a spatial one")
        return
    if tendon.tag == "fixed":
        _check_joints(c, path)
        return
    if len(path) < 2:
        c.fault(tendon, "its path must have at least two objects; add a site")
        return
    if path[-1].kind == WrapType.PULLEY:
        c.fault(
            path[-1].element, "a path must not end with a pulley; add sites after it, or remove it"
        )
    for before, after in pairwise(path):
        if before.kind == after.kind == WrapType.PULLEY:
            c.fault(after.element, "it follows another pulley; remove one of them")
        if before.kind == after.kind == WrapType.SITE and before.objid == after.objid >= 0:
            c.fault(after.element, "it repeats the site before it; remove one of them")
    ends = [WrapType.PULLEY, *(w.kind for w in path), WrapType.PULLEY]
    for before_kind, here, after_kind in zip(ends, path, ends[2:], strict=False):
        kinds = [before_kind, after_kind]
        if here.kind in _GEOM_WRAPS and kinds != [WrapType.SITE, WrapType.SITE]:
            c.fault(here.element, "a geom on a path must be between two sites")
        if here.kind == WrapType.SITE and kinds == [WrapType.PULLEY, WrapType.PULLEY]:
            c.fault(here.element, "a branch must have at least two sites; add one")


def _check_joints(c: Compilation, path: list[PathObject]) -> None:
    """Check that each joint occurs once."""
    seen: set[int] = set()
    for w in path:
        if w.objid >= 0 and w.objid in seen:
            name = w.element.get("joint")
            c.fault(w.element, f"joint '{name}' is in this tendon already; add up the coefficients")
        seen.add(w.objid)


def _springlength(c: Compilation, e: SpecElement) -> tuple[float, float]:
    """Return the dead band of the spring; a single number gives both ends."""
    given = next(
        (
            layer.own("springlength")
            for layer in reversed(e.layers())
            if layer.own("springlength") is not None
        ),
        None,
    )
    if given is None:
        return AUTOMATIC_LENGTH, AUTOMATIC_LENGTH
    low, high = np.atleast_1d(given)[[0, -1]]
    if low > high:
        c.fault(e, f"springlength='{low:g} {high:g}': the first length must not exceed the second")
    return float(low), float(high)


def _has_force_limit(c: Compilation, e: SpecElement) -> bool:
    limited = is_limited(c, e, "actuatorfrclimited", "actuatorfrcrange")
    low, high = e.get("actuatorfrcrange")
    if limited and (low > 0 or high < 0):
        c.fault(e, f"actuatorfrcrange='{low:g} {high:g}' must contain 0")
    return limited


def _material(c: Compilation, e: SpecElement) -> int:
    return assets.material(c, e) if e.tag == "spatial" else -1


def _add_width_and_color(c: Compilation, elements: list[SpecElement]) -> None:
    """Add width and color, which only spatial tendons may set."""
    width, rgba = np.full(len(elements), _DEFAULT_WIDTH), np.tile(_DEFAULT_RGBA, (len(elements), 1))
    for i, e in enumerate(elements):
        if e.is_set("width"):
            width[i] = e.get("width")
        if e.is_set("rgba"):
            rgba[i] = e.get("rgba")
        if not width[i] > 0:
            c.fault(e, f"width='{width[i]:g}' must be positive")
    c.fields.update(tendon_width=width, tendon_rgba=rgba.astype(np.float32))


def _check_armature(c: Compilation, elements: list[SpecElement]) -> None:
    """Check that armature is not negative, and not on a tendon that wraps."""
    for tendon, e in enumerate(elements):
        armature = c.fields["tendon_armature"][tendon]
        if armature < 0:
            c.fault(e, f"armature='{armature:g}' must not be negative")
        if armature and wraps_geom(c.fields, tendon):
            c.fault(
                e, "a tendon that wraps around geoms cannot have armature; remove one of the two"
            )


def wraps_geom(f: Mapping[str, Any], tendon: int) -> bool:
    """Return whether there is a geom on the path of a tendon."""
    first = f["tendon_adr"][tendon]
    return bool(np.isin(f["wrap_type"][first : first + f["tendon_num"][tendon]], _GEOM_WRAPS).any())


def _plastic(c: Compilation, elements: list[SpecElement]) -> None:
    """Add `tendon_plasticadr`: two plastic state values for each yielding tendon, after those of
    joints."""
    yields = c.fields["tendon_springyield"]
    for e in (e for e, value in zip(elements, yields, strict=True) if value < 0):
        c.fault(e, "springyield must not be negative; 0 disables yielding")
    size = np.where(yields > 0, 2, 0)
    start = c.fields["nplastic"] + np.cumsum(size) - size
    c.fields["tendon_plasticadr"] = np.where(size > 0, start, -1).astype(np.int32)
    c.fields["nplastic"] += int(size.sum())


def _pattern(c: Compilation, paths: list[list[PathObject]]) -> None:
    """Add `ten_J_*`, the dofs that may move each tendon, and the trees along its path."""
    f = c.fields
    above = lineage(f)
    owner = {WrapType.SITE: "site_bodyid", WrapType.JOINT: "jnt_bodyid"}
    rows, trees = [], []
    for path in paths:
        objects = [w for w in path if w.kind != WrapType.PULLEY]
        bodies = [f[owner.get(w.kind, "geom_bodyid")][w.objid] for w in objects]
        if path[0].kind == WrapType.JOINT:
            dofs = [f["jnt_dofadr"][[w.objid for w in objects]]]
        else:
            dofs = [above[body] for body in bodies]
        rows.append(np.unique(np.concatenate(dofs)))
        trees_on_path = [f["body_treeid"][body] for body in bodies]
        trees.append(list(dict.fromkeys(int(tree) for tree in trees_on_path if tree >= 0)))
    size = np.array([len(row) for row in rows], np.int32)
    f.update(
        nJten=int(size.sum()),
        ten_J_rownnz=size,
        ten_J_rowadr=(np.cumsum(size) - size).astype(np.int32),
        ten_J_colind=np.concatenate([*rows, np.zeros(0)]).astype(np.int32),
        # mjModel stores at most two trees per tendon; tendon_treenum has the full number.
        tendon_treenum=np.array([len(ids) for ids in trees], np.int32),
        tendon_treeid=np.array([(*ids, -1, -1)[:2] for ids in trees], np.int32).reshape(-1, 2),
    )
