"""A study's folder on disk: runs written whole or not at all, safe for several processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Any

from sojourn.study import columns, disk, manifest
from sojourn.study.engine import ASKED, TABLES
from sojourn.study.errors import ResultsError, StudyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from sojourn.study.disk import Claimed
    from sojourn.study.engine import Record
    from sojourn.study.kept import Kept
    from sojourn.study.manifest import Manifest

RUN = "run.json"
SUMMARY = "summary.parquet"
_OURS = {manifest.NAME, SUMMARY, "runs", "tmp"}

PCAPNG = bytes.fromhex("0a0d0d0a")
"""How captures of real packets begin: with both sides of the queue in one file."""


class Store:
    """Where the runs of one study are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.temporary = folder / "tmp"

    # The folder as a whole

    def open(self, wanted: Manifest) -> Manifest:
        """Make the folder this study's, or go on with the one there; returns the manifest.

        A folder that holds something else is left alone.
        """
        self._check_free()
        self.runs.mkdir(parents=True, exist_ok=True)
        with disk.locked(self.folder):
            there = manifest.load(self.folder)
            if there is not None:
                if there.identity != wanted.identity:
                    raise ResultsError(
                        self.folder,
                        f"holds another {there.kind} ({there.name!r}, factors "
                        f"{', '.join(there.factors) or 'none'}); choose another folder",
                    )
                try:
                    wanted = wanted.extended(there)
                except StudyError as error:
                    raise ResultsError(self.folder, str(error)) from error
            disk.remove_leftover_files(self.folder)
            disk.replace_file(self.folder / manifest.NAME, wanted.to_bytes())
        disk.sync_folder(self.folder.parent)
        disk.remove_leftover_folders(self.temporary)
        return wanted

    def _check_free(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ResultsError(self.folder, "is a file; results need a folder")
        if not self.folder.exists() or (self.folder / manifest.NAME).exists():
            return
        foreign = [
            p.name
            for p in self.folder.iterdir()
            if p.name not in _OURS and not (p.name.startswith(".") and p.name.endswith(".tmp"))
        ]
        if foreign:
            raise ResultsError(
                self.folder,
                f"holds other files ({', '.join(sorted(foreign)[:3])}) and no results; "
                "choose another folder",
            )

    def close(self, mine: Manifest, *, compact: bool = True) -> None:
        """Tidy up and, if `compact`, write the compacted summary of all runs there are."""
        disk.remove_leftover_folders(self.temporary)
        with contextlib.suppress(OSError):  # another process may still be at work in it
            self.temporary.rmdir()
        if not compact:
            return
        with disk.locked(self.folder):
            there = manifest.load(self.folder) or mine
            from sojourn.study.summaries import collect, current

            if not current(self, there):
                table = collect(self, there)
                if table is not None:
                    disk.replace_file(self.folder / SUMMARY, columns.parquet(table))

    # Single runs

    def path(self, key: str) -> Path:
        """Return the folder of a run."""
        return self.runs / key

    def has(self, key: str) -> bool:
        """Whether the run is there (a run that is there is whole)."""
        return (self.runs / key / RUN).exists()

    def claim(self, key: str) -> Claimed | None:
        """Reserve a run for this process; None if another one is at it."""
        return disk.claim(self.temporary / key)

    def write(
        self, held: Claimed, key: str, record: Record, about: dict[str, Any], kept: Kept
    ) -> bool:
        """Write what is kept of a run into its claimed folder and give it its name."""
        hashes = {}
        if not kept.everything:
            about = {**about, "kept": kept.as_dict()}
        for name in (*TABLES, *ASKED):
            if not kept.has_table(name):
                continue
            table = kept.of_table(name, record.table(name))
            if not table and name in ASKED:
                continue
            data = columns.parquet(columns.to_arrow(table))
            (held.path / f"{name}.parquet").write_bytes(data)
            hashes[f"{name}.parquet"] = hashlib.sha256(data).hexdigest()
        for link, capture in zip(_capture_names(about["plan"]), record.captures, strict=False):
            name = f"{link}ng" if capture.startswith(PCAPNG) else link
            (held.path / name).write_bytes(capture)
            hashes[name] = hashlib.sha256(capture).hexdigest()
        for name, data in getattr(record, "files", {}).items():
            (held.path / name).write_bytes(data)
            hashes[name] = hashlib.sha256(data).hexdigest()
        text = json.dumps({"format": manifest.FORMAT, "key": key, **about, "files": hashes})
        (held.path / RUN).write_text(text, encoding="utf-8")
        return held.publish(self.path(key))

    def about(self, key: str) -> dict[str, Any]:
        """Return a run's `run.json`."""
        path = self.path(key) / RUN
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ResultsError(path, "the file is missing") from None
        except (OSError, ValueError) as error:
            raise ResultsError(path, f"cannot be read ({error})") from error
        if not isinstance(data, dict) or not {"plan", "seed", "engine", "factors"} <= set(data):
            raise ResultsError(path, "this does not describe a run")
        return data

    def table(self, key: str, name: str, names: Sequence[str] | None = None) -> pa.Table:
        """Return one table of a run, with these columns only if they are named."""
        return columns.read(self.path(key) / f"{name}.parquet", names)

    def damage(self, key: str) -> list[str]:
        """Return what is wrong with a run's files, if anything."""
        try:
            files = self.about(key).get("files", {})
        except ResultsError as error:
            return [str(error)]
        found = []
        for name, expected in files.items():
            path = self.path(key) / name
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
