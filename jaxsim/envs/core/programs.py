"""Base class of objects that hold compiled programs and pickle without them."""

from typing import Any


class Programs:
    """Object that leaves compiled programs out of pickles and copies, and compiles them afterwards.

    A subclass sets its programs in `_compile`, which its `__init__` calls last; pickles leave out
    the attributes that `_compile` sets.
    """

    def _compile(self) -> None:
        """Set the programs from the other attributes."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name not in self._programs()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compile()

    def _programs(self) -> frozenset[str]:
        """Return the names of the attributes that `_compile` sets."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        before = dict(vars(self))
        other._compile()
        return frozenset(n for n, x in vars(other).items() if before.get(n) is not x)
