"""Studies: factors x seeds -> runs on disk -> one table; comparisons of queues."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.study.comparison import Comparison, Entry, compare
    from sojourn.study.contrast import Contrast, Contrasts
    from sojourn.study.errors import ClusterError, ResultsError, StudyError, StudyInterrupted
    from sojourn.study.file import load
    from sojourn.study.progress import Progress
    from sojourn.study.results import Results, StoredRun, replay
    from sojourn.study.study import Study
    from sojourn.study.table import Table

__all__ = [
    "ClusterError",
    "Comparison",
    "Contrast",
    "Contrasts",
    "Entry",
    "Progress",
    "Results",
    "ResultsError",
    "StoredRun",
    "Study",
    "StudyError",
    "StudyInterrupted",
    "Table",
    "compare",
    "load",
    "replay",
]

_HOME = {
    "ClusterError": "errors",
    "Comparison": "comparison",
    "Contrast": "contrast",
    "Contrasts": "contrast",
    "Entry": "comparison",
    "Progress": "progress",
    "Results": "results",
    "ResultsError": "errors",
    "StoredRun": "results",
    "Study": "study",
    "StudyError": "errors",
    "StudyInterrupted": "errors",
    "Table": "table",
    "compare": "comparison",
    "load": "file",
    "replay": "results",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
