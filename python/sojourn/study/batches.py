"""The log of a study: an append-only file of checksummed batches of runs.

A log begins with `HEAD`. A batch consists of a header of fixed length, the keys of its runs (16
bytes each) and a body. The body has an Arrow stream for each table and schema; Zstandard compresses
the body as a whole. A digest covers the whole batch. A batch whose digest does not match, because
it is incomplete or changed, is skipped; other batches are not affected.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sojourn.study.errors import ResultsError

HEAD = b"SojournRuns1\n"
"""First bytes of a log, which identify its format."""

RUNS = "runs"
"""Name of the table with a row for each run: `key`, `about`, `plan`, and the run's metrics."""

_MAGIC = b"RUNS"
#: Header of a batch: magic, number of runs, length of the body, and length of the uncompressed
#: body. The digest follows.
_SIZES = struct.Struct("<4sIQQ")
_DIGEST = 16
_HEADER = _SIZES.size + _DIGEST
_KEY = 16
_CODEC = "zstd"

Tables = dict[str, list[pa.Table]]
"""Tables by name. A table is a list of parts with different schemas, whose first column is `key`.
"""


@dataclass(frozen=True)
class Batch:
    """A batch in a log."""

    path: Path
    """File of the log."""
    offset: int
    """Offset of the batch in the file, in bytes."""
    length: int
    """Length of the batch in bytes."""
    keys: tuple[str, ...]
    """Keys of the runs in the batch."""


def encode(keys: Sequence[str], tables: Tables) -> bytes:
    """Returns a batch as bytes to append to a log."""
    sink = pa.BufferOutputStream()
    for name, parts in tables.items():
        for part in _joined(parts):
            schema = part.schema.with_metadata({"table": name})
            with pa.ipc.new_stream(sink, schema) as stream:
                stream.write_table(part.cast(schema))
    body = sink.getvalue()
    packed: bytes = pa.Codec(_CODEC).compress(body, asbytes=True)
    names = b"".join(bytes.fromhex(key) for key in keys)
    sizes = _SIZES.pack(_MAGIC, len(keys), len(packed), body.size)
    return sizes + _digest(sizes, names + packed) + names + packed


def _digest(sizes: bytes, content: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(sizes, digest_size=_DIGEST)
    digest.update(content)
    return digest.digest()


def _joined(parts: Iterable[pa.Table]) -> list[pa.Table]:
    """Returns the parts of a table, with parts of equal schema joined to one."""
    by_schema: dict[bytes, list[pa.Table]] = {}
    for part in parts:
        by_schema.setdefault(part.schema.serialize().to_pybytes(), []).append(part)
    return [pa.concat_tables(same) for same in by_schema.values()]


def scan(path: Path, start: int = 0) -> tuple[list[Batch], int, list[str]]:
    """Finds the complete batches of a log from the offset `start` on.

    Returns the batches, the offset at which the next scan begins, and descriptions of damage. An
    incomplete batch at the end is still being written, so the next scan begins with this batch.
    """
    with path.open("rb") as file:
        if start == 0:
            head = file.read(len(HEAD))
            if head != HEAD:
                return [], 0, [] if HEAD.startswith(head) else [f"{path}: not a log of runs"]
            start = len(HEAD)
        file.seek(start)
        data = file.read()
    found: list[Batch] = []
    damage: list[str] = []
    at = 0
    while at < len(data):
        length, keys = _whole(data, at)
        if length > 0:
            found.append(Batch(path, start + at, length, keys))
            at += length
            continue
        following = data.find(_MAGIC, at + 1)
        while following >= 0 and _whole(data, following)[0] <= 0:
            following = data.find(_MAGIC, following + 1)
        if following < 0:
            break
        damage.append(
            f"{path}: the batch of runs at byte {start + at} is damaged; repeat the study to make "
            "its runs again"
        )
        at = following
    return found, start + at, damage


def _whole(data: bytes, at: int) -> tuple[int, tuple[str, ...]]:
    """Returns the length and the keys of the batch at an offset.

    The length is 0 if there is no complete batch with a matching digest.
    """
    if len(data) - at < _HEADER:
        return 0, ()
    magic, count, size, _ = _SIZES.unpack_from(data, at)
    begin, end = at + _HEADER, at + _HEADER + count * _KEY + size
    if magic != _MAGIC or end > len(data):
        return 0, ()
    content = memoryview(data)[begin:end]
    sizes, digest = data[at : at + _SIZES.size], data[at + _SIZES.size : begin]
    if _digest(sizes, content) != digest:
        return 0, ()
    keys = tuple(bytes(content[i : i + _KEY]).hex() for i in range(0, count * _KEY, _KEY))
    return end - at, keys


def read(batch: Batch) -> Tables:
    """Returns the tables of a batch; raises `ResultsError` if the batch is damaged."""
    with batch.path.open("rb") as file:
        file.seek(batch.offset)
        data = file.read(batch.length)
    if _whole(data, 0)[0] != batch.length:
        raise ResultsError(
            batch.path,
            f"the batch of runs at byte {batch.offset} is damaged; repeat the study to make its "
            "runs again",
        )
    _, count, _, size = _SIZES.unpack_from(data)
    packed = memoryview(data)[_HEADER + count * _KEY :]
    body = pa.BufferReader(pa.Codec(_CODEC).decompress(packed, size))
    tables: Tables = {}
    for table in _streams(body, size):
        name = table.schema.metadata[b"table"].decode()
        tables.setdefault(name, []).append(table.replace_schema_metadata(None))
    return tables


def _streams(body: pa.BufferReader, size: int) -> Iterator[pa.Table]:
    while body.tell() < size:
        with pa.ipc.open_stream(body) as stream:
            yield stream.read_all()
