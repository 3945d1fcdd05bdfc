"""A product of a pass: what it makes for later passes and no field of the model holds."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Product(Generic[T]):
    """An attribute that is absent until a pass gives it, and says so when it is read too early."""

    def __init__(self, by: str, doc: str):
        """Declare it: the name of the pass that gives it, and what it is."""
        self.by = by
        self.doc = self.__doc__ = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, c: None, owner: type) -> Self: ...

    @overload
    def __get__(self, c: object, owner: type) -> T: ...

    def __get__(self, c: Any, owner: type) -> Any:
        if c is None:
            return self
        if self.name not in c.__dict__:
            raise AssertionError(f"c.{self.name} is read before the pass '{self.by}' has made it")
        return c.__dict__[self.name]

    def __set__(self, c: Any, value: T) -> None:
        c.__dict__[self.name] = value
