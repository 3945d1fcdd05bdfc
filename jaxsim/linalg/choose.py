"""Choice of the form in which each linear system of a step is stored and factorized.

Every decision about matrices is made here, from static facts: sizes, diagonal blocks, the number of
worlds, the platform, and whether a derivative is taken. `choose_operator` chooses the storage of a
matrix from a table of rules, of which the first that applies decides; `choose_factorization` the
algorithm for dense blocks. Both return the reason in words, which `jaxsim info MODEL --program`
prints. The thresholds are fields of `Tuning` (transforms/tuning.py), which are read while a program
is traced; the forms are explained in docs/developer/linear-algebra.md.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.platform import Platform, platform
from jaxsim.transforms.tuning import Tuning, tuning


class Form(StrEnum):
    """Storage of a symmetric matrix: the name of its class in jaxsim/linalg, or of its kernel."""

    DENSE = "Dense"
    BLOCK_DIAGONAL = "BlockDiagonal"
    TREE_SPARSE = "TreeSparse"
    PACKED_LOWER = "PackedLower"
    BLOCKED_LOWER = "BlockedLower"
    SKYLINE = "Skyline"
    NEWTON_KERNEL = "GPU kernel"


class Factorization(StrEnum):
    """Algorithm that factorizes a dense matrix and solves with it."""

    KERNEL = "L D L' in a GPU kernel"
    PANELS = "Cholesky by unrolled panels"
    ROWS = "Gaussian elimination row by row, many worlds per row"
    BLOCK_LOOPS = "left-looking Cholesky, loops over blocks of columns"
    LDL_ROWS = "L D L' row by row"
    BLOCKS = "blocked Cholesky, diagonal blocks by the library"
    LIBRARY = "Cholesky of the library"


_Kind = TypeVar("_Kind", Form, Factorization)


class Choice(NamedTuple, Generic[_Kind]):
    """A form and the reason for it.

    Attributes:
      form: storage of the matrix, or its factorization.
      reason: why, in words.
      thresholds: names of the fields of `Tuning` that decided.
      by_world: the worlds of a batch are solved one after another, each in this form.
    """

    form: _Kind
    reason: str
    thresholds: tuple[str, ...] = ()
    by_world: bool = False


class InertiaFacts(NamedTuple):
    """Facts that decide the form of the joint-space inertia M.

    Attributes:
      blocks: sizes of its diagonal blocks (physics/partition.py).
      has_tendons: tendons may add inertia between the trees of a block.
      tree_operations: operations of the factorization by entries, without fill-in.
    """

    blocks: tuple[int, ...]
    has_tendons: bool
    tree_operations: int

    @property
    def block_operations(self) -> float:
        """Return the multiplications of the Cholesky factorization of all blocks."""
        return sum(size**3 for size in self.blocks) / 6


class HessianFacts(NamedTuple):
    """Facts that decide the form of the solver's Hessian H = M + J' W J.

    Attributes:
      size: number of dofs.
      blocks: sizes of the diagonal blocks of H, for any contacts.
      uncoupled_blocks: number of diagonal blocks that only contacts couple, pair by pair, where
        contacts are stored for the trees that they touch; else 0.
      batched: several worlds are solved together.
      has_sparse_inertia: M is stored as TREE_SPARSE.
      has_single_dof_rows: each constraint row acts on one dof.
      has_active_count: contacts are processed up to the last active one, not all at once.
      suits_kernel: the GPU kernel supports all constraint rows.
    """

    size: int
    blocks: tuple[int, ...] = ()
    uncoupled_blocks: int = 0
    batched: bool = False
    has_sparse_inertia: bool = False
    has_single_dof_rows: bool = False
    has_active_count: bool = True
    suits_kernel: bool = False


class _Context(NamedTuple):
    """Platform and thresholds of the program, and whether a derivative is taken of it."""

    on: Platform
    tuning: Tuning
    differentiated: bool

    @property
    def loops(self) -> bool:
        """Return whether loops are faster than unrolled code (transforms/derivative_context.py)."""
        return self.on.fuses_calls and not self.differentiated


class _Rule(NamedTuple):
    """A row of a table of forms: the form, where it applies, and why.

    Names of thresholds and facts in the text of the reason are replaced by their values.
    """

    form: Form
    applies: Callable[[Any, _Context], bool]
    reason: str


def choose_operator(
    facts: InertiaFacts | HessianFacts, differentiated: bool = False
) -> Choice[Form]:
    """Choose the storage of a matrix of the physics.

    Args:
      facts: the matrix.
      differentiated: whether a derivative is taken of its assembly and solution.
    """
    context = _Context(platform(), tuning(), differentiated)
    if isinstance(facts, InertiaFacts):
        return _first_that_applies(_INERTIA_RULES, facts, context)
    # Where a tile of Hessians fits no cache, choose the form for one world. The limit is lower
    # where the state determines which trees are coupled: each world then has its own skyline.
    limit = "max_unrolled_dofs" if facts.uncoupled_blocks > 1 else "max_tiled_dofs"
    most = getattr(context.tuning, limit)
    large = facts.batched and facts.size > most
    # Contacts are truncated to those of the world, for which their number must be known.
    by_world = large and context.loops and facts.has_active_count
    choice = _first_that_applies(
        _HESSIAN_RULES, facts._replace(batched=facts.batched and not by_world), context
    )
    if not by_world or choice.form is Form.TREE_SPARSE:
        return choice
    reason = f"more than {most} dofs: world by world, since a tile fits no cache"
    thresholds = tuple(dict.fromkeys((*choice.thresholds, limit)))
    return Choice(choice.form, f"{choice.reason}; {reason}", thresholds, by_world=True)


def choose_factorization(
    size: int, batched: bool, has_world_axis: bool = True
) -> Choice[Factorization]:
    """Choose the algorithm for a dense symmetric positive definite matrix, or a block of one.

    Args:
      size: number of rows.
      batched: several matrices are solved together, those of worlds or blocks of one size.
      has_world_axis: the arrays have an axis for them, even of length one.
    """
    context = _Context(platform(), tuning(), is_differentiated())
    t = context.tuning
    # Several matrices: in a GPU kernel, or all at once in one loop or unrolled.
    if has_world_axis and context.on.kernels and size <= t.max_kernel_dofs:
        reason = "at most {max_kernel_dofs} dofs fit the registers of a warp"
        return _explained(Factorization.KERNEL, reason)
    if has_world_axis and batched and size <= t.max_unrolled_dofs:
        if size <= t.max_short_unrolled_dofs:
            reason = "at most {max_short_unrolled_dofs} dofs: unrolled it is a short program"
            return _explained(Factorization.PANELS, reason)
        if not context.on.fuses_calls:
            reason = "several of at most {max_unrolled_dofs} dofs, where loops are slow"
            return _explained(Factorization.PANELS, reason)
        reason = "several of {max_short_unrolled_dofs} to {max_unrolled_dofs} dofs: a short loop"
        return _explained(Factorization.ROWS, reason)
    if has_world_axis and batched and context.loops and size <= t.max_tiled_dofs:
        reason = "several of {max_unrolled_dofs} to {max_tiled_dofs} dofs: loops over blocks"
        return _explained(Factorization.BLOCK_LOOPS, reason)
    # One matrix at a time.
    if context.loops and size <= t.max_row_loop_dofs:
        reason = (
            "one matrix of at most {max_row_loop_dofs} dofs: a loop that a fused kernel can hold"
        )
        return _explained(Factorization.LDL_ROWS, reason)
    if context.on.blocks and size > t.max_library_dofs:
        reason = "more than {max_library_dofs} dofs, which the library divides among threads"
        return _explained(Factorization.BLOCKS, reason)
    return _explained(Factorization.LIBRARY, "one matrix at a time, on the calling thread")


def choose_inverse(size: int, batched: bool) -> Choice[Factorization]:
    """Choose the algorithm that inverts a dense matrix; arguments as in `choose_factorization`."""
    if batched and size <= tuning().max_unrolled_dofs:
        reason = "several of at most {max_unrolled_dofs} dofs: unrolled panels"
        return _explained(Factorization.PANELS, reason)
    choice = choose_factorization(size, batched)
    if choice.form is Factorization.BLOCK_LOOPS:
        return choice
    return choose_factorization(size, batched=False, has_world_axis=False)


def _first_that_applies(
    rules: tuple[_Rule, ...], facts: InertiaFacts | HessianFacts, context: _Context
) -> Choice[Form]:
    """Return the choice of the first rule that applies."""
    rule = next(rule for rule in rules if rule.applies(facts, context))
    sizes = {"largest": max(facts.blocks, default=0), "count": len(facts.blocks)}
    return _explained(rule.form, rule.reason, facts=facts, **sizes)


def _explained(form: _Kind, reason: str, **values: Any) -> Choice[_Kind]:
    """Return a choice whose reason names thresholds in braces, and other values."""
    limits = vars(tuning())
    thresholds = tuple(name for name in limits if f"{{{name}}}" in reason)
    return Choice(form, reason.format(**limits, **values), thresholds)


_INERTIA_RULES = (
    _Rule(
        Form.TREE_SPARSE,
        lambda s, c: (
            c.on.fuses_calls
            and not s.has_tendons
            and max(s.blocks, default=0) > c.tuning.max_unrolled_dofs
            and c.tuning.min_block_speedup * s.tree_operations < s.block_operations
        ),
        "a block of {largest} dofs, more than {max_unrolled_dofs}; by entries the factorization "
        "takes {facts.tree_operations} operations, by blocks {facts.block_operations:.0f}, more "
        "than {min_block_speedup} times as many",
    ),
    _Rule(
        Form.BLOCK_DIAGONAL,
        lambda s, c: not s.has_tendons and len(s.blocks) > 1,
        "nothing couples its {count} blocks",
    ),
    _Rule(
        Form.DENSE,
        lambda s, c: len(s.blocks) > 1,
        "tendons may have inertia; it is solved by its {count} blocks",
    ),
    _Rule(Form.DENSE, lambda s, c: True, "one block of {largest} dofs"),
)

_HESSIAN_RULES = (
    _Rule(
        Form.TREE_SPARSE,
        lambda s, c: s.has_sparse_inertia and s.has_single_dof_rows,
        "each constraint row acts on one dof, so that H has the zeros of M",
    ),
    _Rule(Form.DENSE, lambda s, c: c.differentiated, "JAX differentiates its operations"),
    _Rule(
        Form.NEWTON_KERNEL,
        lambda s, c: (
            bool(c.on.kernels) and s.suits_kernel and 0 < s.size <= c.tuning.max_kernel_dofs
        ),
        "the GPU kernel of Newton's method holds {max_kernel_dofs} dofs in the registers of a warp",
    ),
    _Rule(
        Form.SKYLINE,
        lambda s, c: (
            c.loops
            and not s.batched
            and s.uncoupled_blocks > 1
            and s.size > c.tuning.max_unrolled_dofs
        ),
        "{facts.size} dofs, more than {max_unrolled_dofs}, in {facts.uncoupled_blocks} blocks that "
        "contacts couple in pairs: the state decides where H is zero",
    ),
    _Rule(
        Form.BLOCK_DIAGONAL,
        lambda s, c: len(s.blocks) > 1,
        "no constraint row couples its {count} blocks",
    ),
    _Rule(
        Form.PACKED_LOWER,
        lambda s, c: c.on.recomputes and s.batched and 0 < s.size <= c.tuning.max_unrolled_dofs,
        "worlds of at most {max_unrolled_dofs} dofs together, on a CPU: unrolled panels",
    ),
    _Rule(
        Form.BLOCKED_LOWER,
        lambda s, c: c.on.recomputes and s.batched and 0 < s.size <= c.tuning.max_tiled_dofs,
        "worlds of {max_unrolled_dofs} to {max_tiled_dofs} dofs together, on a CPU: loops over "
        "blocks",
    ),
    _Rule(
        Form.DENSE,
        lambda s, c: c.on.recomputes and s.batched,
        "more than {max_tiled_dofs} dofs, and contacts are processed all at once",
    ),
    _Rule(Form.DENSE, lambda s, c: c.on.recomputes, "one world, and one block"),
    _Rule(Form.DENSE, lambda s, c: True, "the platform runs dense operations on a batch well"),
)
