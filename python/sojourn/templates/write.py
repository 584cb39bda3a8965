"""New files, written atomically and without overwriting others."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path


def write_new(files: Mapping[Path, bytes]) -> None:
    """Writes all files or none of them.

    Raises `FileExistsError` with its name if a file or a link of that name exists, or is created
    concurrently.
    """
    for path in files:
        if os.path.lexists(path):
            raise FileExistsError(17, "already exists and was not overwritten", str(path))
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
    """Writes a file that gets its name when it is complete, unless the name is taken by then."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise FileExistsError(17, "already exists and was not overwritten", str(path)) from None
        except OSError:  # without hard links, a killed process may leave a partial file
            with path.open("xb") as last:
                last.write(data)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
