"""Decode PNG files to arrays of bytes, by Pillow from the extra `images`."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from jaxsim.assets.read.png import check_png
from jaxsim.errors import AssetError
from jaxsim.optional import MissingExtra, require

_MODES = {
    1: "RGB",
    3: "RGB",
    4: "RGBA",
}  # Pillow's name of an image with that many channels, or more

# Pillow raises errors of several kinds.
_DECODE_ERRORS = (OSError, SyntaxError, ValueError, struct.error)


class NoDecoder(AssetError):
    """The package that decodes images is not installed."""


def read_png(data: bytes, nchannel: int) -> np.ndarray:
    """Return the pixels of a PNG image.

    One channel of a color image is the red one, as in MuJoCo; a gray image has three equal
    channels. Without an alpha channel, the fourth channel is 255. 16-bit images lose their low
    bits.

    Args:
      data: contents of the file.
      nchannel: 1, 3 or 4.

    Returns:
      Pixels from the top left corner, (height, width, nchannel), uint8.

    Raises:
      AssetError: it is damaged or too large.
      NoDecoder: Pillow is not installed.
    """
    if nchannel not in _MODES:
        raise AssetError(f"an image has 1, 3 or 4 channels, not {nchannel}")
    png, mode = check_png(data, nchannel), _MODES[nchannel]
    reader = _import_pillow()
    try:
        # not by Image.open, which has limits of its own
        with reader.PngImageFile(io.BytesIO(png.data)) as image:
            # 16 bits of gray, which a conversion would saturate to white
            if image.mode.startswith("I"):
                gray = (np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8)
                opaque = np.full_like(gray, 255)
                pixels = np.stack([gray, gray, gray, opaque][:nchannel], axis=-1)
            else:
                converted = image if image.mode == mode else image.convert(mode)
                pixels = np.asarray(converted)[:, :, :nchannel]
    except _DECODE_ERRORS as error:
        raise AssetError(f"the PNG image cannot be decoded: {error}") from None
    return np.ascontiguousarray(pixels)


def _import_pillow() -> Any:
    try:
        return require("PIL.PngImagePlugin", "images")
    except MissingExtra as error:
        raise NoDecoder(f"PNG images are decoded by Pillow: {error}") from None
