"""Files that are new: written whole, in the place of no other."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path


def write_new(files: Mapping[Path, bytes]) -> None:
    """Writes all files or none of them.

    Raises `FileExistsError`, with its name, if anything of a file's name is there, a link that
    leads nowhere among it; also if somebody else makes it meanwhile.
    """
    for path in files:
        if os.path.lexists(path):
            raise FileExistsError(17, "is there already", str(path))
    made: list[Path] = []
    try:
        for path, data in files.items():
            _write(path, data)
            made.append(path)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes) -> None:
    """A file that gets its name when it is whole, unless somebody else has that name by then."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise FileExistsError(17, "is there already", str(path)) from None
        except OSError:  # a file system without hard links: here a killed process may leave a part
            with path.open("xb") as last:
                last.write(data)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
