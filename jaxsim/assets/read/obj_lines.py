"""Read the lines of an OBJ file (Wavefront), which define a rod."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jaxsim.errors import AssetError


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
                points = [_resolve_index(word, len(vertex)) for word in words[1:]]
                pieces += pairwise(points)
        except (ValueError, IndexError):
            raise AssetError(f"line {number} of the OBJ file cannot be read: '{text}'") from None
    point = np.array([(*v, 0.0, 0.0, 0.0)[:3] for v in vertex], np.float32).reshape(-1, 3)
    line = np.array(pieces, int).reshape(-1, 2)
    if len(line) and (line.min() < 0 or line.max() >= len(point)):
        raise AssetError(f"a line has a point that is none of the {len(point)} of the file")
    return point.astype(np.float64), line


def _resolve_index(word: str, count: int) -> int:
    """Return the 0-based index of a point; negative ones count back from the last one so far."""
    index = int(word.split("/", 1)[0])
    return index - 1 if index > 0 else count + index
