"""Report of the program of a step: stages, matrix forms, kernels, capacities, size.

The report is one object, which `jaxsim info MODEL --program` prints and tests compare. All of it
follows from the structure of the model, the number of worlds and the platform; nothing is run.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr

from jaxsim.batch.profile import stages_of_step
from jaxsim.linalg.choose import Factorization, Form
from jaxsim.model.model import Model
from jaxsim.model.structure import max_noncontact_rows
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.pipeline.linear_systems import LinearSystem, data_shapes, linear_systems
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_count, check_model
from jaxsim.transforms.layout import tile_size
from jaxsim.transforms.platform import Platform, platform, platform_name
from jaxsim.transforms.primitive import PHYSICS_P, program_of
from jaxsim.transforms.tuning import tuning


class ColliderCapacity(NamedTuple):
    """Capacities of one collider.

    Attributes:
      collider: name of its function.
      pairs: candidate pairs of geoms; of flexes, of elements or vertices.
      tested: pairs that the narrow phase tests in a step, the first that are near.
      contacts_per_pair: contacts of a pair.
    """

    collider: str
    pairs: int
    tested: int
    contacts_per_pair: int


class Capacities(NamedTuple):
    """Fixed sizes of a world.

    Attributes:
      contacts: most contacts (`load_model(..., contacts=n)`).
      candidates: contact points that are computed, of which the deepest are kept.
      other_rows: most constraint rows besides those of contacts.
      colliders: capacities of each collider.
    """

    contacts: int
    candidates: int
    other_rows: int
    colliders: tuple[ColliderCapacity, ...]


@dataclass(frozen=True)
class ProgramReport:
    """Description of the program that is compiled for a step; `print` shows it.

    Attributes:
      platform: platform of the program: "cpu", "cuda", "rocm" or "tpu".
      worlds: number of worlds that `vmap` batches.
      tile: worlds that are processed together.
      stages: names of the stages that run, in order.
      systems: linear systems, with their matrix form and the reason.
      kernels: what runs as a kernel of the package's own making.
      capacities: contacts and other constraint rows.
      thresholds: names and values of the fields of `Tuning` that decided (transforms/tuning.py).
      equations: number of equations of the jaxpr of a step, inner programs included.
      instructions: number of instructions that the compiler is given; None: not lowered.
    """

    platform: str
    worlds: int
    tile: int
    stages: tuple[str, ...]
    systems: tuple[LinearSystem, ...]
    kernels: tuple[str, ...]
    capacities: Capacities
    thresholds: tuple[tuple[str, float], ...]
    equations: int
    instructions: int | None = None

    def __str__(self) -> str:
        """Return the report as text."""
        size = f"{self.equations} equations"
        if self.instructions is not None:
            size += f", {self.instructions} instructions before optimization"
        c = self.capacities
        lines = [
            f"program of a step: {self.worlds} worlds in tiles of {self.tile}, {self.platform}",
            f"  size        {size}",
            f"  stages      {' '.join(self.stages)}",
            *(f"  kernels     {kernel}" for kernel in self.kernels),
            f"  contacts    at most {c.contacts}, of {c.candidates} candidates",
            f"  other rows  at most {c.other_rows}",
            *(f"    {_collider_text(one)}" for one in c.colliders),
            format_systems(self.systems),
            "  thresholds  " + ", ".join(f"{name} {value}" for name, value in self.thresholds),
        ]
        return "\n".join(lines)


def program_report(m: Model, worlds: int = 1, *, lower: bool = False) -> ProgramReport:
    """Describe the program of a step, for the platform of the caller (`for_platform`).

    Args:
      m: model.
      worlds: number of worlds that `vmap` batches.
      lower: also lower the program, which takes some seconds, and count its instructions.
    """
    check_model("program_report", m)
    worlds = check_count("program_report: worlds", worlds)
    on, systems = platform(), linear_systems(m, worlds)
    # Trace a step of that many worlds.
    function = step if worlds == 1 else jax.vmap(step, (None, 0))
    traced = jax.jit(function).trace(m, data_shapes(m, worlds))
    instructions = count_instructions(traced.lower().as_text()) if lower else None
    return ProgramReport(
        platform=platform_name(),
        worlds=worlds,
        tile=tile_size(m, worlds),
        stages=tuple(name for name, *_ in stages_of_step(m)),
        systems=systems,
        kernels=_kernels(on, systems),
        capacities=_capacities(m),
        thresholds=_thresholds(m, on, systems),
        equations=count_equations(traced.jaxpr.jaxpr),
        instructions=instructions,
    )


def format_systems(systems: tuple[LinearSystem, ...]) -> str:
    """Return linear systems as lines of text."""
    lines = ["  linear systems"]
    for s in systems:
        sizes = ", ".join(f"{count} x {size}" for size, count in Counter(s.blocks).items())
        lines += [
            f"    {s.name}: {s.equation}, {s.size} dofs, blocks {sizes}",
            f"      {s.form}: {s.reason}",
            *(f"      {method}" for method in dict.fromkeys(s.methods)),
        ]
    return "\n".join(lines)


def count_equations(jaxpr: Jaxpr) -> int:
    """Return the number of equations of a program, those of inner programs included."""
    count = 0
    for equation in jaxpr.eqns:
        count += 1
        if equation.primitive is PHYSICS_P:
            count += count_equations(program_of(equation).jaxpr)
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
                count += count_equations(inner) if isinstance(inner, Jaxpr) else 0
    return count


def count_instructions(text: str) -> int:
    """Return the number of instructions of a lowered or compiled program."""
    return len(re.findall(r"^\s+(?:ROOT )?%[\w.\-:#]+(?:, %[\w.\-:#]+)* = ", text, re.MULTILINE))


def _kernels(on: Platform, systems: tuple[LinearSystem, ...]) -> tuple[str, ...]:
    """Return what runs as a kernel of the package's own making."""
    out = []
    if on.fuses_calls:
        out.append(f"CPU: fused, at most {tuning().max_kernel_operations} operations each")
    if any(s.form == Form.NEWTON_KERNEL for s in systems):
        out.append("GPU: Newton's method, one warp per world")
    if any(Factorization.KERNEL in s.methods for s in systems):
        out.append("GPU: linear systems, one warp per system")
    return tuple(out)


def _capacities(m: Model) -> Capacities:
    """Return the capacities of a world."""
    plan = collision_layout(m)
    groups = [
        ColliderCapacity(g.collider.collide.__name__, len(g.pairs), g.budget, g.slots)
        for g in plan.all_groups
    ]
    flexes = [
        ColliderCapacity(g.collider.collide.__name__, len(g.entries.pair), g.budget, g.slots)
        for g in plan.flex_groups
    ]
    return Capacities(
        contacts=0 if plan.empty else plan.capacity,
        candidates=plan.points,
        other_rows=max_noncontact_rows(m),
        colliders=(*groups, *flexes),
    )


def _thresholds(
    m: Model, on: Platform, systems: tuple[LinearSystem, ...]
) -> tuple[tuple[str, float], ...]:
    """Return the thresholds that decided, in alphabetical order."""
    names = {name for s in systems for name in s.thresholds}
    if m.ntree > 1:
        names.add("min_block_speedup")
    if on.tiles:
        names.add("max_tiled_dofs")
    if on.chunks and m.ncontact > 0:
        names.add("contacts_per_chunk")
    if on.fuses_calls:
        names.add("max_kernel_operations")
    return tuple((name, getattr(tuning(), name)) for name in sorted(names))


def _collider_text(one: ColliderCapacity) -> str:
    tested = "all" if one.tested == one.pairs else f"the first {one.tested} that are near"
    return f"{one.collider}: {one.pairs} pairs, {tested}; {one.contacts_per_pair} contacts each"
