"""`jaxsim info MODEL.xml`: describe a compiled model or MJCF, and its colliders or program."""

import argparse

from jaxsim.batch.program_report import program_report
from jaxsim.enums import GeomType
from jaxsim.io.load import load_model
from jaxsim.model.describe import describe
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.pairs import GeomTypePair
from jaxsim.physics.collision.candidates.plan import PairGroup, collision_layout
from jaxsim.physics.collision.flex.plan import FlexPairGroup


def info(args: argparse.Namespace) -> int:
    """Print a description of the model; with `--program` also of the program of a step."""
    m = load_model(args.model)
    print(args.model)
    program = args.program or args.lower
    rest = program_report(m, args.worlds, lower=args.lower) if program else _describe_colliders(m)
    print("\n".join(str(text) for text in (describe(m), rest) if text))
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
    for of_flex in plan.flex_groups:
        name = "flexes, " + of_flex.collider.collide.__name__
        lines.append(_format_line(name, _pair_kind_text(of_flex), of_flex))
    return "\n".join(["collisions", *lines]) if lines else ""


def _pair_kind_text(group: FlexPairGroup) -> str:
    if group.clusters is None:
        return f"{len(group.entries.pair)} elements or vertices"
    near = f"the first {group.cluster_budget} that are near"
    return f"{group.clusters.number} pairs of clusters of elements, {near}, and of their elements"


def _format_line(name: str, candidates: str, group: PairGroup | FlexPairGroup) -> str:
    tested = "all" if group.tests_every_entry else f"the first {group.budget} that are near"
    return f"  {name}: {candidates}, {tested}; {group.slots} contacts each at most"


def _type_names(kind: GeomTypePair) -> str:
    return "-".join(GeomType(k).name.lower() for k in kind)
