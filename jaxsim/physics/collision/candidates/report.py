"""Which geoms can meet, by which function, and with what budget: for a person to read."""

from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.pairs import Kind
from jaxsim.physics.collision.candidates.plan import layout


def collision_report(m: Model) -> str:
    """A line for each function that collides pairs of the model; empty if nothing can meet."""
    lines = []
    for group in layout(m).groups:
        kinds = ", ".join(_named(kind) for kind in group.kinds)
        looked = "all" if group.all else f"the first {group.budget} that are near"
        lines.append(
            f"  {group.collider.collide.__name__}: {len(group.pairs)} pairs, {looked}; "
            f"{group.slots} contacts each at most ({kinds})"
        )
    return "\n".join(["collisions", *lines]) if lines else ""


def _named(kind: Kind) -> str:
    return "-".join(GeomType(k).name.lower() for k in kind)
