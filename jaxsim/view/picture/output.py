"""Images that a camera of a model requests by its attributes `output` and `resolution`.

MuJoCo only stores these attributes (XML reference: body/camera); here they are rendered. The sensor
`rangefinder` of a camera reports depth, distance and normals of the same rays as numbers.
"""

from collections.abc import Sequence

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.view.camera import Camera
from jaxsim.view.picking import DEFAULT_GROUPS
from jaxsim.view.picture.appearance import Look
from jaxsim.view.picture.render import Picture, render

OUTPUTS = {"rgb": 1, "depth": 2, "distance": 4, "normal": 8, "segmentation": 16}  # mjtCamOutBit


def camera_images(
    m: Model,
    d: Data,
    camera: int | str,
    *,
    look: Look | None = None,
    geomgroup: Sequence[bool] = DEFAULT_GROUPS,
    sitegroup: Sequence[bool] = DEFAULT_GROUPS,
    shadows: bool = True,
) -> Picture:
    """Return the images of a camera: those named by its `output`, with its `resolution`.

    Args:
      m, d: as for `render`.
      camera: name or id of a camera of the model.
      look, geomgroup, sitegroup, shadows: as for `render`.

    Returns:
      The images; others are None. `segmentation` gives two, the geom ids and `object`, MuJoCo's
      segmentation, which also covers sites, flexes, skins and tendons.

    Raises:
      ValueError: there is no such camera, it has no output or no resolution, or an argument of
        `render` is invalid.
    """
    number = Camera.fixed(m, camera).fixedcamid
    kinds = [name for name, bit in OUTPUTS.items() if int(m.cam_output[number]) & bit]
    if not kinds:
        raise ValueError(
            f"camera_images: camera {camera!r} has no output; name some in its attribute output, "
            "or call jaxsim.render(m, d, camera, width, height, what=...)"
        )
    size = resolution(m, number)
    if size is None:
        raise ValueError(
            f"camera_images: camera {camera!r} has no resolution; give it one in its attribute "
            "resolution, or call jaxsim.render(m, d, camera, width, height)"
        )
    kinds += ["object"] if "segmentation" in kinds else []
    return render(
        m,
        d,
        number,
        *size,
        what=kinds,
        look=look,
        geomgroup=geomgroup,
        sitegroup=sitegroup,
        shadows=shadows,
    )


def resolution(m: Model, camera: int) -> tuple[int, int] | None:
    """Return the width and height of the images of a camera [pixels]; None: it was given none (1 x
    1)."""
    width, height = (int(n) for n in m.cam_resolution[camera])
    return (width, height) if width * height > 1 else None
