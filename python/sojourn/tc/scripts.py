"""Shell scripts, lists of commands and files for `tc -batch`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from json import loads

from sojourn import _core
from sojourn.tc import iptables, nft
from sojourn.tc.commands import PRINTS, Table, object_of
from sojourn.tc.model import Place, Reading, Refused
from sojourn.tc.shell.nodes import List
from sojourn.tc.shell.run import WHICH_IS, Run, Shell
from sojourn.tc.shell.syntax import ShellSyntaxError, parse
from sojourn.tc.shell.values import TooMuch

FAULTS = 100
"""Largest number of lines that are reported as not shell commands."""
_PROMPT = re.compile(r"^\s*(?:\S*[#$%>]|\+)\s+(?=(?:sudo\s+)?(?:\S*/)?tc\s|\$\w+\s|\w+=)")
_PROMPT_BEFORE_TC = re.compile(r"^\s*[#$%>]\s*(?=(?:sudo\s+)?(?:\S*/)?tc\s)")
_COMMAND = re.compile(
    r"^\s*(?:sudo\s+)?(?:\S*/|\$\{?)?tc\}?\s|^\s*(qdisc|class|filter)\s+[a-z]", re.IGNORECASE
)
_SETS_MARK = re.compile(
    r"(?:--set-x?mark|--or-mark|mark\s+set|--set-class|--set-dscp(?:-class)?)\s+(\S+)"
)
SPEAKERS = {"echo", "printf", "which", "type", "logger", "grep", "man", "alias", "#"}
"""Programs whose arguments are not run as commands, even if they contain `tc`."""
FIREWALLS = {*iptables.PROGRAMS, *iptables.RESTORES, "nft", "ebtables", "ipset"}
TOLD = 20
"""Largest number of unsupported firewall lines that are reported one by one."""


def lines_of(text: str) -> list[str]:
    """Returns the lines of a file, without a terminal's prompts if it is a copy of a session."""
    lines = text.splitlines()
    if any(_COMMAND.match(line) and not line.lstrip().startswith("#") for line in lines):
        return lines
    if not any(_PROMPT_BEFORE_TC.match(line) for line in lines):
        return lines
    # All commands follow a prompt, so lines with `#` are prompts and not comments.
    return [_PROMPT_BEFORE_TC.sub("", _PROMPT.sub("", line)) for line in lines]


class Scripts:
    """Reads scripts, one after another, into the devices of a reading."""

    def __init__(
        self, reading: Reading, given: Mapping[str, str], others: Mapping[str, str]
    ) -> None:
        self._reading = reading
        self._table = Table(reading)
        self._shell = Shell(given, self._program, self._doubt)
        self._shell.sources = dict(others)
        self._file = ""
        self._lines: list[str] = []
        self._last: tuple[list[str], Place] | None = None
        self._iptables = iptables.Reader(reading.firewall)
        self._nft = nft.Reader(reading.firewall)
        self._unread: list[tuple[Place, Refused, str]] = []
        """Unsupported lines of the firewall: place, reason and text."""

    def read(self, file: str, text: str) -> None:
        """Reads the script in one file."""
        self._shell.had(file)
        self._file, self._lines = file, lines_of(text)
        try:
            self._shell.run(self._parsed())
        except (ShellSyntaxError, TooMuch) as why:
            self._reading.problems.append(self._place(self._shell.line).problem(str(why)))
        for name, line in self._shell.absent.items():
            self._reading.absent.setdefault(name, self._place(line))
        self._shell.absent.clear()
        self._flush()

    def _parsed(self) -> List:
        """Returns the parsed script; a line that is no shell command is reported and skipped."""
        lines = list(self._lines)
        for _ in range(FAULTS):
            try:
                return parse("\n".join(lines))
            except ShellSyntaxError as fault:
                number = min(max(fault.line, 1), len(lines))
                while number > 1 and not lines[number - 1].strip():
                    number -= 1
                message = f"this is not a shell command: {fault}"
                self._reading.problems.append(self._place(number).problem(message))
                lines[number - 1] = ""
        return List()

    def end(self) -> None:
        """Adds notices on all scripts together."""
        self._reading.asked |= self._shell.variables.asked
        for name, place in self._reading.absent.items():
            message = (
                f"the script reads `{name}`, which was not given: add it by --tc if it matters"
            )
            self._reading.notices.append(place.note(message))
        for place, why, rule in self._unread[:TOLD]:
            marks = ", ".join(dict.fromkeys(_SETS_MARK.findall(rule)))
            sets = f"; give the flows this value ({marks}) by `mark` or `dscp`" if marks else ""
            message = f"this line of the firewall is ignored: {why}{sets}"
            self._reading.notices.append(place.note(message))
        if len(self._unread) > TOLD:
            message = f"{len(self._unread) - TOLD} more lines of the firewall are ignored"
            self._reading.notices.append(self._unread[TOLD][0].note(message))

    def _place(self, number: int) -> Place:
        line = self._lines[number - 1] if 0 < number <= len(self._lines) else ""
        return Place(self._file, number, line)

    def _doubt(self, line: int, message: str) -> None:
        self._reading.notices.append(self._place(line).note(message))

    # Commands

    def _program(self, run: Run) -> bool:
        """Applies a command of another program; returns whether its output is known to be empty."""
        place = self._place(run.line)
        words = _of_tc(run.words)
        if words is None:
            name = run.words[0].rpartition("/")[2]
            if name in FIREWALLS:
                self._firewall(name, run, place)
                return True
            if self._last is not None and run.words[0] in _words_of(tuple(self._last[0])):
                # the line before was broken when it was pasted
                self._reading.notices.append(
                    place.note("this line is read as the rest of the line before it")
                )
                self._last[0].extend(run.words)
                return True
            if name == "ip":
                self._length(run.words)
            return name in ("ip", "modprobe", "insmod", "ethtool", "ifconfig", "sleep", "logger")
        batch = _batch(words)
        if batch is not None:
            self._batch(batch, run, place)
            return True
        if run.origins.unknown:
            self._unknown(run, place)
            return True
        self._flush()
        self._last = (words, replace(place, missing=tuple(run.origins.missing)))
        found = object_of([word for word in words if not word.startswith("-")])
        return found is None or found[1] not in PRINTS

    def _firewall(self, name: str, run: Run, place: Place) -> None:
        """Applies a command of the firewall, or records that it is not supported."""
        words = run.words[1:]
        try:
            if run.origins.unknown:
                raise Refused(f"the output of {next(iter(run.origins.unknown))} is unknown")
            if name in iptables.RESTORES:
                if name.startswith("iptables") and run.stdin is not None:
                    self._left(self._iptables.restore(run.stdin, place))
            elif name == "nft" and (file := _file_of(words)) is not None:
                text = run.stdin if file == "-" else self._text(file)
                if text is None:
                    raise Refused(f"`{file}` was not given: add it by --tc", file)
                self._left(self._nft.file(text, place))
            elif name == "nft":
                self._nft.command(words, place)
            elif name in iptables.PROGRAMS and name != "ip6tables":
                # packets here are IPv4
                self._iptables.command(words, place)
        except Refused as why:
            self._unread.append((place, why, " ".join(words)))

    def _left(self, lines: list[tuple[Place, Refused]]) -> None:
        self._unread += [(place, why, place.text) for place, why in lines]

    def _text(self, name: str) -> str | None:
        """Returns the text of a file that the script has written or the user has given, or None."""
        return self._shell.files.get(name) or self._shell.sources.get(name.rpartition("/")[2])

    def _length(self, words: list[str]) -> None:
        """Sets the queue length of a device from a command `ip link set`."""
        match [word for word in words[1:] if word != "dev"]:
            case ["link", "set", device, *rest]:
                for key, value in pairwise(rest):
                    if key in ("txqueuelen", "txqlen", "qlen") and value.isdecimal():
                        self._reading.device(device).length = int(value)

    def _flush(self) -> None:
        """Applies the last command, because no further line can belong to this command."""
        if self._last is None:
            return
        words, place = self._last
        self._last = None
        before = len(self._reading.problems)
        self._table.run(words, place)
        if place.missing and len(self._reading.problems) == before:
            names = ", ".join(f"`{name}`" for name in place.missing)
            self._reading.notices.append(place.note(f"no value for {names}: read as an empty text"))

    def _unknown(self, run: Run, place: Place) -> None:
        what = next(iter(run.origins.unknown))
        name, _, command = what.partition(WHICH_IS)
        if command:
            unknown, key = f"the output of `{command[2:-1]}` in the variable `{name}`", name
        else:
            unknown, key = f"the output of `{what[2:-1]}`", what[2:-1]
        option = f"--var '{key}=VALUE'" if not key.isidentifier() else f"--var {key}=VALUE"
        self._reading.problems.append(place.problem(f"{unknown} is unknown: set it by {option}"))

    def _batch(self, name: str, run: Run, place: Place) -> None:
        text = run.stdin if name in ("", "-") else self._shell.files.get(name)
        if text is None:
            if name.rpartition("/")[2] not in self._shell.sources and name not in ("", "-"):
                self._reading.problems.append(
                    place.problem(f"`{name}` was not given: add it by --tc", name)
                )
            return
        for line in text.splitlines():
            try:
                words = shlex.split(line, comments=True)
            except ValueError:
                self._reading.problems.append(place.problem(f"`{line}` has an unclosed quote"))
                continue
            if words:
                self._flush()
                self._last = (words, Place(self._file, place.line, line))


def _of_tc(words: list[str]) -> list[str] | None:
    """Returns the words after `tc`, which may follow other words; None for other commands."""
    if words[0].rpartition("/")[2] in SPEAKERS:
        return None
    for at, word in enumerate(words):
        if word.rpartition("/")[2] == "tc":
            rest = words[at + 1 :]
            plain = [one for one in rest if not one.startswith("-")]
            if at == 0 or object_of(plain) or _batch(rest) is not None:
                return rest
    if words[0] in ("qdisc", "class", "filter") and len(words) > 1 and object_of(words):
        return words
    return None


def _file_of(words: list[str]) -> str | None:
    """Returns the file of `nft -f`; None for other commands."""
    for at, word in enumerate(words):
        if word in ("-f", "--file"):
            return words[at + 1] if at + 1 < len(words) else "-"
    return None


def _batch(words: list[str]) -> str | None:
    """Returns the file of `tc -batch`; None for other commands."""
    for at, word in enumerate(words):
        if word.startswith("-b") and "-batch".startswith(word):
            return words[at + 1] if at + 1 < len(words) else ""
    return None


@cache
def _vocabulary() -> dict[str, frozenset[str]]:
    found = {}
    for table in loads(_core.describe())["queue"]:
        words: set[str] = set()
        for word in table["words"]:
            words |= set(word["of"]) if word["kind"] == "one_of" else {word["name"]}
            words |= {word["off"]} if word["kind"] == "switch" else set()
        found[table["name"]] = frozenset(words)
    return found


def _words_of(command: tuple[str, ...]) -> frozenset[str]:
    """Returns the words of the discipline that a command names."""
    return next((_vocabulary()[word] for word in command if word in _vocabulary()), frozenset())


def has_commands(text: str) -> bool:
    """Returns whether a text has commands that change queues, and not only output of `tc`."""
    return any(
        re.search(r"\b(?:qdisc|class|filter)\s+(?:add|replace|change|del)\b", line)
        for line in text.splitlines()
    )
