"""Check new values of fields against their declarations, and describe values in messages."""

from collections.abc import Mapping

import jax
import numpy as np

from jaxsim.model.record.fields import FIELD_KINDS, Declared, Field


def check_field(name: str, field: Field, value, old, sizes: Mapping[str, int]) -> None:
    """Raise ValueError if a new value of a field does not have the declared shape.

    Only values with a shape are checked: JAX's transformations replace arrays by axes, flags and
    other objects. A number has shape () if it replaces an array.

    Args:
      name: name of the field.
      field: its declaration.
      value: the new value; leading batch axes may precede the declared shape.
      old: the value that it replaces.
      sizes: sizes of the symbols in the declaration; a symbol that is missing keeps its old size.
    """
    if field.static:
        if isinstance(value, jax.Array | np.ndarray):
            raise ValueError(
                f"{name}: is static, it decides the shape of the program: expected a Python value, "
                f"got {brief_value(value)}"
            )
        return
    shape = _shape_of(value, old)
    if shape is None:
        return
    if getattr(getattr(value, "dtype", None), "kind", "") in NO_NUMBERS:
        raise ValueError(f"{name}: expected real numbers, got {brief_value(value)}")
    if field.nested is not None:
        raise ValueError(
            f"{name}: expected a {field.nested.__name__}, got {brief_value(value)}; {field.remedy}"
        )
    expected = _expected_shape(field, old, sizes)
    have = shape[max(len(shape) - len(expected), 0) :]
    if len(have) < len(expected) or any(
        n not in (None, k) for n, k in zip(expected, have, strict=True)
    ):
        raise ValueError(
            f"{name}: expected shape {_format_shape(field, expected)}, with any leading axes of a "
            f"batch; got {brief_value(value)}"
        )


def brief_value(value) -> str:
    """Return a value as short text: the type and shape of an array instead of its numbers."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    is_record = isinstance(getattr(type(value), "fields", None), Declared)  # its text is short
    return text if is_record or len(text) <= _MAX_BRIEF_CHARS else text[:_MAX_BRIEF_CHARS] + "..."


def _shape_of(value, old) -> tuple[int, ...] | None:
    """Return the shape of an array or number; None for anything else."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return tuple(value.shape)
    if isinstance(value, int | float) and not isinstance(value, bool) and hasattr(old, "dtype"):
        return ()
    return None


def _expected_shape(field: Field, old, sizes: Mapping[str, int]) -> tuple[int | None, ...]:
    """Return the expected shape; None for an unknown size."""
    own = len(field.shape)
    rank = own + len(FIELD_KINDS[field.kind])
    before = tuple(old.shape[-rank:]) if rank and hasattr(old, "dtype") else ()
    known = before[:own] if len(before) == rank else (None,) * own
    items = (
        n if isinstance(n, int) else sizes.get(n, k)
        for n, k in zip(field.shape, known, strict=True)
    )
    return (*items, *FIELD_KINDS[field.kind])


def _format_shape(field: Field, expected: tuple[int | None, ...]) -> str:
    """Return a shape as text, with the symbol of an unknown size."""
    names = (*field.shape, *FIELD_KINDS[field.kind])
    sizes = [str(n) if k is None else str(k) for n, k in zip(names, expected, strict=True)]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


NO_NUMBERS = frozenset("cOSUMm")  # numpy kinds that are not real: complex, object, text, date
_MAX_BRIEF_CHARS = 60  # characters of a value that is no array
