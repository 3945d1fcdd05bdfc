"""Screenshot of a page without its panel, downloaded by the page."""

import io
from typing import Any

import numpy as np

from jaxsim.optional import require

_MAX_WAIT = 60.0  # longest time to wait for a page to draw [s]
_BACKGROUND = (255, 255, 255, 255)  # color of a page without a sky


def send_screenshot(client: Any, name: str = "screenshot.png") -> None:
    """Let a page draw an image of its present view, and download it.

    Args:
      client: viser's handle of the page.
      name: name of the file.
    """
    camera = client.camera
    pixels = client.get_render(
        camera.image_height, camera.image_width, transport_format="png", timeout=_MAX_WAIT
    )
    client.send_file_download(name, png_of(pixels), save_immediately=True)


def png_of(pixels: np.ndarray) -> bytes:
    """Return an image over a white background as a PNG file.

    Args:
      pixels: (height, width, 3 or 4) bytes.
    """
    image = require("PIL.Image", "view")
    picture = image.fromarray(np.asarray(pixels, np.uint8)).convert("RGBA")
    whole = image.alpha_composite(image.new("RGBA", picture.size, _BACKGROUND), picture)
    file = io.BytesIO()
    whole.convert("RGB").save(file, format="PNG")
    return file.getvalue()
