"""Errors of studies."""

from __future__ import annotations

from pathlib import Path


class StudyError(ValueError):
    """A study that cannot be run as described, or a run of it that failed."""


class ResultsError(StudyError):
    """A folder with unexpected content."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class NotKept(StudyError):
    """A table that the study did not record."""


class PolicyFault(StudyError):
    """Failed runs of a user's policy; all other runs were made."""

    def __init__(self, message: str, keys: frozenset[str]) -> None:
        super().__init__(message)
        self.keys = keys
        """Keys of the runs that failed."""


class ClusterError(StudyError):
    """A cluster that cannot make runs."""


class StudyInterrupted(KeyboardInterrupt):
    """A study that the user stopped; finished runs are on disk."""

    def __init__(self, done: int, total: int, folder: Path | None) -> None:
        self.done, self.total, self.folder = done, total, folder
        kept = f"; saved in {folder}, the same command continues from there" if folder else ""
        super().__init__(f"stopped after {done} of {total} runs{kept}")
