"""Files of decisions recorded from Linux: their texts, and their schedules for the judge."""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from sojourn.judge.monitor import Decision, Op, Params

LARGEST = 512 * 1024 * 1024
"""Largest unpacked size of a vector file in bytes; recorded scenarios are much smaller."""
RECORDED = Path("crates/vectors/data")
"""Folder of the vectors, relative to the folder of a clone of the repository."""


OPENERS: dict[str, Callable[..., BinaryIO]] = {
    ".jsonl": cast("Callable[..., BinaryIO]", open),
    ".jsonl.gz": cast("Callable[..., BinaryIO]", gzip.open),
    ".jsonl.xz": cast("Callable[..., BinaryIO]", lzma.open),
}
"""Functions that open a file of vectors, by the end of its name."""


def _suffix(path: Path) -> str | None:
    return next((s for s in OPENERS if path.name.endswith(s)), None)


def find(folder: Path) -> list[Path]:
    """Returns all vector files below `folder`, sorted by name."""
    if folder.is_file():
        return [folder] if _suffix(folder) else []
    return sorted(p for p in folder.rglob("*.jsonl*") if _suffix(p) and p.is_file())


def read(path: Path) -> str:
    """Returns a vector file's text; raises `ValueError` or `OSError`."""
    try:
        with OPENERS[_suffix(path) or ".jsonl"](path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"cannot be unpacked: {error}") from None
    if len(raw) > LARGEST:
        raise ValueError(f"larger than {LARGEST >> 20} MiB")
    return raw.decode("utf-8")


def scenarios(text: str) -> list[tuple[int, str]]:
    """Returns the scenarios in a file, usually one, each with the number of lines before it.

    A scenario begins with a header line.
    """
    parts: list[tuple[int, list[str]]] = [(0, [])]
    for number, line in enumerate(text.splitlines(keepends=True)):
        if line.startswith('{"format"') and parts[-1][1]:
            parts.append((number, []))
        parts[-1][1].append(line)
    return [(before, "".join(lines)) for before, lines in parts]


UNITS = {"_us": 1000, "": 1}
NAMES = {"target": "target", "interval": "interval", "tupdate": "update"}
"""Names of times in recordings, and of the parameters of the judge."""


def recorded(
    path: Path, discipline: str
) -> Iterator[tuple[str, Params, list[Op], str, tuple[Decision, ...]]]:
    """Yields the schedules of a file: name, parameters, operations, kernel, decisions.

    Schedules with changes of parameters, or of a discipline's other options, are left out.
    """
    for _, text in scenarios(read(path)):
        first, *rows = (json.loads(row) for row in text.splitlines())
        given = first["params"]
        plain = given.get("ce_threshold_us") is None and not given.get("bytemode")
        if first["discipline"] != discipline or not plain or any("c" in row for row in rows):
            continue
        params: dict[str, float | None] = {"mtu": first["psched_mtu"], "limit": given["limit"]}
        params |= {key: given[key] for key in ("ecn", "quantum") if key in given}
        for word, name in NAMES.items():
            for unit, scale in UNITS.items():
                if f"{word}{unit}" in given and name not in params:
                    params[name] = given[f"{word}{unit}"] * scale
        ops = []
        for row in rows:
            if "e" in row:
                at, number, size, flow, ecn = row["e"][:5]
                ops.append(Op("enqueue", at, number, size, ecn, flow))
            elif "d" in row or "u" in row:
                ops.append(Op("dequeue" if "d" in row else "update", row.get("d", row.get("u"))))
        decisions = (
            Decision(row.get("v") if "d" in row else None, *(tuple(row.get(k, ())) for k in "xm"))
            for row in rows
            if not row.keys().isdisjoint("edu")
        )
        yield first["scenario"], params, ops, f"Linux {first['kernel']}", tuple(decisions)
