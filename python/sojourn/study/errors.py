"""Exceptions of studies."""

from __future__ import annotations

from pathlib import Path


class StudyError(ValueError):
    """A study cannot be run as described, or one of its runs failed."""


class ResultsError(StudyError):
    """A folder of results or one of its files has unexpected content; `path` names it."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class DamageWarning(UserWarning):
    """Files of a folder of results are damaged or missing."""


class NotKept(StudyError):
    """A table was requested that the study did not store."""


class PolicyFault(StudyError):
    """Runs with a user's policy failed; all other runs were made."""

    def __init__(self, message: str, keys: frozenset[str]) -> None:
        super().__init__(message)
        self.keys = keys
        """Keys of the runs that failed."""


class ClusterError(StudyError):
    """A cluster cannot make runs."""


class StudyInterrupted(KeyboardInterrupt):
    """The user stopped a study; finished runs are kept in `folder`, if the study has one."""

    def __init__(self, done: int, total: int, folder: Path | None) -> None:
        self.done, self.total, self.folder = done, total, folder
        kept = f"; saved in {folder}, the same command continues from there" if folder else ""
        super().__init__(f"stopped after {done} of {total} runs{kept}")
