"""Creation of new files, atomically and without overwriting."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path


def write_new(files: Mapping[Path, bytes]) -> None:
    """Creates all files, or none after an error.

    Raises `FileExistsError` with the path if a file or link exists already, or if another process
    creates it meanwhile.
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
    """Writes a temporary file; when it is complete, gives it the name `path`.

    Raises `FileExistsError` if a file with the name exists by then.
    """
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
