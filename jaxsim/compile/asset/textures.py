"""Compile textures: `tex_*`, the images of materials.

Images are used by viewers alone. An image without an installed decoder is left out: its height and
width are 0, its address is -1, and `tex_notes` gives the reason, one line for each. An image kept
by reference is left out without a note. A damaged image is a fault, as in MuJoCo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.builtin.pattern import CUBE_SIDES, color_bytes, draw_marks, draw_pattern
from jaxsim.assets.read.decode import extension
from jaxsim.assets.read.image import NoDecoder, read_png
from jaxsim.assets.read.png import is_srgb
from jaxsim.assets.source import data_uri
from jaxsim.assets.source.limits import check_limit
from jaxsim.compile.asset.files import is_in_memory, read_asset
from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.errors import AssetError
from jaxsim.spec import SpecElement

MAXGRID = 12  # largest number of cells of a grid of images

_TYPES = {"2d": 0, "cube": 1, "skybox": 2}
_COLORSPACES = {"auto": 0, "linear": 1, "sRGB": 2}
_LINEAR, _SRGB = 1, 2

_PNG, _KTX = "image/png", "image/ktx"
_MEDIA = {".png": _PNG, ".ktx": _KTX}
_SIDE_FILES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_LETTERS = "RLUDFB"  # letters of the sides, in the same order


@dataclass(frozen=True, eq=False)
class _Texture:
    """An image: its pixels, (height, width, nchannel), or None and the reason why it is left
    out."""

    pixels: np.ndarray | None
    colorspace: int
    nchannel: int
    note: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the height and width."""
        return (0, 0) if self.pixels is None else self.pixels.shape[:2]


@declare_pass(needs="read_settings assets", gives="tex")
def textures(c: Compilation) -> None:
    """Add all fields of textures; their pixels are concatenated, row by row from the top."""
    elements = c.elements["texture"]
    made = [_texture(c, element) for element in elements]
    parts = [np.zeros(0, np.uint8) if t.pixels is None else t.pixels.ravel() for t in made]
    sizes = np.array([len(part) for part in parts], np.int64)
    left_out = np.array([t.pixels is None for t in made], bool)
    c.fields.update(
        tex_type=np.array([_TYPES[e.get("type")] for e in elements], np.int32),
        tex_colorspace=np.array([t.colorspace for t in made], np.int32),
        tex_height=np.array([t.shape[0] for t in made], np.int32),
        tex_width=np.array([t.shape[1] for t in made], np.int32),
        tex_nchannel=np.array([t.nchannel for t in made], np.int32),
        tex_adr=np.where(left_out, -1, np.cumsum(sizes) - sizes).astype(np.int64),
        tex_data=np.concatenate([np.zeros(0, np.uint8), *parts]),
        ntexdata=int(sizes.sum()),
    )
    notes = [
        f"{e.place}: {e.label}: {t.note}" for e, t in zip(elements, made, strict=True) if t.note
    ]
    if notes:
        c.fields["tex_notes"] = "\n".join(notes).encode()


def _texture(c: Compilation, element: SpecElement) -> _Texture:
    """Return the image of an element; report a fault if its attributes are invalid."""
    nothing = _Texture(None, _COLORSPACES[element.get("colorspace")], int(element.get("nchannel")))
    if not element.asset_name and element.get("type") != "skybox":
        c.fault(element, "it needs a name, so that materials can refer to it")
    if not _check_grid(c, element):
        return nothing
    embed, reason = element.get("embed"), _must_be_embedded(c, element)
    if embed == "false" and reason:
        c.fault(element, f"embed='false' leaves it in its file, but {reason}; remove embed")
        return nothing
    by_reference = embed == "auto" and c.spec.setting("compiler", "passthrough") == "textures"
    if (embed == "false" or by_reference) and not reason:
        return nothing
    make = _read if element.get("builtin") == "none" else _builtin_texture
    return make(c, element) or nothing


def _must_be_embedded(c: Compilation, element: SpecElement) -> str:
    """Return the reason why the pixels must be stored in the model, as part of a sentence, or
    ""."""
    file = element.get("file")
    if element.get("builtin") != "none":
        return "it is a built-in pattern"
    if not file:
        return "it has no single file"
    if "true" in (element.get("hflip"), element.get("vflip")):
        return "it is flipped"
    if np.prod(element.get("gridsize")) > 1:
        return "it is cut from a grid"
    return "its file is in memory" if is_in_memory(c, element, file, "texture") else ""


def _check_grid(c: Compilation, element: SpecElement) -> bool:
    rows, columns = (int(n) for n in element.get("gridsize"))
    layout = element.own("gridlayout")
    if layout is not None and len(layout) != rows * columns:
        c.fault(
            element,
            f"gridlayout='{layout}' has {len(layout)} cells, gridsize='{rows} {columns}'"
            f" has {rows * columns}",
        )
        return False
    used = element.get("file") and element.get("builtin") == "none" and element.get("type") != "2d"
    if used and not (rows > 0 and columns > 0 and rows * columns <= MAXGRID):
        c.fault(element, f"gridsize='{rows} {columns}' must have from 1 to {MAXGRID} cells")
        return False
    return True


# --- generated by the compiler ---


def _builtin_texture(c: Compilation, element: SpecElement) -> _Texture | None:
    sides = 1 if element.get("type") == "2d" else CUBE_SIDES
    width = int(element.get("width"))
    height = int(element.get("height")) if sides == 1 else width
    if int(element.get("nchannel")) != 3:
        c.fault(element, f"nchannel='{element.get('nchannel')}' must be 3 for a built-in texture")
        return None
    if width < 1 or height < 1:
        needed = "width and height" if sides == 1 else "width"
        c.fault(element, f"a built-in texture of this type needs {needed}, at least 1")
        return None
    try:
        check_limit("image_bytes", 3 * sides * width * height)
    except AssetError as error:
        c.fault(element, f"{sides} times {height} x {width} pixels: {error}")
        return None
    rgb1, rgb2 = element.get("rgb1"), element.get("rgb2")
    image = draw_pattern(element.get("builtin"), sides, height, width, rgb1, rgb2)
    draw_marks(image, element.get("mark"), element.get("markrgb"), float(element.get("random")))
    colorspace = _COLORSPACES[element.get("colorspace")]
    return _Texture(image.reshape(sides * height, width, 3), colorspace, 3)


# --- read from files ---


def _read(c: Compilation, element: SpecElement) -> _Texture | None:
    flat, file = element.get("type") == "2d", element.get("file")
    sides = {attr: element.get(attr) for attr in _SIDE_FILES if element.get(attr)}
    if not file and (flat or not sides):
        c.fault(
            element, "it needs a file, or builtin with a width" + ("" if flat else ", or sides")
        )
        return None
    names = [file] if file else list(sides.values())
    kinds = {name: _media(element, name) for name in names}
    for name, kind in kinds.items():
        if kind not in (_PNG, _KTX):
            what = f"content_type='{kind}'" if kind else f"file='{name}'"
            c.fault(element, f"{what} has no supported image format; convert it to PNG, or KTX")
            return None
    nchannel = int(element.get("nchannel"))
    if not flat and (nchannel != 3 or _KTX in kinds.values()):
        c.fault(element, "a cube or skybox is made of PNG images with nchannel='3'")
        return None
    data = {}
    for name in names:
        content = read_asset(c, element, name, "texture")
        if content is None:
            return None
        data[name] = content
    if _KTX in kinds.values():
        return _ktx(c, element, data[names[0]])
    if nchannel not in (1, 3, 4):
        c.fault(element, f"nchannel='{nchannel}' is none of 1, 3, 4")
        return None
    return _decode_png(c, element, data)


def _media(element: SpecElement, name: str) -> str:
    given = element.get("content_type") or data_uri.content_type(name)
    return given or _MEDIA.get(extension(name), "")


def _ktx(c: Compilation, element: SpecElement, data: bytes) -> _Texture | None:
    """Return a KTX file unchanged, as one row of bytes, for graphics hardware."""
    if not data:
        c.fault(element, f"file='{element.get('file')}' is empty")
        return None
    if "true" in (element.get("hflip"), element.get("vflip")):
        c.fault(element, "a KTX image cannot be flipped; flip it before, or convert it to PNG")
        return None
    pixels = np.frombuffer(data, np.uint8).reshape(1, -1, 1)
    return _Texture(pixels, _COLORSPACES[element.get("colorspace")] or _LINEAR, 1)


def _decode_png(c: Compilation, element: SpecElement, data: dict[str, bytes]) -> _Texture | None:
    """Return a texture of PNG images; without pixels, and with a note, if there is no decoder."""
    nchannel = int(element.get("nchannel"))
    colorspace = _COLORSPACES[element.get("colorspace")]
    step = [-1 if element.get(attr) == "true" else 1 for attr in ("vflip", "hflip")]
    images, note = {}, ""
    for name, content in data.items():
        try:
            colorspace = colorspace or (_SRGB if is_srgb(content) else _LINEAR)
            images[name] = read_png(content, nchannel)[:: step[0], :: step[1]]
        except NoDecoder as error:
            note = f"file='{name}' is left out: {error}"
        except AssetError as error:
            c.fault(element, f"file='{name}': {error}")
            return None
    if note:
        return _Texture(None, colorspace, nchannel, note)
    pixels = _arrange_sides(c, element, images)
    return None if pixels is None else _Texture(pixels, colorspace, nchannel)


def _arrange_sides(
    c: Compilation, element: SpecElement, images: dict[str, np.ndarray]
) -> np.ndarray | None:
    """Return a single image unchanged, or the six sides of a cube stacked vertically."""
    file = element.get("file")
    if not file:
        return _read_cube_sides(c, element, images)
    image = images[file]
    if element.get("type") == "2d":
        return image
    rows, columns = (int(n) for n in element.get("gridsize"))
    side = image.shape[0] // rows
    if image.shape[:2] != (rows * side, columns * side):
        height, width = image.shape[:2]
        c.fault(
            element,
            f"file='{file}' has {height} x {width} pixels, which do not make {rows} x {columns}"
            " squares; set gridsize, or cut the image",
        )
        return None
    return image if rows == columns == 1 else _cut_grid(element, image, rows, columns, side)


def _cut_grid(
    element: SpecElement, image: np.ndarray, rows: int, columns: int, side: int
) -> np.ndarray:
    """Return the sides of a cube from the cells of a grid; sides without a cell have the first
    color."""
    layout = element.own("gridlayout")
    if layout is None:  # a layout from a class belongs to the gridsize of the class
        layout = element.get("gridlayout") if element.own("gridsize") is None else ""
    cells = image.reshape(rows, side, columns, side, 3).swapaxes(1, 2).reshape(-1, side, side, 3)
    cube = np.broadcast_to(color_bytes(element.get("rgb1")), (CUBE_SIDES, side, side, 3)).copy()
    for letter, cell in zip(layout, cells, strict=False):
        if letter in _LETTERS:
            cube[_LETTERS.index(letter)] = cell
    return cube.reshape(CUBE_SIDES * side, side, 3)


def _read_cube_sides(
    c: Compilation, element: SpecElement, images: dict[str, np.ndarray]
) -> np.ndarray | None:
    """Return the sides of a cube from separate files; missing ones have the first color."""
    side = next(iter(images.values())).shape[0]
    for name, image in images.items():
        if image.shape[:2] != (side, side):
            height, width = image.shape[:2]
            c.fault(
                element,
                f"file='{name}' has {height} x {width} pixels; the sides of a cube are squares of"
                f" the same size, here {side} x {side}",
            )
            return None
    cube = np.broadcast_to(color_bytes(element.get("rgb1")), (CUBE_SIDES, side, side, 3)).copy()
    for i, attr in enumerate(_SIDE_FILES):
        if element.get(attr):
            cube[i] = images[element.get(attr)]
    return cube.reshape(CUBE_SIDES * side, side, 3)
