"""How a picture looks besides its model: the light at the camera, the images, what lies behind.

A Model has geoms, materials and lights. What is in `<visual>` of a file, and the pixels of its
textures, are here; each may differ between worlds (MuJoCo's documentation, XML reference: visual).
"""

from os import PathLike
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.model import Model
from jaxsim.physics.arrays.node import node
from jaxsim.spec import Spec

HEADLIGHT = {"ambient": 0.1, "diffuse": 0.4, "specular": 0.5}  # MuJoCo's defaults
ZNEAR, ZFAR = 0.01, 50.0


@node("znear", "zfar")
class Look:
    """A pytree; what it holds may be batched, for pictures of worlds that look different.

    Attributes:
      ambient, diffuse, specular: colors of the light that goes with the camera, (3,).
      background: color of what is behind everything where there is no sky, (3,).
      tex_data: pixels of all textures, (ntexdata,), bytes.
      znear, zfar: how far in front of the camera one sees from and to, in extents of the model
        (static).
    """

    ambient: jax.Array
    diffuse: jax.Array
    specular: jax.Array
    background: jax.Array
    tex_data: jax.Array
    znear: float = ZNEAR
    zfar: float = ZFAR

    for_all_worlds: ClassVar[bool] = True  # arrays/native.py: worlds may have it in common

    @classmethod
    def of(cls, m: Model, source: str | PathLike[str] | Spec | None = None) -> "Look":
        """The look of a model.

        Args:
          m: the model.
          source: the file, text or specification that it comes from, for what `<visual>` says of
            headlight and map; None: MuJoCo's defaults.
        """
        light = {name: np.full(3, value) for name, value in HEADLIGHT.items()}
        near, far = ZNEAR, ZFAR
        if source is not None:
            spec = source if isinstance(source, Spec) else _read(source)
            on = spec.setting("visual", "active", child="headlight") not in ("false", "0")
            for name in light:
                light[name] = np.array(spec.setting("visual", name, child="headlight"), float)
                light[name] = light[name] * float(on)
            near, far = (float(spec.setting("visual", n, child="map")) for n in ("znear", "zfar"))
        dtype = m.qpos0.dtype
        return cls(
            **{name: jnp.asarray(color, dtype) for name, color in light.items()},
            background=jnp.zeros(3, dtype),
            tex_data=jnp.asarray(m.structure.tex_data),
            znear=near,
            zfar=far,
        )

    def replace(self, **changes) -> "Look":
        """A changed copy."""
        return Look(**(vars(self) | changes))


def _read(source: str | PathLike[str]) -> Spec:
    text = str(source)
    return Spec.from_string(text) if text.lstrip().startswith("<") else Spec.from_file(text)
