"""Instances of plugins, and the elements that they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxsim.extend.plugin import Plugin
from jaxsim.spec import SpecElement


@dataclass(eq=False)
class Instance:
    """An instance: its plugin, its settings, and the element that has it."""

    plugin: Plugin
    config: dict[str, str]
    element: SpecElement

    @property
    def fault(self) -> str:
        """What is wrong with its settings, or ""."""
        return self.plugin.check(self.config)


@dataclass(frozen=True, eq=False)
class Instances:
    """All instances of a model, in order of their ids.

    Attributes:
      made: the instances.
      ids: the instance of each element that names a plugin: a `<plugin>`, or an actuator or sensor
        that is one.
    """

    made: Sequence[Instance]
    ids: Mapping[SpecElement | None, int]

    def of(self, element: SpecElement | None) -> Instance | None:
        """The instance of an element that names a plugin; None for one that names none."""
        number = self.ids.get(element)
        return None if number is None else self.made[number]
