"""A product of a pass: a value for later passes that is no field of the model."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Product(Generic[T]):
    """Attribute that is absent until a pass sets it; reading it too early raises."""

    def __init__(self, by: str, doc: str):
        """Declare a product: the name of the pass that sets it, and its meaning."""
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
