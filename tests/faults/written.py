"""A session whose writes are recorded, fail or are cut: its process, and a disk that loses writes.

`intercept.c` records the calls. The process is started with it, and makes the session in a child
for each call that is to fail, so that the imports are paid once.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import ROOT

KILL, FULL, EIO = -1, -2, errno.EIO
ACTIONS = {"killed": KILL, "disk full": FULL, "input/output error": EIO}
SEEDS = (2, 3)
"""Numbers of seeds of the two sessions; the second one extends the results of the first one."""
FAILED = 3
"""Status of a session that ended with an error of the user."""


@dataclass(frozen=True)
class Call:
    """A recorded call, or a note of the process."""

    kind: str
    one: str
    two: str
    at: int
    data: bytes

    @property
    def site(self) -> str:
        """Returns the kind and the file, without the random and numbered parts of names."""
        name = Path(self.one).name
        if name.endswith(".tmp") and name.startswith("."):
            name = name.rsplit(".", 2)[0] + ".tmp"
        if name.endswith(".runs"):
            name = "*.runs"
        return f"{self.kind} {name if len(name) < 30 else '*' + Path(name).suffix}"


def built(folder: Path) -> Path:
    """Compiles `intercept.c` into a folder; returns the library."""
    library = folder / "intercept.so"
    source = Path(__file__).with_name("intercept.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"],
        check=True,
    )
    return library


def calls(record: Path) -> list[Call]:
    """Returns the calls in a record."""
    data, at, found = record.read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        kind, one, two, place, length = data[at:end].decode().split("\t")
        at = end + 1 + int(length)
        found.append(Call(kind, one, two, int(place), data[end + 1 : at]))
    return found


def numbers(made: list[Call], *, every: bool) -> list[int]:
    """Returns the numbers of the calls to fail: all, or the first and the last of each site."""
    counted = [call for call in made if call.kind != "note"]
    if every:
        return list(range(len(counted)))
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, call in enumerate(counted):
        first.setdefault(call.site, number)
        last[call.site] = number
    return sorted({*first.values(), *last.values()})


# Lost writes


@dataclass
class _Node:
    """A file or folder: its present content, and what the device certainly has."""

    content: bytearray | dict[str, _Node]
    durable: bytes | dict[str, _Node] = b""
    names: list[dict[str, _Node | None]] = field(default_factory=list)
    """Pending changes of names; `None` removes a name."""
    writes: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Pending writes: offset and data; `None` cuts the file there."""


class Disk:
    """A disk that loses what was not flushed, except what chance keeps.

    A folder keeps any of its pending changes of names, a file any of its pending writes.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = _Node({}, {})
        self.acknowledged: set[str] = set()

    def _walk(self, path: str) -> tuple[_Node, str]:
        *folders, name = Path(path).relative_to(self._root).parts
        node = self._top
        for part in folders:
            assert isinstance(node.content, dict)
            node = node.content[part]
        return node, name

    def _set(self, path: str, node: _Node | None, *also: tuple[str, _Node | None]) -> None:
        parent, name = self._walk(path)
        assert isinstance(parent.content, dict)
        parent.names.append({name: node, **dict(also)})
        _rename(parent.content, parent.names[-1])

    def _node(self, path: str) -> _Node:
        if Path(path) == self._root:
            return self._top
        parent, name = self._walk(path)
        assert isinstance(parent.content, dict)
        return parent.content[name]

    def apply(self, call: Call) -> None:
        """Makes a call."""
        match call.kind:
            case "note":
                self.acknowledged = set(call.one.split())
            case "mkdir":
                self._set(call.one, _Node({}, {}))
            case "create" if call.at:
                self._set(call.one, _Node(bytearray()))
            case "create" | "truncate":
                node = self._node(call.one)
                assert isinstance(node.content, bytearray)
                length = call.at if call.kind == "truncate" else 0
                del node.content[length:]
                node.writes.append((length, None))
            case "write":
                node = self._node(call.one)
                assert isinstance(node.content, bytearray)
                node.content[call.at : call.at + len(call.data)] = call.data
                node.writes.append((call.at, call.data))
            case "unlink":
                self._set(call.one, None)
            case "rename":
                assert Path(call.one).parent == Path(call.two).parent
                self._set(call.two, self._node(call.one), (Path(call.one).name, None))
            case "fsync":
                node = self._node(call.one)
                node.names.clear()
                node.writes.clear()
                now = node.content
                node.durable = dict(now) if isinstance(now, dict) else bytes(now)

    def crash(self, into: Path, keep: float, rng: random.Random) -> None:
        """Writes what the disk has after a crash; `keep` is the chance of each pending change."""
        into.mkdir()
        self._write(self._top, into, keep, rng)

    def _write(self, node: _Node, into: Path, keep: float, rng: random.Random) -> None:
        if isinstance(node.durable, dict):
            names = dict(node.durable)
            for change in node.names:
                if rng.random() < keep:
                    _rename(names, change)
            for name, child in names.items():
                if isinstance(child.durable, dict):
                    (into / name).mkdir()
                self._write(child, into / name, keep, rng)
            return
        data = bytearray(node.durable)
        for at, written in node.writes:
            if rng.random() >= keep:
                continue
            if written is None:
                del data[at:]
                continue
            data.extend(bytes(max(at - len(data), 0)))
            data[at : at + len(written)] = written
        into.write_bytes(data)


def _rename(names: dict[str, _Node], change: dict[str, _Node | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


# The process that is started with the interception


def _study(seeds: int, folder: Path) -> None:
    from sojourn.study import Study
    from tests.study.fakes import FakeEngine, FakeRecord, scenario

    class WithFiles(FakeEngine):
        def simulate(self, *arguments: object) -> FakeRecord:
            record = super().simulate(*arguments)  # type: ignore[arg-type]
            record.files = {"a.txt": b"a" * 99, "b.txt": b"b"}  # type: ignore[attr-defined]
            return record

    asked = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(seeds)
    asked.run(folder, workers=1, engine=WithFiles())


def _session(folder: Path, note: ctypes._NamedFuncPointer | None) -> int:
    """Makes both sessions; notes after each flush which runs are written."""
    from sojourn.study.errors import StudyError
    from sojourn.study.folder import ResultsFolder

    flush = ResultsFolder.flush

    def noted(self: ResultsFolder) -> None:
        flush(self)
        if note is not None:
            note(" ".join(sorted(self.keys)).encode())

    ResultsFolder.flush = noted  # type: ignore[method-assign]
    try:
        for seeds in SEEDS:
            _study(seeds, folder)
    except (OSError, StudyError):
        return FAILED
    finally:
        ResultsFolder.flush = flush  # type: ignore[method-assign]
    return 0


def _verified(folder: Path, whole: str, acknowledged: set[str], *, resume: bool) -> None:
    """Raises an error if runs are lost, values differ, or the study cannot continue."""
    from sojourn.study import Results

    if not (folder / "manifest.json").exists():
        assert not acknowledged, "the manifest is lost"
    else:
        results = Results.open(folder)
        lost = acknowledged - results.storage.keys
        assert not lost, f"lost {lost}"
        if results.storage.keys:
            part = results.table().frame
            wanted = json.loads(whole)
            for row in json.loads(part.to_json(orient="records")):
                assert row in wanted, row
        for run in results.runs():
            assert all(run.table(name) is not None for name in ("flows", "series"))
            for name in ("a.txt", "b.txt"):
                assert (results.storage.files(run.key) / name).exists(), run.key
    if resume:
        assert _session(folder, None) == 0
        results = Results.open(folder)
        assert results.check() == []
        assert json.loads(results.table().frame.to_json(orient="records")) == json.loads(whole)
        names = {path.name for path in folder.iterdir()}
        assert not {n for n in names if n.startswith(".")}, names
        assert "log" not in names
        assert len(list((folder / "files").iterdir())) == len(json.loads(whole))


def _prepared(faulty: str) -> None:
    """Prepares the process; `faulty` is a function of `disk` that does not flush."""
    from sojourn.study import disk, folder
    from sojourn.study.errors import DamageWarning

    if faulty:
        setattr(disk, faulty, lambda *given: os.write(*given) if given[1:] else None)
    folder.MOST_PENDING = 0  # each run is written at once, so that the calls do not depend on time
    warnings.simplefilter("ignore", DamageWarning)


def _case(place: Path, number: int, action: int, library: ctypes.CDLL) -> Path:
    """Makes the session in a child, whose call `number` meets `action`; returns its record."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "disk").mkdir(parents=True)
    record = place / "record"
    child = os.fork()
    if child == 0:
        status = 70
        try:
            library.arm(f"{place}/disk/".encode(), str(record).encode(), number, action)
            status = _session(place / "disk" / "results", library.note)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if action == KILL:
        assert os.WIFSIGNALED(status), status
        assert os.WTERMSIG(status) == signal.SIGKILL
    else:
        assert os.WEXITSTATUS(status) in (0, FAILED), status
    return record


def _acknowledged(made: list[Call]) -> set[str]:
    notes = [call for call in made if call.kind == "note"]
    return set(notes[-1].one.split()) if notes else set()


def main(library: str, place: Path, words: list[str]) -> None:
    """Runs the cases.

    The words are `every`, `sample` or `none`; the number of random crashes at each call; and a
    function of `disk` that is to have no effect.
    """
    from sojourn.study import Results

    _prepared(words[2] if words[2:] else "")
    loaded = ctypes.CDLL(library)
    record = _case(place / "whole", -1, EIO, loaded)
    whole = Results.open(place / "whole" / "disk" / "results").table().frame
    whole_json = whole.to_json(orient="records")
    made = calls(record)
    tried = 0
    every, actions = words[0] == "every", list(ACTIONS.items())
    tests = [] if words[0] == "none" else numbers(made, every=every)
    for turn, number in enumerate(tests):
        for name, action in actions if every else [actions[turn % len(actions)]]:
            try:
                done = calls(_case(place / "case", number, action, loaded))
                folder = place / "case" / "disk" / "results"
                _verified(folder, whole_json, _acknowledged(done), resume=True)
            except Exception as error:
                counted = [call for call in made if call.kind != "note"]
                raise AssertionError(f"{name} at {number}: {counted[number]}"[:400]) from error
            tried += 1
    disk, rng, crashes = Disk(place / "whole" / "disk"), random.Random(1), 0
    for number, call in enumerate(made):
        disk.apply(call)
        if words[0] == "sample" and number % 3:
            continue
        for keep in (0.0, 1.0, *[0.5] * int(words[1])):
            shutil.rmtree(place / "crashed", ignore_errors=True)
            disk.crash(place / "crashed", keep, rng)
            try:
                resume = number % 15 == 0
                folder = place / "crashed" / "results"
                _verified(folder, whole_json, disk.acknowledged, resume=resume)
            except Exception as error:
                raise AssertionError(f"crash after {number}, keep {keep}: {call}"[:400]) from error
            crashes += 1
    print(json.dumps({"calls": len(made), "tried": tried, "crashes": crashes}))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the process with the interception; it prints the numbers of calls and cases."""
    library = built(folder)
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.written", library, folder, *words],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": f"{ROOT}/python:{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
