"""Read OBJ files (Wavefront): points, normals, texture coordinates, and the polygons over them.

As in MuJoCo, the points of the whole file are read, and the faces of its first group or object that
has any; materials and curves are skipped. There is no loop over lines: lines are grouped by
keyword, and the numbers of each kind are parsed at once. `read_obj_lines` reads the polylines of a
file, which define a rod.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jaxsim.assets.read.polygon import triangulate
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_BLANK = 32  # blanks, tabs and line ends have codes up to this one
_BOM = b"\xef\xbb\xbf"


def read_obj(data: bytes) -> Surface:
    """Return the surface in an OBJ file.

    Coordinates have single precision, as in MuJoCo. Texture coordinates are flipped vertically, so
    that the second one points down in the image. If a corner has none, or an invalid one, all are
    dropped, as in MuJoCo.

    Raises:
      AssetError: a line cannot be parsed, or a face has an invalid index.
    """
    lines = _Lines(_strip_comments(data))
    vertex = _to_single_precision(lines.numbers("v", 3))
    normal = _to_single_precision(lines.numbers("vn", 3))
    texcoord = _to_single_precision(lines.numbers("vt", 2))
    corners = _corners(lines, len(vertex), len(texcoord), len(normal))
    triangle = triangulate(vertex[corners.vertex], corners.count)
    parts: dict[str, np.ndarray] = {}
    if len(normal) and len(triangle):
        corners.check_normals(len(normal))
        parts |= {
            "normal": _normalize_normals(normal),
            "face_normal": corners.normal[triangle].astype(np.int32),
        }
    if corners.has_texcoord(len(texcoord)):
        upright = texcoord * [1, -1] + [0, 1]
        face_texcoord = corners.texcoord[triangle].astype(np.int32)
        parts |= {
            "texcoord": _to_single_precision(upright).astype(np.float64),
            "face_texcoord": face_texcoord,
        }
    face = corners.vertex[triangle].astype(np.int32)
    return Surface(vertex=vertex.astype(np.float64), face=face, **parts)


def _strip_comments(data: bytes) -> bytes:
    """Return the text with plain line ends, without comments, indentation and continued lines."""
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


def _to_single_precision(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # overflow becomes infinite, and is reported later
        return numbers.astype(np.float32)


def _normalize_normals(normal: np.ndarray) -> np.ndarray:
    wide = normal.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(length > 0, length, 1.0)


class _Lines:
    """The lines of a file, grouped by keyword."""

    def __init__(self, text: bytes):
        self.bytes = np.frombuffer(text, np.uint8)
        end = np.flatnonzero(self.bytes == ord("\n")) + 1
        self.start = np.concatenate([[0], end[:-1]])
        self.length = np.diff(end, prepend=0)
        last = len(self.bytes) - 1
        self._letters = [self.bytes[np.minimum(self.start + i, last)] for i in range(3)]

    def of(self, keyword: str) -> np.ndarray:
        """Return which lines begin with a keyword, bool (nline,)."""
        after = self._letters[len(keyword)]
        found = (after == ord(" ")) | (after == ord("\t"))
        for letter, letters in zip(keyword, self._letters, strict=False):
            found &= letters == ord(letter)
        return found

    def rest(self, chosen: np.ndarray, skip: int) -> _Rest:
        """Return the rest of selected lines after the first `skip` characters."""
        numbers = np.flatnonzero(chosen)
        if not len(numbers):
            return _Rest(b"", np.zeros(0, int), np.zeros(0, int))
        # They are mostly consecutive; only the range from the first to the last is copied.
        span = slice(numbers[0], numbers[-1] + 1)
        begin = self.start[span][0]
        text = self.bytes[begin : begin + self.length[span].sum()].copy()
        for i in range(skip):
            text[self.start[chosen] - begin + i] = _BLANK
        if not np.all(chosen[span]):
            text = text[np.repeat(chosen[span], self.length[span])]
        length = self.length[chosen]
        words = _count(_word_starts(text), np.cumsum(length) - length)
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
        word_index = (np.cumsum(rest.words) - rest.words)[:, None] + np.arange(width)
        given = np.arange(width) < rest.words[:, None]
        return np.append(values, 0.0)[np.where(given, word_index, -1)]


@dataclass(frozen=True, eq=False)
class _Rest:
    """Selected lines without their keywords.

    Attributes:
      text: the concatenated lines.
      words: number of words on each of them, (nline,).
      numbers: their line numbers in the file, (nline,).
    """

    text: bytes
    words: np.ndarray
    numbers: np.ndarray

    def line(self, word: int) -> int:
        """Return the line number of a word."""
        return int(self.numbers[np.searchsorted(np.cumsum(self.words), word, side="right")])

    def first_unreadable(self, reader: type) -> tuple[int, str]:
        """Return the line and text of the first word that is not a number; called only for an error
        message."""
        for i, word in enumerate(_split_words(self.text)):
            try:
                reader(word)
            except ValueError:
                return self.line(i), word.decode(errors="replace")
        return self.line(0), ""


def _numbers(text: bytes, dtype: type, count: int) -> np.ndarray:
    """Return the numbers of a text; ValueError if one of its `count` words is not exactly one
    number."""
    if count == 0:
        return np.zeros(0, dtype)
    values: np.ndarray = np.fromstring(text, dtype, sep=" ")
    if len(values) != count:  # `1-2` is parsed as two
        raise ValueError
    return values


def _split_words(text: bytes) -> list[bytes]:
    """Return the words of a text, separated by any control characters, as in `_word_starts`."""
    return re.findall(rb"[^\x00- ]+", text)


def _word_starts(text: np.ndarray) -> np.ndarray:
    """Return whether a word begins at each byte of a text that begins with a blank."""
    blank = text <= _BLANK
    return np.concatenate([[False], blank[:-1] & ~blank[1:]])


def _count(marks: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Return the number of marked bytes in each segment of a text, (nbegin,)."""
    # Summing as bytes is fastest, and wrong only if a count overflows a byte.
    few = np.add.reduceat(marks.view(np.uint8), begin, dtype=np.uint8).astype(np.int64)
    if few.sum() == np.count_nonzero(marks):
        return few
    return np.add.reduceat(marks, begin, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Corners:
    """The corners of the faces: 0-based indices, -1 for none.

    Attributes:
      rest: their source lines.
      vertex, texcoord, normal: indices of each corner, (ncorner,).
    """

    rest: _Rest
    vertex: np.ndarray
    texcoord: np.ndarray
    normal: np.ndarray

    @property
    def count(self) -> np.ndarray:
        """Return the number of corners of each face, (nface,)."""
        return self.rest.words

    def check_vertices(self, number: int) -> None:
        """Report faces with invalid vertex indices."""
        wrong = np.flatnonzero((self.vertex < 0) | (self.vertex >= number))
        if len(wrong):
            word = _split_words(self.rest.text)[wrong[0]].decode(errors="replace")
            raise AssetError(
                f"line {self.rest.line(wrong[0])} of the OBJ file: the corner '{word}' of a face"
                f" is none of its {number} vertices, which count from 1"
            )

    def check_normals(self, number: int) -> None:
        """Report faces without normals in a file that has some, as MuJoCo does."""
        wrong = np.flatnonzero((self.normal < 0) | (self.normal >= number))
        if len(wrong):
            raise AssetError(
                f"line {self.rest.line(wrong[0])} of the OBJ file: a corner has no normal, but the"
                f" file has {number} of them; give all corners one, or remove the 'vn' lines"
            )

    def has_texcoord(self, number: int) -> bool:
        """Return whether there are corners, and each has valid texture coordinates."""
        inside = (self.texcoord >= 0) & (self.texcoord < number)
        return bool(len(inside)) and bool(inside.all())


def _corners(lines: _Lines, nvertex: int, ntexcoord: int, nnormal: int) -> _Corners:
    """Read the faces, whose corners are written `v`, `v/t`, `v//n` or `v/t/n`."""
    rest = _first_group(lines)
    # With a zero for each omitted index, each corner has one number more than slashes.
    spelled = rest.text
    if b"/ " in spelled or b"/\n" in spelled or b"/\t" in spelled:
        spelled = re.sub(rb"/+(?=\s)", b"", spelled)
    spelled = spelled.replace(b"//", b"/0/")
    given = _count_slashes(spelled) + 1
    if len(given) != rest.words.sum():  # a corner of nothing but slashes
        raise _bad_corner(rest, _find_invalid_corner(rest.text))
    if given.max(initial=0) > 3:
        raise _bad_corner(rest, int(np.argmax(given > 3)))
    try:
        values = _numbers(spelled.replace(b"/", b" "), np.int64, given.sum())
    except ValueError:
        raise _bad_corner(rest, _find_invalid_corner(rest.text)) from None
    before = _count_before(lines, rest) if values.min(initial=0) < 0 else {}
    table = _corner_numbers(values, given)

    def index(i: int, key: str, number: int) -> np.ndarray:
        written, seen = table[:, i], before.get(key, number)
        return np.where(written < 0, np.maximum(seen + written, -1), written - 1)

    corners = _Corners(
        rest, index(0, "v", nvertex), index(1, "vt", ntexcoord), index(2, "vn", nnormal)
    )
    corners.check_vertices(nvertex)
    return corners


def _corner_numbers(values: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the numbers of each corner, 0 for omitted ones, (ncorner, 3)."""
    table = np.zeros((len(given), 3), np.int64)
    if np.all(given == given[:1]):  # usually all have the same form
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


def _count_slashes(spelled: bytes) -> np.ndarray:
    """Return the number of slashes in each word, (nword,)."""
    text = np.frombuffer(spelled, np.uint8)
    begin = np.flatnonzero(_word_starts(text)) if len(text) else np.zeros(0, int)
    if b"/" not in spelled:
        return np.zeros(len(begin), int)
    return _count(text == ord("/"), begin)


def _count_before(lines: _Lines, rest: _Rest) -> dict[str, np.ndarray]:
    """Return the number of elements of each kind before each corner; negative indices are relative
    to it."""
    return {
        key: np.repeat(np.cumsum(lines.of(key))[rest.numbers - 1], rest.words)
        for key in ("v", "vt", "vn")
    }


_CORNER = re.compile(rb"[+-]?\d+(/([+-]?\d+)?){0,2}")


def _find_invalid_corner(text: bytes) -> int:
    """Return the index of the first word that is no corner; called only for an error message."""
    odd = (i for i, word in enumerate(_split_words(text)) if not _CORNER.fullmatch(word))
    return next(odd, 0)


def _bad_corner(rest: _Rest, word: int) -> AssetError:
    text = _split_words(rest.text)[word].decode(errors="replace")
    return AssetError(
        f"line {rest.line(word)} of the OBJ file: '{text}' is no corner of a face; a corner is"
        " written v, v/t, v//n or v/t/n"
    )


def read_obj_lines(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the points (n, 3) of a file, and its polylines as segments between two points, (m, 2).

    Coordinates have single precision, as those of surfaces.

    Raises:
      AssetError: a number cannot be parsed, or a line has an invalid index.
    """
    vertex: list[list[float]] = []
    pieces: list[tuple[int, int]] = []
    for number, text in enumerate(data.decode("utf-8", errors="replace").splitlines(), 1):
        words = text.split("#", 1)[0].split()
        if not words or words[0] not in ("v", "l"):
            continue
        try:
            if words[0] == "v":
                vertex.append([float(word) for word in words[1:4]])
            else:
                points = [_point_index(word, len(vertex)) for word in words[1:]]
                pieces += pairwise(points)
        except (ValueError, IndexError):
            raise AssetError(f"line {number} of the OBJ file cannot be read: '{text}'") from None
    point = np.array([(*v, 0.0, 0.0, 0.0)[:3] for v in vertex], np.float32).reshape(-1, 3)
    line = np.array(pieces, int).reshape(-1, 2)
    if len(line) and (line.min() < 0 or line.max() >= len(point)):
        raise AssetError(f"a line has a point that is none of the {len(point)} of the file")
    return point.astype(np.float64), line


def _point_index(word: str, count: int) -> int:
    """Return the 0-based index of a point; negative ones count back from the last one so far."""
    index = int(word.split("/", 1)[0])
    return index - 1 if index > 0 else count + index
