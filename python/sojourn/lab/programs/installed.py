"""Search for installed programs, and test of their versions."""

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
    """How a program reports its version, and which versions are supported."""

    asked: tuple[str, ...]
    """Arguments with which the program prints its version."""
    version: str
    """Regular expression for the output; its first group is the version."""
    least: tuple[int, ...] = ()
    """Lowest supported version; empty if all versions are supported."""


PROGRAMS = {
    "iperf3": Kind(("--version",), r"iperf (\d[\w.]*)", least=(3, 7)),
    "nginx": Kind(("-v",), r"nginx/(\d[\w.]*)", least=(1, 10)),
    "ping": Kind(("-V",), r"iputils[ -]s?(\d\w*)"),
}
"""Programs that the laboratory can use, by name."""


def require(names: Iterable[str]) -> dict[str, str]:
    """Returns the paths of programs by name.

    Raises `MissingProgram` with all programs that are not installed or too old.
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
                has = f"{least} or later is needed; {path} has {found or 'an unknown version'}"
                problems.append(Problem("", name, has))
        paths[name] = path
    if problems:
        raise MissingProgram(problems)
    return paths


def versions(paths: dict[str, str]) -> dict[str, str]:
    """Returns the versions of programs by name; `?` for an unknown version."""
    return {name: version(path, PROGRAMS[name]) or "?" for name, path in sorted(paths.items())}


def version(path: str, kind: Kind) -> str | None:
    """Returns the version of the program at `path`; `None` if it is unknown."""
    try:
        answer = subprocess.run(  # noqa: S603 - a program that was found, with fixed arguments
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
    """Returns whether a version is supported; an unknown version (`None`) is not."""
    return found is not None and _numbers(found) >= kind.least


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
