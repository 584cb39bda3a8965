"""Runs of the two programs of a trial on this machine, without a link."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn.ab.trial import TrialError, Which
from sojourn.scenario import reported

LINES = 8
"""Number of last lines of a failed program's output in the error message."""


@dataclass
class Alone:
    """Programs on this machine, without a link."""

    commands: Mapping[Which, Sequence[str]]
    metric: str | None
    """Source of the number in the output (`reported`); `None` for the completion time."""
    limit: float
    """Longest time of a run in seconds."""
    repeats = False

    def measure(self, which: Which, seed: int) -> float:
        """Returns the number of a run; raises `TrialError` if the program fails."""
        del seed
        words = list(self.commands[which])
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            # This shell ends the process group of the program if `sojourn` is killed.
            subprocess.Popen(
                ["/bin/sh", "-c", "read -r never; kill -9 0"],
                stdin=subprocess.PIPE,
                process_group=0,
            ) as guard,
        ):
            late = threading.Event()

            def stop() -> None:
                late.set()
                os.killpg(guard.pid, signal.SIGKILL)

            timer = threading.Timer(self.limit, stop)
            timer.start()
            begin = time.perf_counter()
            try:
                program = subprocess.Popen(  # noqa: S603 - the programs are the user's
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    process_group=guard.pid,
                )
                status = program.wait()
                took = time.perf_counter() - begin
            except OSError as error:
                raise failure(which, words, error.strerror or str(error)) from None
            finally:
                timer.cancel()
                # The guard was not waited for, so its group exists, with what the program left.
                os.killpg(guard.pid, signal.SIGKILL)
            text, complaint = (_end(file) for file in (out, err))
        said = complaint.strip() or text
        if late.is_set():
            raise failure(which, words, f"did not end in {self.limit:g} s (--limit)", said)
        if status:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise failure(which, words, how, said)
        if self.metric is None:
            return took
        try:
            return reported.number(self.metric, [text])
        except reported.NotReported as error:
            raise failure(which, words, f"did not report a number: {error}", said) from None


def _end(file: io.BufferedRandom, kept: int = 1 << 20) -> str:
    """Returns the last bytes of a file as text."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - kept))
    return file.read().decode("utf-8", "replace")


def failure(which: Which, words: Sequence[str], why: str, said: str = "") -> TrialError:
    """Returns the error of a program with the last lines of its output."""
    lines = said.strip().splitlines()[-LINES:]
    return TrialError("\n  ".join([f"{which} failed: `{shlex.join(words)}`: {why}", *lines]))
