"""Files of a run in addition to its tables: its captures, and files of an engine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from sojourn.scenario.engine import Record
from sojourn.study import disk

FILES = "files"
"""The subfolder of a results folder that has these files, with a folder for each run."""

PCAPNG = bytes.fromhex("0a0d0d0a")
"""First bytes of captures of real packets, which have both sides of the queue in one file."""


def write(folder: Path, plan_json: str, record: Record) -> dict[str, str]:
    """Writes a run's files into a folder; returns their digests by name."""
    found: dict[str, bytes] = {}
    if captures := record.captures:
        names = _capture_names(json.loads(plan_json))
        for link, capture in zip(names, captures, strict=False):
            found[f"{link}ng" if capture.startswith(PCAPNG) else link] = capture
    found.update(getattr(record, "files", {}))
    if found:
        disk.replace_folder(folder, found)
    return {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}


def damage(folder: Path, recorded: dict[str, str]) -> list[str]:
    """Returns the problems of a run's files."""
    found = []
    for name, expected in recorded.items():
        path = folder / name
        if not path.exists():
            found.append(f"{path}: the file is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            found.append(f"{path}: the content has changed since the run")
    return found


def _capture_names(plan: dict[str, Any]) -> list[str]:
    """Returns file names for the captures by link, with special characters replaced by `_`."""
    links = plan.get("links", [])
    names: list[str] = []
    for index in plan.get("observe", {}).get("capture") or []:
        link = links[index]["name"] if isinstance(index, int) else str(index)
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in link)
        name = f"{safe}.pcap"
        names.append(name if name not in names else f"{len(names)}-{name}")
    return names
