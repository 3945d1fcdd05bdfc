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
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.node import node
from jaxsim.spec import Spec
from jaxsim.view.camera import AZIMUTH, ELEVATION, FOVY, Camera, default_free_camera
from jaxsim.view.picture.pyramid import Texture, pyramid, textures_of

LAYERS = 4  # surfaces behind the first that are seen through it, and in mirrors
HAZE = 0.3  # MuJoCo's default
FOG = {"fogstart": 3.0, "fogend": 10.0}
HEADLIGHT = {"ambient": 0.1, "diffuse": 0.4, "specular": 0.5}  # MuJoCo's defaults
ZNEAR, ZFAR = 0.01, 50.0


FREE = {"azimuth": AZIMUTH, "elevation": ELEVATION, "fovy": FOVY}  # of visual/global
STATIC = """
znear zfar haze_part fogstart fogend layers azimuth elevation fovy orthographic textures
""".split()


@node(*STATIC)
class Look:
    """A pytree; what it holds may be batched, for pictures of worlds that look different.

    Attributes:
      ambient, diffuse, specular: colors of the light that goes with the camera, (3,).
      background: color of what is behind everything where there is no sky, (3,).
      tex_pyramid: pixels of all textures, then those of smaller images of them (pyramid.py), bytes;
        `tex_data` are the first, and `replace(tex_data=...)` makes the others.
      haze: color of planes without end before their horizon, where there is a sky, (3,).
      fog: color of what is far away, (3,); None: there is no fog.
      znear, zfar: how far in front of the camera one sees from and to, in extents of the model
        (static).
      haze_part: part of the way to the horizon that the haze covers; 0: there is none (static).
      fogstart, fogend: where the fog begins and hides everything, in extents (static).
      layers: how many surfaces are seen behind what lets light through and in mirrors; 0: all
        surfaces are opaque and none is a mirror, which is faster (static).
      azimuth, elevation, fovy, orthographic: of the free camera that sees the whole model, as for
        `default_free_camera` (static).
      textures: where the pixels of each texture are (static).
    """

    ambient: jax.Array
    diffuse: jax.Array
    specular: jax.Array
    background: jax.Array
    tex_pyramid: jax.Array
    haze: jax.Array
    fog: jax.Array | None = None
    znear: float = ZNEAR
    zfar: float = ZFAR
    haze_part: float = HAZE
    fogstart: float = FOG["fogstart"]
    fogend: float = FOG["fogend"]
    layers: int = LAYERS
    azimuth: float = AZIMUTH
    elevation: float = ELEVATION
    fovy: float = FOVY
    orthographic: bool = False
    textures: tuple[Texture, ...] = ()

    for_all_worlds: ClassVar[bool] = True  # arrays/native.py: worlds may have it in common

    @classmethod
    def of(
        cls, m: Model, source: str | PathLike[str] | Spec | None = None, *, fog: bool = False
    ) -> "Look":
        """Return the look of a model.

        Args:
          m: the model.
          source: the file, text or specification that it comes from, for what `<visual>` says of
            headlight, map, rgba and global; None: MuJoCo's defaults.
          fog: whether there is fog. MuJoCo's renderer has it switched off at first.

        Whether surfaces are seen through others and in mirrors (`layers`) follows from the
        opacities and reflectances of the model; if these are traced, they may be anything.
        """
        light = {name: np.full(3, value) for name, value in HEADLIGHT.items()}
        near, far, haze, numbers = ZNEAR, ZFAR, HAZE, dict(FOG)
        free, flat = dict(FREE), False
        mist = {"haze": np.ones(3), "fog": np.zeros(3)}
        if source is not None:
            spec = source if isinstance(source, Spec) else _read(source)
            on = spec.setting("visual", "active", child="headlight") not in ("false", "0")
            for name in light:
                light[name] = np.array(spec.setting("visual", name, child="headlight"), float)
                light[name] = light[name] * float(on)
            names = ("znear", "zfar", "haze", *FOG)
            near, far, haze, *rest = (float(spec.setting("visual", n, child="map")) for n in names)
            numbers = dict(zip(FOG, rest, strict=True))
            for name in mist:
                mist[name] = np.array(spec.setting("visual", name, child="rgba"), float)[:3]
            free = {n: float(spec.setting("visual", n, child="global")) for n in FREE}
            flat = spec.setting("visual", "orthographic", child="global") in ("true", "1")
        dtype = m.qpos0.dtype
        return cls(
            ambient=jnp.asarray(light["ambient"], dtype),
            diffuse=jnp.asarray(light["diffuse"], dtype),
            specular=jnp.asarray(light["specular"], dtype),
            background=jnp.zeros(3, dtype),
            tex_pyramid=jnp.asarray(_pyramid_of(m.structure)),
            textures=textures_of(m.structure),
            haze=jnp.asarray(mist["haze"], dtype),
            fog=jnp.asarray(mist["fog"], dtype) if fog else None,
            znear=near,
            zfar=far,
            haze_part=haze,
            layers=LAYERS if _may_be_clear(m) else 0,
            fogstart=numbers["fogstart"],
            fogend=numbers["fogend"],
            **free,
            orthographic=flat,
        )

    def free_camera(self, m: Model) -> Camera:
        """Return the camera that sees the whole model from where its file says."""
        free = {name: getattr(self, name) for name in FREE}
        return default_free_camera(m, **free, orthographic=self.orthographic)

    @property
    def tex_data(self) -> jax.Array:
        """Return the pixels of all textures, (ntexdata,), bytes."""
        return self.tex_pyramid[..., : sum(t.pixels() for t in self.textures)]

    def replace(self, **changes) -> "Look":
        """Return a changed copy; `tex_data` may be changed as well, (..., ntexdata) bytes.

        Raises:
          ValueError: `tex_data` has another size or type.
        """
        if "tex_data" in changes:
            data = changes.pop("tex_data")
            wanted, shape = self.tex_data.shape[-1:], np.shape(data)
            dtype = getattr(data, "dtype", type(data).__name__)
            if shape[-1:] != wanted or dtype != np.uint8:
                raise ValueError(
                    f"tex_data: expected (..., {wanted[0]}) uint8, got {shape} {dtype}"
                )
            made = pyramid(self.textures, data)
            changes["tex_pyramid"] = jnp.asarray(made)
        return Look(**(vars(self) | changes))


@derived
def _pyramid_of(s: Structure) -> np.ndarray:
    return pyramid(textures_of(s), np.asarray(s.tex_data))


def _may_be_clear(m: Model) -> bool:
    """Return whether a model has mirrors or lets light through, as far as its numbers are known."""
    opacity = [m.geom_rgba, m.site_rgba, m.mat_rgba, m.flex_rgba, m.skin_rgba, m.tendon_rgba]
    if any(isinstance(x, jax.core.Tracer) for x in (*opacity, m.mat_reflectance)):
        return True
    some = [np.asarray(x)[..., 3] for x in opacity]
    clear = any(bool(np.any((x > 0) & (x < 1))) for x in some)
    images = bool(np.any(m.tex_nchannel == 4))  # with an opacity of their own
    return clear or images or bool(np.any(np.asarray(m.mat_reflectance) > 0))


def _read(source: str | PathLike[str]) -> Spec:
    text = str(source)
    return Spec.from_string(text) if text.lstrip().startswith("<") else Spec.from_file(text)
