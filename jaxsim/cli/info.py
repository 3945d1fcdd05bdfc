"""`jaxsim info MODEL.xml`: describe a model, given as MJCF or compiled, and its colliders."""

import argparse

from jaxsim.enums import GeomType
from jaxsim.io.load import load_model
from jaxsim.model.describe import describe
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.pairs import GeomTypePair
from jaxsim.physics.collision.candidates.plan import PairGroup, collision_layout
from jaxsim.physics.collision.flex.plan import FlexPairGroup


def info(args: argparse.Namespace) -> int:
    """Print a description of the model."""
    m = load_model(args.model)
    print(args.model)
    print("\n".join(text for text in (describe(m), _describe_colliders(m)) if text))
    return 0


def _describe_colliders(m: Model) -> str:
    """Return a line of text for each collider of the model; empty if nothing can collide."""
    lines = []
    plan = collision_layout(m)
    for prefix, groups in (("", plan.groups), ("speculative, ", plan.speculative)):
        for group in groups:
            kinds = ", ".join(_type_names(kind) for kind in group.kinds)
            name = prefix + group.collider.collide.__name__
            lines.append(_format_line(name, f"{len(group.pairs)} pairs", group) + f" ({kinds})")
    for soft in plan.soft:
        name = "flexes, " + soft.collider.collide.__name__
        lines.append(_format_line(name, _pair_kind_text(soft), soft))
    return "\n".join(["collisions", *lines]) if lines else ""


def _pair_kind_text(soft: FlexPairGroup) -> str:
    if soft.clusters is None:
        return f"{len(soft.entries.pair)} elements or vertices"
    near = f"the first {soft.cluster_budget} that are near"
    return f"{soft.clusters.number} pairs of clusters of elements, {near}, and of their elements"


def _format_line(name: str, candidates: str, group: PairGroup | FlexPairGroup) -> str:
    tested = "all" if group.tests_every_entry else f"the first {group.budget} that are near"
    return f"  {name}: {candidates}, {tested}; {group.slots} contacts each at most"


def _type_names(kind: GeomTypePair) -> str:
    return "-".join(GeomType(k).name.lower() for k in kind)
