"""OBJ files (Wavefront): points, normals, texture coordinates, and the polygons over them.

As in MuJoCo, the points of the whole file count, and the faces of its first group or object that
has any; materials, lines and curves are skipped. The file is never walked line by line: its lines
are sorted by keyword, and the numbers of each kind are read at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from jaxsim.assets.read.polygon import triangulate
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_BLANK = 32  # the codes of space, tab and line ends are not above it
_BOM = b"\xef\xbb\xbf"


def read_obj(data: bytes) -> Surface:
    """Read an OBJ file.

    Coordinates have single precision, as in MuJoCo. Texture coordinates are turned upside down,
    which makes their second one point down in the image. Where a corner has none, or one that does
    not exist, all are dropped, as MuJoCo does.

    Raises:
      AssetError: a line cannot be read, or a face refers to what the file does not have.
    """
    lines = _Lines(_clean(data))
    vertex = _single(lines.numbers("v", 3))
    normal = _single(lines.numbers("vn", 3))
    texcoord = _single(lines.numbers("vt", 2))
    corners = _corners(lines, len(vertex), len(texcoord), len(normal))
    triangle = triangulate(vertex[corners.vertex], corners.count)
    parts: dict[str, np.ndarray] = {}
    if len(normal) and len(triangle):
        corners.check_normals(len(normal))
        parts |= {"normal": _unit(normal), "face_normal": corners.normal[triangle].astype(np.int32)}
    if corners.has_texcoord(len(texcoord)):
        upright = texcoord * [1, -1] + [0, 1]
        face_texcoord = corners.texcoord[triangle].astype(np.int32)
        parts |= {"texcoord": _single(upright).astype(np.float64), "face_texcoord": face_texcoord}
    face = corners.vertex[triangle].astype(np.int32)
    return Surface(vertex=vertex.astype(np.float64), face=face, **parts)


def _clean(data: bytes) -> bytes:
    """Return the text with plain line ends, without comments, indents and continued lines."""
    data = data.removeprefix(_BOM)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\\" in data:
        data = re.sub(rb"\\[ \t]*\n", b" ", data)
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    if data[:1].isspace() or b"\n " in data or b"\n\t" in data:
        data = re.sub(rb"(?m)^[ \t]+", b"", data)
    return data if data.endswith(b"\n") else data + b"\n"


def _single(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused later
        return numbers.astype(np.float32)


def _unit(normal: np.ndarray) -> np.ndarray:
    wide = normal.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(length > 0, length, 1.0)


class _Lines:
    """The lines of a file, by keyword."""

    def __init__(self, text: bytes):
        self.bytes = np.frombuffer(text, np.uint8)
        end = np.flatnonzero(self.bytes == ord("\n")) + 1
        self.start = np.concatenate([[0], end[:-1]])
        self.length = np.diff(end, prepend=0)
        last = len(self.bytes) - 1
        self._letters = [self.bytes[np.minimum(self.start + i, last)] for i in range(3)]

    def of(self, keyword: str) -> np.ndarray:
        """Which lines begin with a keyword, (nline,)."""
        after = self._letters[len(keyword)]
        found = (after == ord(" ")) | (after == ord("\t"))
        for letter, letters in zip(keyword, self._letters, strict=False):
            found &= letters == ord(letter)
        return found

    def rest(self, chosen: np.ndarray, skip: int) -> _Rest:
        """What follows the first `skip` letters of chosen lines."""
        numbers = np.flatnonzero(chosen)
        if not len(numbers):
            return _Rest(b"", np.zeros(0, int), np.zeros(0, int))
        # They mostly follow each other; only what lies between the first and the last is touched.
        span = slice(numbers[0], numbers[-1] + 1)
        begin = self.start[span][0]
        text = self.bytes[begin : begin + self.length[span].sum()].copy()
        for i in range(skip):
            text[self.start[chosen] - begin + i] = _BLANK
        if not np.all(chosen[span]):
            text = text[np.repeat(chosen[span], self.length[span])]
        length = self.length[chosen]
        words = _count(_begins(text), np.cumsum(length) - length)
        return _Rest(text.tobytes(), words, numbers + 1)

    def numbers(self, keyword: str, width: int) -> np.ndarray:
        """Return the first `width` numbers of each line with a keyword, 0 for missing ones, (n,
        width)."""
        rest = self.rest(self.of(keyword), len(keyword))
        try:
            values = _numbers(rest.text, np.float64, rest.words.sum())
        except ValueError:
            line, word = rest.first_unreadable(float)
            message = f"line {line} of the OBJ file: '{word}' is not a number"
            raise AssetError(message) from None
        if np.all(rest.words == width):
            return values.reshape(-1, width)
        place = (np.cumsum(rest.words) - rest.words)[:, None] + np.arange(width)
        given = np.arange(width) < rest.words[:, None]
        return np.append(values, 0.0)[np.where(given, place, -1)]


@dataclass(frozen=True, eq=False)
class _Rest:
    """Some lines without their keywords.

    Attributes:
      text: the lines, one after the other.
      words: number of words on each of them, (nline,).
      numbers: their line numbers in the file, (nline,).
    """

    text: bytes
    words: np.ndarray
    numbers: np.ndarray

    def line(self, word: int) -> int:
        """Return the number of the line that has a word."""
        return int(self.numbers[np.searchsorted(np.cumsum(self.words), word, side="right")])

    def first_unreadable(self, reader: type) -> tuple[int, str]:
        """Return the line and text of the first word that is not a number; runs only to name a
        fault."""
        for i, word in enumerate(_words(self.text)):
            try:
                reader(word)
            except ValueError:
                return self.line(i), word.decode(errors="replace")
        return self.line(0), ""


def _numbers(text: bytes, dtype: type, count: int) -> np.ndarray:
    """Return the numbers of a text; ValueError if one of its `count` words is none, or more than
    one."""
    if count == 0:
        return np.zeros(0, dtype)
    values: np.ndarray = np.fromstring(text, dtype, sep=" ")
    if len(values) != count:  # `1-2` reads as two
        raise ValueError
    return values


def _words(text: bytes) -> list[bytes]:
    """Return the words of a text, which all control characters part, as in `_begins`."""
    return re.findall(rb"[^\x00- ]+", text)


def _begins(text: np.ndarray) -> np.ndarray:
    """Return whether a word begins at each byte of a text that begins with a blank."""
    blank = text <= _BLANK
    return np.concatenate([[False], blank[:-1] & ~blank[1:]])


def _count(marks: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """How many of some bytes are marked, for each stretch of a text, (nbegin,)."""
    # Bytes are added fastest as bytes; that is wrong only where there are more than they can count.
    few = np.add.reduceat(marks.view(np.uint8), begin, dtype=np.uint8).astype(np.int64)
    if few.sum() == np.count_nonzero(marks):
        return few
    return np.add.reduceat(marks, begin, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Corners:
    """The corners of the faces: what they refer to, from 0, and -1 for nothing.

    Attributes:
      rest: where they were read.
      vertex, texcoord, normal: indices of each corner, (ncorner,).
    """

    rest: _Rest
    vertex: np.ndarray
    texcoord: np.ndarray
    normal: np.ndarray

    @property
    def count(self) -> np.ndarray:
        """Return the corners of each face, (nface,)."""
        return self.rest.words

    def check_vertices(self, number: int) -> None:
        """Refuse faces over points that the file does not have."""
        wrong = np.flatnonzero((self.vertex < 0) | (self.vertex >= number))
        if len(wrong):
            word = _words(self.rest.text)[wrong[0]].decode(errors="replace")
            raise AssetError(
                f"line {self.rest.line(wrong[0])} of the OBJ file: the corner '{word}' of a face"
                f" is none of its {number} vertices, which count from 1"
            )

    def check_normals(self, number: int) -> None:
        """Refuse faces without normals in a file that has some, as MuJoCo does."""
        wrong = np.flatnonzero((self.normal < 0) | (self.normal >= number))
        if len(wrong):
            raise AssetError(
                f"line {self.rest.line(wrong[0])} of the OBJ file: a corner has no normal, but the"
                f" file has {number} of them; give all corners one, or remove the 'vn' lines"
            )

    def has_texcoord(self, number: int) -> bool:
        """Return whether there are corners, and each has texture coordinates that exist."""
        inside = (self.texcoord >= 0) & (self.texcoord < number)
        return bool(len(inside)) and bool(inside.all())


def _corners(lines: _Lines, nvertex: int, ntexcoord: int, nnormal: int) -> _Corners:
    """Read the faces, whose corners are written `v`, `v/t`, `v//n` or `v/t/n`."""
    rest = _first_group(lines)
    # With a zero for what is left out, each corner has one number more than slashes.
    spelled = rest.text
    if b"/ " in spelled or b"/\n" in spelled or b"/\t" in spelled:
        spelled = re.sub(rb"/+(?=\s)", b"", spelled)
    spelled = spelled.replace(b"//", b"/0/")
    given = _slashes(spelled) + 1
    if len(given) != rest.words.sum():  # a corner of nothing but slashes
        raise _bad_corner(rest, _first_odd(rest.text))
    if given.max(initial=0) > 3:
        raise _bad_corner(rest, int(np.argmax(given > 3)))
    try:
        values = _numbers(spelled.replace(b"/", b" "), np.int64, given.sum())
    except ValueError:
        raise _bad_corner(rest, _first_odd(rest.text)) from None
    before = _seen(lines, rest) if values.min(initial=0) < 0 else {}
    table = _table(values, given)

    def index(i: int, key: str, number: int) -> np.ndarray:
        written, seen = table[:, i], before.get(key, number)
        return np.where(written < 0, np.maximum(seen + written, -1), written - 1)

    corners = _Corners(
        rest, index(0, "v", nvertex), index(1, "vt", ntexcoord), index(2, "vn", nnormal)
    )
    corners.check_vertices(nvertex)
    return corners


def _table(values: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the numbers of each corner, 0 for those that are not given, (ncorner, 3)."""
    table = np.zeros((len(given), 3), np.int64)
    if np.all(given == given[:1]):  # as a rule all are written alike
        width = int(given.max(initial=1))
        table[:, :width] = values.reshape(-1, width)
    else:
        table[np.arange(3) < given[:, None]] = values
    return table


def _first_group(lines: _Lines) -> _Rest:
    """Return the faces of the first group or object that has a face with an area."""
    faces = lines.of("f")
    rest = lines.rest(faces, 1)
    group = np.cumsum(lines.of("g") | lines.of("o"))[faces]
    solid = np.flatnonzero(rest.words >= 3)
    if not len(solid) or group[-1] == group[0]:
        return rest
    chosen = faces.copy()
    chosen[faces] = group == group[solid[0]]
    return lines.rest(chosen, 1)


def _slashes(spelled: bytes) -> np.ndarray:
    """Return the slashes in each word, (nword,)."""
    text = np.frombuffer(spelled, np.uint8)
    begin = np.flatnonzero(_begins(text)) if len(text) else np.zeros(0, int)
    if b"/" not in spelled:
        return np.zeros(len(begin), int)
    return _count(text == ord("/"), begin)


def _seen(lines: _Lines, rest: _Rest) -> dict[str, np.ndarray]:
    """How many of each kind stand before each corner; a negative index counts back from there."""
    return {
        key: np.repeat(np.cumsum(lines.of(key))[rest.numbers - 1], rest.words)
        for key in ("v", "vt", "vn")
    }


_CORNER = re.compile(rb"[+-]?\d+(/([+-]?\d+)?){0,2}")


def _first_odd(text: bytes) -> int:
    """Place of the first word that is no corner; runs only to name a fault."""
    odd = (i for i, word in enumerate(_words(text)) if not _CORNER.fullmatch(word))
    return next(odd, 0)


def _bad_corner(rest: _Rest, word: int) -> AssetError:
    text = _words(rest.text)[word].decode(errors="replace")
    return AssetError(
        f"line {rest.line(word)} of the OBJ file: '{text}' is no corner of a face; a corner is"
        " written v, v/t, v//n or v/t/n"
    )
