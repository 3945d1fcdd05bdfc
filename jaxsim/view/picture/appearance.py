"""Appearance settings of an image: headlight, textures, background, haze and fog.

A Model has geoms, materials and lights. The settings of `<visual>` in a file, and the pixels of its
textures, are stored here; each may differ between worlds (MuJoCo's documentation, XML reference:
visual).
"""

from os import PathLike
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.node import node
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.spec import Spec
from jaxsim.view.camera import (
    DEFAULT_AZIMUTH,
    DEFAULT_ELEVATION,
    DEFAULT_FOVY,
    Camera,
    default_free_camera,
)
from jaxsim.view.picture.pyramid import Texture, pyramid, textures_of

_MAX_LAYERS = 4  # surfaces behind the first that are visible through it, and in mirrors
_DEFAULT_HAZE = 0.3  # MuJoCo's default
_DEFAULT_FOG = {"fogstart": 3.0, "fogend": 10.0}
_DEFAULT_HEADLIGHT = {"ambient": 0.1, "diffuse": 0.4, "specular": 0.5}  # MuJoCo's defaults
ZNEAR, ZFAR = 0.01, 50.0


_FREE_CAMERA_DEFAULTS = {
    "azimuth": DEFAULT_AZIMUTH,
    "elevation": DEFAULT_ELEVATION,
    "fovy": DEFAULT_FOVY,
}  # of visual/global
_STATIC_FIELDS = """
znear zfar haze_part fogstart fogend layers azimuth elevation fovy orthographic textures
""".split()


@node(*_STATIC_FIELDS)
class Look:
    """Appearance settings; a pytree whose arrays may be batched, for worlds of different
    appearance.

    Attributes:
      ambient, diffuse, specular: colors of the headlight, (3,).
      background: background color without a skybox, (3,).
      tex_pyramid: pixels of all textures, followed by their mipmaps (pyramid.py), bytes; `tex_data`
        is the first part, and `replace(tex_data=...)` recomputes the rest.
      haze: color of infinite planes near the horizon, with a skybox, (3,).
      fog: color of distant surfaces, (3,); None: no fog.
      znear, zfar: near and far clipping distances, in extents of the model (static).
      haze_part: fraction of the distance to the horizon covered by haze; 0: none (static).
      fogstart, fogend: distances where the fog begins and where it is opaque, in extents (static).
      layers: number of surfaces visible through transparent ones and in mirrors; 0: all surfaces
        are opaque and without reflection, which is faster (static).
      azimuth, elevation, fovy, orthographic: of the default free camera, as for
        `default_free_camera` (static).
      textures: addresses and sizes of the textures (static).
    """

    ambient: Float[jax.Array, "3"]
    diffuse: Float[jax.Array, "3"]
    specular: Float[jax.Array, "3"]
    background: Float[jax.Array, "3"]
    tex_pyramid: Int[jax.Array, "bytes"]
    haze: Float[jax.Array, "3"]
    fog: Float[jax.Array, "3"] | None = None
    znear: float = ZNEAR
    zfar: float = ZFAR
    haze_part: float = _DEFAULT_HAZE
    fogstart: float = _DEFAULT_FOG["fogstart"]
    fogend: float = _DEFAULT_FOG["fogend"]
    layers: int = _MAX_LAYERS
    azimuth: float = DEFAULT_AZIMUTH
    elevation: float = DEFAULT_ELEVATION
    fovy: float = DEFAULT_FOVY
    orthographic: bool = False
    textures: tuple[Texture, ...] = ()

    for_all_worlds: ClassVar[bool] = True  # transforms/layout.py: may be shared by all worlds

    @classmethod
    def of(
        cls, m: Model, source: str | PathLike[str] | Spec | None = None, *, fog: bool = False
    ) -> "Look":
        """Return the appearance settings of a model.

        Whether surfaces are seen through others and in mirrors (`layers`) follows from the
        opacities and reflectances of the model; if these are traced, it is assumed.

        Args:
          m: the model.
          source: the file, text or Spec of the model, for its `<visual>` settings headlight, map,
            rgba and global; None: MuJoCo's defaults.
          fog: whether there is fog. It is off by default in MuJoCo's renderer.
        """
        light = {name: np.full(3, value) for name, value in _DEFAULT_HEADLIGHT.items()}
        znear, zfar, haze, fog_distances = ZNEAR, ZFAR, _DEFAULT_HAZE, dict(_DEFAULT_FOG)
        free_camera, orthographic = dict(_FREE_CAMERA_DEFAULTS), False
        haze_and_fog = {"haze": np.ones(3), "fog": np.zeros(3)}
        if source is not None:
            spec = source if isinstance(source, Spec) else _read(source)
            on = spec.setting("visual", "active", child="headlight") not in ("false", "0")
            for name in light:
                light[name] = np.array(spec.setting("visual", name, child="headlight"), float)
                light[name] = light[name] * float(on)
            names = ("znear", "zfar", "haze", *_DEFAULT_FOG)
            znear, zfar, haze, *rest = (
                float(spec.setting("visual", n, child="map")) for n in names
            )
            fog_distances = dict(zip(_DEFAULT_FOG, rest, strict=True))
            for name in haze_and_fog:
                haze_and_fog[name] = np.array(spec.setting("visual", name, child="rgba"), float)[:3]
            free_camera = {
                n: float(spec.setting("visual", n, child="global")) for n in _FREE_CAMERA_DEFAULTS
            }
            orthographic = spec.setting("visual", "orthographic", child="global") in ("true", "1")
        dtype = m.qpos0.dtype
        return cls(
            ambient=jnp.asarray(light["ambient"], dtype),
            diffuse=jnp.asarray(light["diffuse"], dtype),
            specular=jnp.asarray(light["specular"], dtype),
            background=jnp.zeros(3, dtype),
            tex_pyramid=jnp.asarray(_pyramid_of(m.structure)),
            textures=textures_of(m.structure),
            haze=jnp.asarray(haze_and_fog["haze"], dtype),
            fog=jnp.asarray(haze_and_fog["fog"], dtype) if fog else None,
            znear=znear,
            zfar=zfar,
            haze_part=haze,
            layers=_MAX_LAYERS if _may_be_clear(m) else 0,
            fogstart=fog_distances["fogstart"],
            fogend=fog_distances["fogend"],
            **free_camera,
            orthographic=orthographic,
        )

    def free_camera(self, m: Model) -> Camera:
        """Return the camera that sees the whole model from the direction set in its file."""
        free = {name: getattr(self, name) for name in _FREE_CAMERA_DEFAULTS}
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


@cache_by_structure
def _pyramid_of(s: Structure) -> np.ndarray:
    return pyramid(textures_of(s), np.asarray(s.tex_data))


def _may_be_clear(m: Model) -> bool:
    """Return whether a model may have mirrors or transparent surfaces, as far as values are
    known."""
    opacity = [m.geom_rgba, m.site_rgba, m.mat_rgba, m.flex_rgba, m.skin_rgba, m.tendon_rgba]
    if any(isinstance(x, jax.core.Tracer) for x in (*opacity, m.mat_reflectance)):
        return True
    some = [np.asarray(x)[..., 3] for x in opacity]
    clear = any(bool(np.any((x > 0) & (x < 1))) for x in some)
    images = bool(np.any(m.tex_nchannel == 4))  # textures with an alpha channel
    return clear or images or bool(np.any(np.asarray(m.mat_reflectance) > 0))


def _read(source: str | PathLike[str]) -> Spec:
    text = str(source)
    return Spec.from_string(text) if text.lstrip().startswith("<") else Spec.from_file(text)
