"""Declaration of a compiler pass: a function of one `Compilation`, with its needs and results.

    @declare_pass(needs="assets bodies", gives="site")
    def sites(c: Compilation) -> None: ...

It needs the passes whose results it reads. It gives fields, named by their first word (`body` for
`body_mass`; sizes belong to the objects they count), kinds of objects (`camera`), products
(products.py), `opt`, `stat`, and `spec` for a change of the tree. The tests compare these
declarations with a compiler run.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxsim.compile.context import Compilation


class Pass:
    """One pass, called as the function it was made from.

    Attributes:
      name: its name in other passes' needs.
      needs: names of the passes that must have run.
      gives: what it adds or changes.
    """

    def __init__(self, run: Callable[[Compilation], None], needs: str, gives: str):
        self._run = run
        self.name = run.__name__
        self.needs = frozenset(needs.split())
        self.gives = frozenset(gives.split())
        self.__doc__ = run.__doc__

    def __call__(self, c: Compilation) -> None:
        """Run the pass."""
        self._run(c)

    def __repr__(self) -> str:
        return f"<pass {self.name}>"


def declare_pass(
    *, needs: str = "", gives: str = ""
) -> Callable[[Callable[[Compilation], None]], Pass]:
    """Return a decorator that declares a pass; names are separated by spaces."""
    return lambda run: Pass(run, needs, gives)
