"""Decide whether a limit is active: by its flag, or because its range is not empty."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.spec import SpecElement


def is_limited(
    c: Compilation,
    element: SpecElement,
    flag: str,
    attr: str,
    given: np.ndarray | None = None,
    *,
    rising: bool = True,
    decided: bool = False,
) -> bool:
    """Return whether a limit is active: by its flag, or for `auto` if the lower bound is below the
    upper.

    Args:
      c: the compilation.
      element: the element with the limit.
      flag: the attribute that is `true`, `false` or `auto`; absent it is `auto`.
      attr: the attribute of the range.
      given: the range, (2,), if it differs from the attribute.
      rising: whether an active limit needs a lower bound below the upper.
      decided: whether the range needs no flag even without `autolimits`.
    """
    keyword = element.get(flag) or "auto"
    low, high = np.array(element.get(attr), float) if given is None else given
    automatic = keyword == "auto"
    undecided = automatic and not decided and not c.settings_of(element).autolimits
    if undecided and (low, high) != (0.0, 0.0):
        c.fault(
            element,
            f"it has {attr} but not {flag}, and autolimits is off; "
            f"write {flag}='true' or 'false', or remove {attr}",
        )
    on = keyword == "true" or (automatic and bool(low < high))
    if on and rising and not low < high:
        c.fault(element, f"{attr}='{low:g} {high:g}' must rise, because {flag} is on")
    return on
