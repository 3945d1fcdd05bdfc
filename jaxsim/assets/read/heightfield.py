"""Read height field files: gray PNG images, or MuJoCo's own binary format (XML reference,
asset/hfield).

The binary format is the number of rows and of columns as int32, then the heights row by row as
float32, all little-endian, and nothing else.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.read.decode import extension
from jaxsim.assets.read.image import read_png
from jaxsim.assets.source import data_uri
from jaxsim.errors import AssetError

_PNG = "image/png"
_BINARY = "image/vnd.mujoco.hfield"
_HEADER = 8


def read_heightfield(name: str, data: bytes, content_type: str | None = None) -> np.ndarray:
    """Return the heights in a file, in its own unit; the first row is at the lowest Y.

    Args:
      name: name of the file; `.png` is an image, all others the binary format.
      data: its contents.
      content_type: media type, which takes precedence over the name.

    Returns:
      (nrow, ncol), float32.

    Raises:
      AssetError: the file is damaged, too small, or of another kind.
    """
    kind = content_type or data_uri.content_type(name)
    kind = kind or (_PNG if extension(name) == ".png" else _BINARY)
    if kind not in (_PNG, _BINARY):
        raise AssetError(f"content_type='{kind}' is none of {_PNG}, {_BINARY}")
    if not data:
        raise AssetError("the file is empty")
    # The first row of an image is its top.
    heights = read_png(data, 1)[::-1, :, 0] if kind == _PNG else _binary(data)
    if min(heights.shape) < 2:
        raise AssetError(f"it has {heights.shape[0]} x {heights.shape[1]} heights; 2 x 2 is least")
    if not np.all(np.isfinite(heights)):
        raise AssetError("a height is not a finite number")
    return heights.astype(np.float32)


def normalize_heights(heights: np.ndarray) -> np.ndarray:
    """Return the heights normalized to [0, 1]; equal heights all become 0."""
    heights = heights.astype(np.float32) - np.float32(heights.min())
    top = heights.max()
    return heights / top if top > 0 else heights


def _binary(data: bytes) -> np.ndarray:
    if len(data) < _HEADER:
        raise AssetError(f"the file has {len(data)} bytes; its header alone takes {_HEADER}")
    nrow, ncol = (int(n) for n in np.frombuffer(data, "<i4", 2))
    if nrow < 2 or ncol < 2:
        raise AssetError(f"it claims {nrow} x {ncol} heights; 2 x 2 is least")
    if len(data) != _HEADER + 4 * nrow * ncol:
        raise AssetError(
            f"the file has {len(data)} bytes, but {nrow} x {ncol} heights take"
            f" {_HEADER + 4 * nrow * ncol}; it is truncated, or of another kind"
        )
    return np.frombuffer(data, "<f4", offset=_HEADER).reshape(nrow, ncol)
