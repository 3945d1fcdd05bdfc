"""Instances of plugins, and the elements that they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxsim.extend.plugin import Config, Plugin
from jaxsim.spec import SpecElement


@dataclass(eq=False)
class Instance:
    """An instance of a plugin: the plugin, the given settings, and the element that defines it."""

    plugin: Plugin
    given: dict[str, str]
    element: SpecElement

    @property
    def config(self) -> Config:
        """Return all settings, with defaults for those that are not given."""
        return {key: self.given.get(key) or text for key, text in self.plugin.settings.items()}

    @cached_property
    def fault(self) -> str:
        """Return the fault in its settings, or ""; including settings that the plugin cannot
        parse."""
        try:
            fault = self.plugin.check(self.config)
            if not fault:
                self.plugin.state(self.config)
                self.plugin.params(self.config)
        except ValueError as error:
            return str(error)
        return fault


@dataclass(frozen=True, eq=False)
class Instances:
    """All instances of a model, in order of their ids.

    Attributes:
      made: the instances.
      ids: the instance of each element that names a plugin: a `<plugin>`, or an actuator or sensor
        that is one itself.
    """

    made: Sequence[Instance]
    ids: Mapping[SpecElement | None, int]

    def of(self, element: SpecElement | None) -> Instance | None:
        """Return the instance of an element that names a plugin; None for one that names none."""
        number = self.ids.get(element)
        return None if number is None else self.made[number]
