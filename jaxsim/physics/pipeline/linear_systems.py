"""The linear systems of a step, each with its form, its size and the reason.

The stages are traced, not run, for as many worlds as a program processes together, and the forms
are read off the problem and the matrices that result: what is reported is what is compiled.
`jaxsim info MODEL --program` prints the list; docs/developer/linear-algebra.md explains it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import jax

from jaxsim.enums import IntegratorType, SolverType
from jaxsim.linalg.choose import Choice, Factorization, Form, choose_factorization, choose_inverse
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.elimination import General
from jaxsim.linalg.operator import MassMatrix
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.callback import call_control
from jaxsim.physics.constraint.regularize import regularized_rows
from jaxsim.physics.integrate.effective_inertia import effective_inertia
from jaxsim.physics.integrate.system import System, smooth_system
from jaxsim.physics.partition import inertia_choice
from jaxsim.physics.pipeline.forward import to_position, velocity_stages
from jaxsim.physics.public.make_data import make_data
from jaxsim.physics.solver.forward_dynamics import constraint_problem, smooth_force
from jaxsim.physics.solver.problem import ConstraintProblem
from jaxsim.transforms.derivative_context import trace_for_derivative
from jaxsim.transforms.layout import batched

# Forms that are factorized by code of their own.
_METHODS = {
    Form.TREE_SPARSE: "L' D L by entries, from the leaves to the roots",
    Form.SKYLINE: "L D L' within the profile that the contacts of the state make",
    Form.PACKED_LOWER: "left-looking Cholesky, unrolled panels",
    Form.BLOCKED_LOWER: Factorization.BLOCK_LOOPS.value,
    Form.NEWTON_KERNEL: "L D L' in the registers of a warp",
}


class LinearSystem(NamedTuple):
    """A linear system of a step.

    Attributes:
      name: what it computes.
      equation: the system in the notation of the documentation.
      size: number of dofs.
      blocks: sizes of the diagonal blocks that are factorized separately, in ascending order.
      form: name of the matrix form (docs/developer/linear-algebra.md).
      methods: how it is factorized, for each size of block.
      reason: why it has this form.
      thresholds: names of the fields of `Tuning` that decided (transforms/tuning.py).
      by_world: the worlds of a batch are solved one after another.
    """

    name: str
    equation: str
    size: int
    blocks: tuple[int, ...]
    form: str
    methods: tuple[str, ...]
    reason: str
    thresholds: tuple[str, ...] = ()
    by_world: bool = False


def linear_systems(m: Model, worlds: int = 1) -> tuple[LinearSystem, ...]:
    """Return the linear systems of a step of a model, for a number of worlds.

    Args:
      m: model.
      worlds: number of worlds that `vmap` batches, which it processes in tiles
        (transforms/layout.py).
    """
    found: list[LinearSystem] = []

    def collect(m: Model, d: Data) -> jax.Array:
        found[:] = _systems(m, d)
        return d.time

    # Trace with the shapes of that many worlds; nothing is computed.
    function = batched(collect)
    function = function if worlds == 1 else jax.vmap(function, (None, 0))
    jax.eval_shape(function, m, data_shapes(m, worlds))
    return tuple(found)


def data_shapes(m: Model, worlds: int) -> Data:
    """Return shapes and dtypes of the state of a world, or of a batch with a leading axis."""
    axis = () if worlds == 1 else (worlds,)
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct((*axis, *a.shape), a.dtype), make_data(m))


def _systems(m: Model, d: Data) -> list[LinearSystem]:
    """Return the systems of a state, from its matrices."""
    if not m.nv:
        return []
    # Run the stages before the solver.
    d = velocity_stages(m, to_position(m, d))
    d = smooth_force(m, actuation(m, call_control(m, d)))
    system = smooth_system(m, d)
    d = d.replace(rows=regularized_rows(m, d, system.backbone))
    if d.rows.empty or m.resolves_shells:
        systems = [_smooth_system(m, system)]
    else:
        problem = constraint_problem(m, d, system)
        newton = m.opt.solver == SolverType.NEWTON
        systems = (_newton_systems if newton else _dual_systems)(m, problem)
        if m.opt.noslip_iterations:
            systems.append(_noslip_system(problem))
    return systems + _integrator_systems(m, d)


def _smooth_system(m: Model, system: System) -> LinearSystem:
    """Return the system of the acceleration, without a solver."""
    choice = inertia_choice(m)
    if system.metric is not None:
        choice = Choice(Form.DENSE, "the discrete integrator adds stiffness and damping to M")
    return _system("acceleration", "M qacc = qfrc_smooth", system.inertia, choice, system.force)


def _newton_systems(m: Model, p: ConstraintProblem) -> list[LinearSystem]:
    """Return the systems of Newton's method: M, H, and H at the solution for derivatives."""
    choice = p.choose_hessian(records=False)
    like = p.smooth[:, 0] if choice.by_world else p.smooth
    own = inertia_choice(m)
    if choice.form in (Form.TREE_SPARSE, Form.NEWTON_KERNEL) or p.M.parts == p.parts:
        start = Choice(choice.form, "iteration 0 of Newton's method, whose Hessian is M")
        first = _system("unconstrained acceleration", "M a0 = qfrc_smooth", p, start, like)
    else:
        why = "M has smaller blocks than H"
        if isinstance(p.M, Dense) and own.form is not Form.DENSE:
            why += f"; in form {own.form} it is no start for H in form {choice.form}"
        start = Choice(_form_of(p.M), why)
        first = _system("unconstrained acceleration", "M a0 = qfrc_smooth", p.M, start, like)
    hessian = _system("Newton Hessian", "(M + J' W J) v = -g", p, choice, like)
    with trace_for_derivative():
        last = p.choose_hessian(differentiated=True)
        implicit = _system("Hessian in a derivative", "(M + J' W J) dx = -dF", p, last, p.smooth)
    return [first, hessian, implicit]


def _dual_systems(m: Model, p: ConstraintProblem) -> list[LinearSystem]:
    """Return the system of CG and PGS, which apply M^-1 many times."""
    user = "CG preconditioner" if m.opt.solver == SolverType.CG else "PGS responses"
    sizes = _block_sizes(p.M, len(p.smooth))
    methods = tuple(
        choose_inverse(size, batched).form.value
        for size, batched in _groups(sizes, p.smooth.shape[1:])
    )
    reason = "M^-1 is applied in each iteration, so it is computed once, by the blocks of M"
    return [LinearSystem(user, "M^-1", len(p.smooth), sizes, "InverseBlocks", methods, reason)]


def _noslip_system(p: ConstraintProblem) -> LinearSystem:
    """Return the system of the no-slip iterations."""
    n, worlds = len(p.smooth), p.smooth.shape[1:]
    batched = bool(worlds) and worlds[0] > 1
    method = choose_inverse(n, batched).form.value
    reason = "every row needs its response M^-1 J', so M is inverted as one block"
    return LinearSystem("no-slip responses", "M^-1", n, (n,), "Dense", (method,), reason)


def _integrator_systems(m: Model, d: Data) -> list[LinearSystem]:
    """Return the systems of an implicit integrator."""
    inertia = effective_inertia(m, d)
    if inertia is None:
        return []
    name = f"integrator {IntegratorType(m.opt.integrator).name.lower()}"
    if isinstance(inertia.matrix, General):
        reason = "the derivative of the bias force is not symmetric"
        systems = [_general(name, "(M + h D) a = f", m.nv, reason)]
    else:
        own = inertia_choice(m)
        reason = own.reason if own.form is not Form.DENSE else "M is dense"
        if isinstance(inertia.matrix, Dense) and own.form is not Form.DENSE:
            reason = "D couples dofs that M does not"
        elif own.form is not Form.DENSE:
            reason = f"D is diagonal, so that the form of M is kept: {reason}"
        choice = Choice(_form_of(inertia.matrix), reason, own.thresholds)
        systems = [_system(name, "(M + h D) a = f", inertia.matrix, choice, d.qvel)]
    if inertia.own is not None:
        reason = "the gyroscopic force of free bodies is implicit, and not symmetric"
        bodies = _general("free bodies", "(M + h D) a = f", inertia.own.shape[0], reason)
        systems.append(bodies._replace(size=6 * inertia.own.shape[2]))
    return systems


def _general(name: str, equation: str, size: int, reason: str) -> LinearSystem:
    """Describe a system whose matrix is not symmetric."""
    method = "Gauss-Jordan elimination, from the leaves to the root"
    return LinearSystem(name, equation, size, (size,), "General", (method,), reason)


def _system(
    name: str,
    equation: str,
    of: ConstraintProblem | MassMatrix,
    choice: Choice[Form],
    like: jax.Array,
) -> LinearSystem:
    """Describe a system: the blocks of its matrix, and how each is factorized.

    Args:
      name, equation: see `LinearSystem`.
      of: the matrix, or the problem with its Hessian.
      choice: form of the matrix, with the reason.
      like: a vector of the system, `[n, *W]`.
    """
    worlds = like.shape[1:]
    sizes: tuple[int, ...] = (len(like),)
    if choice.form in (Form.DENSE, Form.BLOCK_DIAGONAL):
        sizes = _block_sizes(of, len(like))
        has_axis = bool(worlds) or len(sizes) > 1
        methods = tuple(
            choose_factorization(size, batched, has_axis).form.value
            for size, batched in _groups(sizes, worlds)
        )
    else:
        methods = (_METHODS[choice.form],)
    return LinearSystem(name, equation, len(like), sizes, choice.form.value, methods, *choice[1:])


def _block_sizes(of: ConstraintProblem | MassMatrix, size: int) -> tuple[int, ...]:
    """Return the sizes of the diagonal blocks."""
    return tuple(sorted(map(len, of.parts))) or (size,)  # type: ignore[union-attr]


def _groups(sizes: Sequence[int], worlds: Sequence[int]) -> list[tuple[int, bool]]:
    """Return each size of block, and whether several such matrices are factorized together."""
    number = worlds[0] if worlds else 1
    return [(size, number * count > 1) for size, count in sorted(Counter(sizes).items())]


def _form_of(M: MassMatrix) -> Form:
    """Return the form of a mass matrix."""
    return Form(type(M).__name__)
