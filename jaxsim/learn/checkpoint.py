"""Checkpoints of a training, by orbax: the whole state, written under another name first.

runs/hopper/checkpoints/50176/
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.errors import InputError, Place, Problem
from jaxsim.extra import needed

orbax = needed("orbax.checkpoint", "rl")


class Checkpoints:
    """The checkpoints of a run.

    Args:
      folder: where they are.
      keep: how many of the last ones stay.
    """

    def __init__(self, folder: Path, keep: int = 1):
        options = orbax.CheckpointManagerOptions(
            max_to_keep=keep, enable_async_checkpointing=False, create=True
        )
        self.folder = folder.absolute()
        self._manager = orbax.CheckpointManager(
            self.folder, options=options, item_handlers=orbax.StandardCheckpointHandler()
        )

    def steps(self) -> list[int]:
        """The steps at which there are checkpoints, in order."""
        return sorted(self._manager.all_steps())

    def save(self, step: int, state: Any) -> None:
        """Writes the state of a step; nothing is left of it when this fails."""
        arrays = {name: np.asarray(_plain(x)) for name, x in _named(state).items()}
        self._manager.save(step, args=orbax.args.StandardSave(arrays))

    def restore(self, like: Any, step: int | None = None) -> tuple[int, Any]:
        """A state that was saved.

        Args:
          like: a state of the same form, arrays or their shapes.
          step: of the checkpoint; None: the last one.

        Returns:
          Its step and the state.

        Raises:
          InputError: there is no such checkpoint, or it has another form.
        """
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            have = f"there are {', '.join(map(str, steps))}" if steps else "there are none"
            what = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise InputError(Problem(Place(str(self.folder)), f"{what}; {have}"))
        step = steps[-1] if step is None else step
        shapes = {name: jax.eval_shape(_plain, x) for name, x in _named(like).items()}
        found = self._manager.item_metadata(step)
        if {n: tuple(x.shape) for n, x in found.items()} != {n: x.shape for n, x in shapes.items()}:
            raise InputError(
                Problem(Place(str(self.folder)), f"checkpoint {step} is of other settings")
            )
        saved = self._manager.restore(step, args=orbax.args.StandardRestore(shapes))
        leaves, form = jax.tree.flatten_with_path(like)
        restored = [_again(x, saved.get(jax.tree_util.keystr(p))) for p, x in leaves]
        return step, jax.tree.unflatten(form, restored)


def _named(state: Any) -> dict[str, Any]:
    """The leaves by their path, but those of size zero, which orbax refuses."""
    leaves = jax.tree.leaves_with_path(state)
    return {jax.tree_util.keystr(path): x for path, x in leaves if x.size}


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _plain(x: Any) -> Any:
    """A leaf as numbers."""
    return jax.random.key_data(x) if _is_key(x) else x


def _again(like: Any, saved: Any) -> jax.Array:
    """The leaf that was saved as numbers; one of size zero was not."""
    if saved is None:
        return jnp.zeros(like.shape, like.dtype)
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(saved))
    return jnp.asarray(saved)
