"""Models of tasks that are read from the files of installed packages, which are not imported.

m = packaged_model("gymnasium", "rl", "envs/mujoco/assets/hopper.xml")
"""

import importlib.util
from pathlib import Path

from jaxsim.io.load import load_model
from jaxsim.model.model import Model
from jaxsim.optional import MissingExtra, install_hint
from jaxsim.spec import Spec


def packaged_model(package: str, extra: str, path: str, *, memory: int = 0) -> Model:
    """Return a model from a file of an installed package.

    Args:
      package: name of the package.
      extra: the extra that installs it.
      path: path of the file in the package.
      memory: how many numbers a task remembers, in `userdata`.

    Raises:
      MissingExtra: the package is not installed; the message gives the command that installs it.
    """
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"this needs the models of {package}; {install_hint(extra)}")
    spec = Spec.from_file(Path(found.submodule_search_locations[0]) / path)
    spec.at("size").set("nuserdata", memory)
    return load_model(spec)
