"""Files of a run in addition to its tables: packet captures, and files that an engine adds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from sojourn.plan import Plan
from sojourn.scenario.engine import Record
from sojourn.study import disk

FILES = "files"
"""Name of a subfolder of the results; the subfolder has a folder of files for each run."""

PCAPNG = bytes.fromhex("0a0d0d0a")
"""First bytes of a pcapng file: a capture of real packets before and after a queue."""


def write(folder: Path, plan_json: str, record: Record) -> dict[str, str]:
    """Writes a run's files into a folder; returns their SHA-256 digests by name."""
    found: dict[str, bytes] = {}
    if captures := record.captures:
        names = _capture_names(Plan.of(plan_json))
        for link, capture in zip(names, captures, strict=False):
            found[f"{link}ng" if capture.startswith(PCAPNG) else link] = capture
    found.update(getattr(record, "files", {}))
    if found:
        disk.replace_folder(folder, found)
    return {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}


def damage(folder: Path, recorded: Mapping[str, str]) -> list[str]:
    """Returns descriptions of files of a run that are missing or changed.

    `recorded` has the digests that `write` returned.
    """
    found = []
    for name, expected in recorded.items():
        path = folder / name
        if not path.exists():
            found.append(f"{path}: the file is missing: repeat the run")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            found.append(f"{path}: the content has changed since the run: repeat the run")
    return found


def _capture_names(plan: Plan) -> list[str]:
    """Returns the file names of a plan's captures, made from the names of links.

    Special characters are replaced by `_`.
    """
    names: list[str] = []
    for index in plan.observe.capture:
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in plan.links[index].name)
        name = f"{safe}.pcap"
        names.append(name if name not in names else f"{len(names)}-{name}")
    return names
