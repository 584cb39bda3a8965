"""The implementations that are judged: a command, a user's class, or a built-in queue."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sojourn import _core
from sojourn.data import Object
from sojourn.judge.monitor import Answer, Decision, Number, Op, Params
from sojourn.own.recorded import Recorded
from sojourn.own.sources import is_own

VERSION = 1
"""Version of the protocol."""
PATIENCE = 10.0
"""Time in seconds in which an adapter must answer."""
CHUNK = 64
"""Number of lines that are sent before their answers are read; they fit into a pipe."""


class JudgeError(ValueError):
    """An implementation that cannot be judged: it does not follow the protocol."""


@dataclass(frozen=True)
class Hello:
    """The beginning of a schedule."""

    discipline: str
    params: Params
    seed: int = 1


class Subject(Protocol):
    """An implementation that is judged."""

    name: str

    def begin(self, hello: Hello) -> Params:
        """Makes a new queue; returns the parameters that it really has."""

    def play(self, ops: Sequence[Op]) -> Iterator[Answer]:
        """Executes operations on the queue, and yields its answers."""


class Command:
    """A program that answers on its standard output, line by line."""

    def __init__(self, words: Sequence[str]) -> None:
        self.name = " ".join(words)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the program fails
        self.answered = 0
        self.takes = False
        """Whether the program takes its random numbers from the judge."""
        self.rest = b""
        try:
            self.process = subprocess.Popen(  # noqa: S603 - the user's own command
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, bufsize=0
            )
        except OSError as error:
            self.errors.close()
            raise JudgeError(f"`{words[0]}` cannot be started: {error.strerror}") from None

    def begin(self, hello: Hello) -> Params:
        """Makes a new queue."""
        first = {"judge": VERSION, **vars(hello)}
        self._write([json.dumps(first, separators=(",", ":"))])
        answer = self._read()
        actual = answer.get("params", {})
        if not isinstance(actual, dict) or not all(
            value is None or isinstance(value, int | float) for value in actual.values()
        ):
            raise self._wrong("`params` must be an object of numbers")
        self.takes = bool(actual.get("random"))
        if self.takes and hello.discipline != "pie":
            raise self._wrong("only PIE can take its random numbers from the judge (`random`)")
        return {**hello.params, **actual}

    def play(self, ops: Sequence[Op]) -> Iterator[Answer]:
        """Executes operations on the queue."""
        for at in range(0, len(ops), CHUNK):
            part = ops[at : at + CHUNK]
            self._write([line_of(op, takes=self.takes) for op in part])
            for _ in part:
                yield self._answer(self._read())

    def close(self) -> None:
        """Ends the program."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _write(self, lines: Sequence[str]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(("\n".join(lines) + "\n").encode())
        except OSError:
            return  # the program has ended; its last answers are read first

    def _read(self) -> Object:
        assert self.process.stdout is not None
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
                raise JudgeError(
                    f"`{self.name}` did not answer for {PATIENCE:.0f} s after its answer "
                    f"{self.answered}: it must flush its output after each line"
                )
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise self._ended()
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        self.answered += 1
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._wrong(f"a JSON object is expected, found {line[:80]!r}")
        return answer

    def _answer(self, answer: Object) -> Answer:
        number = answer.get("id")
        lists = [answer.get(key, []) for key in ("dropped", "marked")]
        if not (number is None or isinstance(number, int)):
            raise self._wrong(f"`id` must be the number of a packet or null, found {number!r}")
        found = []
        for given in lists:
            if not isinstance(given, list) or not all(isinstance(one, int) for one in given):
                raise self._wrong(f"`dropped` and `marked` are lists of numbers, found {given!r}")
            found.append(tuple(dict.fromkeys(int(one) for one in given)))
        shown = {k: v for k, v in answer.items() if k != "id" and isinstance(v, int | float)}
        return Answer(Decision(number, *found), shown)

    def _wrong(self, why: str) -> JudgeError:
        return JudgeError(f"`{self.name}`, answer {self.answered}: {why}")

    def _ended(self) -> JudgeError:
        status = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read()[-500:].decode(errors="replace").strip()
        return JudgeError(
            f"`{self.name}` ended with status {status} after {self.answered} answers"
            + (f": {last}" if last else "")
        )


def line_of(op: Op, *, takes: bool = False) -> str:
    """Returns an operation as a line of the protocol, with its keys always in this order.

    `takes` is whether an arriving packet has a random number for the decision about it.
    """
    head = f'{{"op":"{op.kind}","t":{op.t}'
    if op.kind != "enqueue":
        return f"{head}}}"
    random = f',"random":{op.random:.9f}' if takes else ""
    return f'{head},"id":{op.id},"size":{op.size},"ecn":{op.ecn},"flow":{op.flow}{random}}}'


WORDS = {
    "limit": "limit {:.0f}",
    "target": "target {:.0f}ns",
    "interval": "interval {:.0f}ns",
    "quantum": "quantum {:.0f}",
    "update": "tupdate {:.0f}ns",
}
"""Words of `tc` for parameters."""
PROBABILITY = {"pie": 2.0**56, "dualpi2": 2.0**32}
"""The kernel's integer for a probability of 1."""


class Bench:
    """A built-in queue, or a user's class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.own = Recorded(name) if is_own(name) else None
        self.timer_runs = False

    def begin(self, hello: Hello) -> Params:
        """Makes a new queue."""
        params, name = dict(hello.params), hello.discipline
        words = {
            key: form.format(params[key])
            for key, form in WORDS.items()
            if params.get(key) is not None
        }
        ecn = bool(params.get("ecn"))
        mtu = int(params["mtu"] or 0)
        if self.own is None:
            flag = [] if name == "dualpi2" else ["ecn" if ecn else "noecn"]
            queue = _core.parse_queue(" ".join([self.name, *words.values(), *flag]), mtu)
            sources = "{}"
        else:
            known = {word.name for word in self.own.own.declaration.words}
            flags = {"ecn": "ecn" if ecn else "noecn"} if "ecn" in known else {}
            given = [word for key, word in {**words, **flags}.items() if key in known]
            params["ecn"] = int(ecn and "ecn" in known)
            params["limit"] = params["limit"] if "limit" in known else None
            queue, sources = self.own.maker()(" ".join(given), mtu)
        self.bench = _core.QueueBench(queue, sources, hello.seed)
        self.updates = "update" in params
        self.scale = PROBABILITY.get(name) if self.own is None else None
        return params

    def play(self, ops: Sequence[Op]) -> Iterator[Answer]:
        """Executes operations on the queue."""
        bench = self.bench
        for op in ops:
            while not self.updates and (due := bench.timer) is not None and due <= op.t:
                bench.on_timer(due)
            if op.kind == "enqueue":
                step = bench.enqueue(op.t, op.id, op.size, op.flow, op.ecn)
            else:
                is_update = op.kind == "update"
                step = bench.on_timer(op.t) if is_update else bench.dequeue(op.t)
            number, _, dropped, marked = step
            shown: dict[str, Number] = dict(bench.state())
            if self.scale is not None:
                shown["p"] = shown["prob"] / self.scale
            gone = tuple(packet for packet, _ in dropped)
            yield Answer(Decision(number, gone, tuple(dict.fromkeys(marked))), shown)

    def close(self) -> None:
        """Does nothing; a command ends its program here."""
