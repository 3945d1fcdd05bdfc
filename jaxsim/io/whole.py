"""Files that are written as a whole or not at all."""

import os
import secrets
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file under another name, then gives it its own; whoever looks sees all or nothing.

    Raises:
      OSError: it cannot be written; a file that was there is as it was.
    """
    part = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    data = content.encode() if isinstance(content, str) else content
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
