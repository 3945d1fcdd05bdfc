"""The section "Physics": options of the running model, `m.opt`.

Real numbers are traced, so that the compiled step serves all their values; choices, limits and
flags are static, and the next step compiles. An option that the engine rejects is set back.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsim.enums import ConeType, DisableBit, IntegratorType, SolverType
from jaxsim.model.model import Model

# Least and largest value, and the step of the arrows of the field.
_NUMBERS = {
    "timestep": (1e-6, 1.0, 1e-4),
    "impratio": (1e-3, 1e6, 0.1),
    "density": (0.0, 1e5, 0.1),
    "viscosity": (0.0, 1e5, 1e-5),
}
_VECTORS = ("gravity", "wind")
_MAX_COMPONENT = 1e4  # limit on the components of a vector
_COUNTS = {"iterations": 1000, "ls_iterations": 1000, "noslip_iterations": 1000}
_CHOICES = {"integrator": IntegratorType, "cone": ConeType, "solver": SolverType}
_FLAGS = (
    *(DisableBit.CONTACT, DisableBit.EQUALITY, DisableBit.LIMIT, DisableBit.FRICTIONLOSS),
    *(DisableBit.GRAVITY, DisableBit.SPRING, DisableBit.DAMPER, DisableBit.ACTUATION),
    *(DisableBit.CLAMPCTRL, DisableBit.WARMSTART),
)
_COMPILES = "the next step compiles"

# Called with the name of an option, its new value, and a function for the error if it is rejected.
ChangeOption = Callable[[str, Any, Callable[[BaseException], None]], None]


def add_physics(gui: Any, m: Model, change: ChangeOption) -> None:
    """Add the options to the panel, collapsed."""
    panel = _OptionPanel(gui, m, change)
    with gui.add_folder("Physics", expand_by_default=False, order=9.5):
        for name, bounds in _NUMBERS.items():
            panel.number(name, *bounds)
        for name in _VECTORS:
            panel.vector(name)
        for name, kind in _CHOICES.items():
            panel.choice(name, kind)
        for name, most in _COUNTS.items():
            panel.count(name, most)
        with gui.add_folder("Flags", expand_by_default=False):
            for bit in _FLAGS:
                panel.flag(bit)


class _OptionPanel:
    """Controls of options, each with its present value."""

    def __init__(self, gui: Any, m: Model, change: ChangeOption):
        self._gui, self._opt, self._change = gui, m.opt, change
        self._flags = int(m.opt.disableflags)

    def number(self, name: str, low: float, high: float, step: float) -> None:
        """Add a real number."""
        # without the rounding errors of single precision
        value = float(f"{float(getattr(self._opt, name)):.6g}")
        doc = type(self._opt).fields[name].doc
        bounds = {"min": min(low, value), "max": max(high, value), "step": step}
        handle = self._gui.add_number(name, value, **bounds, hint=doc)
        self._follow(handle, name, lambda value: float(value))

    def vector(self, name: str) -> None:
        """Add a vector."""
        value = np.round(np.asarray(getattr(self._opt, name), float), 6)
        most = max(_MAX_COMPONENT, float(np.abs(value).max()))
        doc = type(self._opt).fields[name].doc
        handle = self._gui.add_vector3(
            name, tuple(value.tolist()), min=(-most,) * 3, max=(most,) * 3, step=0.01, hint=doc
        )
        self._follow(handle, name, lambda value: np.array(value, float))

    def count(self, name: str, most: int) -> None:
        """Add a limit of an iteration."""
        value, doc = int(getattr(self._opt, name)), type(self._opt).fields[name].doc
        handle = self._gui.add_number(
            name, value, min=0, max=max(most, value), step=1, hint=f"{doc}; {_COMPILES}"
        )
        self._follow(handle, name, lambda value: int(value))

    def choice(self, name: str, kind: Any) -> None:
        """Add one of an enumeration."""
        names = [k.name.lower() for k in kind]
        value = kind(int(getattr(self._opt, name))).name.lower()
        handle = self._gui.add_dropdown(name, names, initial_value=value, hint=_COMPILES)
        self._follow(handle, name, lambda value: int(kind[value.upper()]))

    def flag(self, bit: DisableBit) -> None:
        """Add a feature that a flag disables."""
        enabled = not self._flags & bit
        handle = self._gui.add_checkbox(str(bit.name).lower(), enabled, hint=_COMPILES)

        def flags(value: bool) -> int:
            self._flags = self._flags & ~bit if value else self._flags | bit
            return int(self._flags)

        self._follow(handle, "disableflags", flags)

    def _follow(self, handle: Any, name: str, option: Callable[[Any], Any]) -> None:
        """Change an option when its control changes, and set the control back if that fails."""
        accepted = [handle.value]

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is None:  # for changes made by the program itself
                return
            before, value = accepted[0], handle.value
            accepted[0] = value

            def failed(error: BaseException) -> None:
                accepted[0] = handle.value = before
                option(before)
                event.client.add_notification(f"{name} is unchanged", str(error)[:1000])

            self._change(name, option(value), failed)
