"""What can go wrong in a study."""

from __future__ import annotations

from pathlib import Path


class StudyError(ValueError):
    """A study that cannot be run as described, or a run of it that failed."""


class ResultsError(StudyError):
    """A folder that does not hold what it should."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class NotKept(StudyError):
    """A table that a study chose not to keep of its runs."""


class PolicyFault(StudyError):
    """Runs whose policy of the user's own failed; all others were made."""

    def __init__(self, message: str, keys: frozenset[str]) -> None:
        super().__init__(message)
        self.keys = keys
        """Of the runs that failed."""


class ClusterError(StudyError):
    """A cluster that cannot make runs, or does so no longer."""


class StudyInterrupted(KeyboardInterrupt):
    """A study stopped by the user; what was done is kept on disk."""

    def __init__(self, done: int, total: int, folder: Path | None) -> None:
        self.done, self.total, self.folder = done, total, folder
        kept = f"; kept in {folder}, the same command goes on from there" if folder else ""
        super().__init__(f"stopped after {done} of {total} runs{kept}")
