"""The text of a program, that of its physics included."""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Jaxpr, jaxprs_in_params

from jaxsim.transforms.primitive import PHYSICS_P, program_of


def program_text(function: Callable, *arguments: Any) -> str:
    """The jaxpr of a function, and the jaxpr inside of each `physics` equation."""
    return _text(jax.make_jaxpr(function)(*arguments).jaxpr)


def _text(jaxpr: Jaxpr) -> str:
    return "\n".join([str(jaxpr), *_physics_of(jaxpr)])


def _physics_of(jaxpr: Jaxpr) -> list[str]:
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive is PHYSICS_P:
            found.append(_text(program_of(equation).jaxpr))
        for inner in jaxprs_in_params(equation.params):
            found += _physics_of(inner)
    return found
