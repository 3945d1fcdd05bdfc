"""Images: PNG files to arrays of bytes. Decoding takes Pillow, from the extra `images`."""

from __future__ import annotations

import importlib
import io
import struct
from typing import Any

import numpy as np

from jaxsim.errors import AssetError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {1: slice(0, 1), 3: slice(0, 3), 4: slice(0, 4)}  # of RGBA, for each count


def read_png(data: bytes, nchannel: int) -> np.ndarray:
    """Decodes a PNG image.

    Of an image in color, one channel is the red one, as in MuJoCo; a gray image has three equal
    channels. Where an image has no opacity, the fourth channel is 255. Deep images lose their low
    bits.

    Args:
      data: contents of the file.
      nchannel: 1, 3 or 4.

    Returns:
      Pixels from the top left corner, (height, width, nchannel), uint8.

    Raises:
      AssetError: it cannot be decoded, or Pillow is not installed.
    """
    if nchannel not in _CHANNELS:
        raise AssetError(f"an image has 1, 3 or 4 channels, not {nchannel}")
    if not data.startswith(_SIGNATURE):
        raise AssetError("this is no PNG image; convert it to PNG")
    if b"IEND" not in _chunks(data):
        raise AssetError("the PNG image has no end; it is cut off")
    images = _pillow()
    # What Pillow raises for damaged files is not one kind of error.
    damaged = (OSError, SyntaxError, ValueError, struct.error, images.DecompressionBombError)
    try:
        with images.open(io.BytesIO(data), formats=("PNG",)) as image:
            if image.mode.startswith("I"):  # 16 bits of gray, which converting would cut to white
                gray = images.fromarray((np.asarray(image).astype(int) >> 8).astype(np.uint8))
                pixels = np.array(gray.convert("RGBA"))
            else:
                pixels = np.array(image.convert("RGBA"))
    except damaged as error:
        raise AssetError(f"the PNG image cannot be decoded: {error}") from None
    return np.ascontiguousarray(pixels[:, :, _CHANNELS[nchannel]])


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        remedy = "pip install 'jaxsim-engine[images]'"
        raise AssetError(f"PNG images are decoded by Pillow, which is missing: {remedy}") from None


def is_srgb(data: bytes) -> bool:
    """Whether a PNG file says that its colors are sRGB, in a chunk of its own."""
    return b"sRGB" in _chunks(data)


def _chunks(data: bytes) -> list[bytes]:
    """The kinds of the chunks of a PNG file that are there in full."""
    kinds, start = [], len(_SIGNATURE)
    while start + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        start += length + 12
        if start <= len(data):
            kinds.append(kind)
    return kinds
