"""Files that leave nothing behind."""

from __future__ import annotations

import tempfile
from typing import IO, cast


def nameless() -> IO[bytes]:
    """A new file without a name, which goes when it is closed."""
    return cast("IO[bytes]", tempfile.TemporaryFile())
