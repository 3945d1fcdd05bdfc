"""Naming what a model has and the engine has not; each stage lists its own `refusals`."""

from jaxsim.model import Model


def named(m: Model, kind: str, index: int) -> str:
    """An object for a message: its name, or its number if it has none."""
    names = m.names.get(kind, ())
    name = names[index] if index < len(names) else ""
    return f"{kind} '{name}'" if name else f"{kind} {index}"
