"""Files of a run beside its tables: its captures, and what an engine adds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from sojourn.scenario.engine import Record
from sojourn.study import disk

FILES = "files"
"""The folder of them in a results folder; within it a folder a run."""

PCAPNG = bytes.fromhex("0a0d0d0a")
"""How captures of real packets begin: with both sides of the queue in one file."""


def write(folder: Path, plan_json: str, record: Record) -> dict[str, str]:
    """Write a run's files, if it has some, as a folder; returns their digests by name."""
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
    """Return what is wrong with a run's files."""
    found = []
    for name, expected in recorded.items():
        path = folder / name
        if not path.exists():
            found.append(f"{path}: the file is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            found.append(f"{path}: the content has changed since it was written")
    return found


def _capture_names(plan: dict[str, Any]) -> list[str]:
    """Return file names for the captures, by link; odd characters in names become `_`."""
    links = plan.get("links", [])
    names: list[str] = []
    for index in plan.get("observe", {}).get("capture") or []:
        link = links[index]["name"] if isinstance(index, int) else str(index)
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in link)
        name = f"{safe}.pcap"
        names.append(name if name not in names else f"{len(names)}-{name}")
    return names
