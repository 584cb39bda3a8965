"""Which programs are installed, and in which version."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sojourn.lab.errors import Unavailable
from sojourn.lab.machine import needs
from sojourn.lab.programs.errors import MissingProgram, Problem


@dataclass(frozen=True)
class Kind:
    """A program that the laboratory uses."""

    asked: tuple[str, ...]
    """How it is asked for its version."""
    version: str
    """What the answer looks like."""
    least: tuple[int, ...] = ()
    """The first version that will do."""


PROGRAMS = {
    "iperf3": Kind(("--version",), r"iperf (\d[\w.]*)", least=(3, 7)),
    "nginx": Kind(("-v",), r"nginx/(\d[\w.]*)", least=(1, 10)),
    "ping": Kind(("-V",), r"iputils[ -]s?(\d\w*)"),
}


def require(names: Iterable[str]) -> dict[str, str]:
    """Return the paths of programs.

    Raises `MissingProgram` if any is not installed or too old.
    """
    paths: dict[str, str] = {}
    problems = []
    for name in sorted(set(names)):
        kind = PROGRAMS[name]
        try:
            path = needs.find_program(name)
        except Unavailable as missing:
            problems.append(Problem("", name, str(missing)))
            continue
        if kind.least:
            found = version(path, kind)
            least = ".".join(map(str, kind.least))
            if not recent(found, kind):
                has = f"{least} or later is needed; {path} is {found or 'of no version it tells'}"
                problems.append(Problem("", name, has))
        paths[name] = path
    if problems:
        raise MissingProgram(problems)
    return paths


def versions(paths: dict[str, str]) -> dict[str, str]:
    """Return the versions of programs, for a run's record."""
    return {name: version(path, PROGRAMS[name]) or "?" for name, path in sorted(paths.items())}


def version(path: str, kind: Kind) -> str | None:
    """Return what a program says of itself, if it can be read."""
    try:
        answer = subprocess.run(  # noqa: S603 - a program that was found, with words of ours
            [Path(path), *kind.asked],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=10,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(kind.version, answer)
    return found[1] if found else None


def recent(found: str | None, kind: Kind) -> bool:
    """Whether a version will do; one that is not told will not."""
    return found is not None and _numbers(found) >= kind.least


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
