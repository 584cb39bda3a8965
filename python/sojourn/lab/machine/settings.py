"""Settings of the whole machine that a laboratory needs: changed with a journal, and put back.

Most of what a laboratory sets is a namespace's own and dies with it (`Host.sysctl`). A few sysctls
exist once: `net.core.rmem_max`, `net.ipv4.tcp_allowed_congestion_control`. They are journalled,
changed while somebody uses them, and restored by the last user; by the next laboratory, or `sojourn
lab clean`, if users were killed. What somebody else changed meanwhile is left as it is, and said.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.journal import Entry, Journal, NoJournal, me

_NAME = re.compile(r"net(\.[A-Za-z0-9_-]+)+")


class Demand(Protocol):
    """What a setting must be like."""

    def met(self, value: str) -> bool:
        """Whether `value` is like that."""
        ...

    def change(self, value: str) -> str:
        """The value nearest to `value` that is."""
        ...


@dataclass(frozen=True)
class AtLeast:
    """A number that must not be less; `AtLeast(4 << 20)`."""

    number: int

    def met(self, value: str) -> bool:
        """Whether `value` is enough."""
        return int(value) >= self.number

    def change(self, value: str) -> str:
        """The least that is enough."""
        return str(max(int(value), self.number))


@dataclass(frozen=True)
class Includes:
    """A list of words in which some must stand; `Includes(("cubic",))`."""

    words: tuple[str, ...]

    def met(self, value: str) -> bool:
        """Whether `value` has them all."""
        return set(self.words) <= set(value.split())

    def change(self, value: str) -> str:
        """The words that are there, and those that lack."""
        return " ".join(dict.fromkeys([*value.split(), *self.words]))


@dataclass(frozen=True)
class Exactly:
    """One value and no other; two laboratories that want different ones cannot run at once."""

    value: str

    def met(self, value: str) -> bool:
        """Whether it is that."""
        return same(value, self.value)

    def change(self, value: str) -> str:
        """That."""
        del value
        return self.value


@dataclass(frozen=True)
class Outcome:
    """What became of a setting that we had changed."""

    name: str
    action: Literal["restored", "left", "in use", "removed"]
    text: str
    """The same for people."""


class Sysctls:
    """The sysctls of the machine, under `root`."""

    def __init__(self, root: Path = Path("/proc/sys")) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """The file of a sysctl; only those of networks can be named."""
        if not _NAME.fullmatch(name):
            raise LabError(f"{name!r} is no sysctl of the network")
        return self.root / name.replace(".", "/")

    def read(self, name: str) -> str:
        """Its value, with single spaces."""
        try:
            return " ".join(self.path(name).read_text(encoding="ascii").split())
        except OSError as error:
            raise Unavailable(f"the sysctl {name} cannot be read ({error.strerror})") from error

    def write(self, name: str, value: str) -> None:
        """Sets it."""
        try:
            fd = os.open(self.path(name), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(fd, f"{value}\n".encode("ascii"))
            finally:
                os.close(fd)
        except OSError as error:
            raise Unavailable(
                f"the sysctl {name} cannot be set to {value!r} ({error.strerror})",
                "use root" if os.geteuid() != 0 else "",
            ) from error

    def writable(self, name: str) -> bool:
        """Whether this process may set it."""
        return os.access(self.path(name), os.W_OK)


class Settings:
    """A context manager that makes the machine's settings as a laboratory needs them.

    `demands` are by name of the sysctl. What is so already is not touched. All is checked before
    anything is changed. `changed` says what was changed, `before` and after; `notes` what is worth
    saying of the past: what a killed run had left, and what was left alone.
    """

    def __init__(
        self,
        demands: Mapping[str, Demand],
        journal: Journal | None = None,
        sysctls: Sysctls | None = None,
    ) -> None:
        self.demands = dict(demands)
        self.sysctls = sysctls or Sysctls()
        self._journal = journal
        self._use = uuid.uuid4().hex
        self._held = False
        self.changed: dict[str, tuple[str, str]] = {}
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> None:
        """Changes what must change."""
        try:
            journal = self._open()
            with journal.locked(create=True) as entries:
                assert entries is not None
                self._take(journal, entries)
        except NoJournal:
            if not all(demand.met(self.sysctls.read(name)) for name, demand in self._demands()):
                raise

    def _demands(self) -> list[tuple[str, Demand]]:
        return list(self.demands.items())

    def _take(self, journal: Journal, entries: dict[str, Entry]) -> None:
        self.notes += [outcome.text for outcome in _sweep(journal, entries, self.sysctls)]
        now = {name: self.sysctls.read(name) for name in self.demands}
        lacking = {name: demand for name, demand in self._demands() if not demand.met(now[name])}
        for name, demand in lacking.items():
            if isinstance(demand, Exactly) and name in entries:
                who = ", ".join(str(owner.pid) for owner in entries[name].owners)
                raise LabError(
                    f"the sysctl {name} must be {demand.value!r}, but a laboratory that runs "
                    f"(process {who}) needs {now[name]!r}"
                )
            if not self.sysctls.writable(name):
                raise Unavailable(
                    f"the sysctl {name} must be set to {demand.change(now[name])!r}", "use root"
                )
        owner = me(self._use)
        for name in self.demands:
            if name in entries:
                entries[name].owners.append(owner)
        wanted = {name: demand.change(now[name]) for name, demand in lacking.items()}
        for name, value in wanted.items():
            entry = entries.setdefault(name, Entry(now[name], [], [owner]))
            if not any(same(now[name], ours) for ours in [entry.before, *entry.ours]):
                entry.before = now[name]  # somebody else's, to be put back like any other
            entry.ours.append(value)
        self._held = any(owner in entry.owners for entry in entries.values())
        if not self._held:
            return
        try:
            journal.write(entries)
            for name, value in wanted.items():
                self.sysctls.write(name, value)
                after = self.sysctls.read(name)
                if not same(after, value):
                    raise Unavailable(f"the sysctl {name} was set to {value!r}, became {after!r}")
                self.changed[name] = (now[name], after)
        except BaseException:
            self._release(journal, entries)
            raise

    def release(self) -> None:
        """Puts back what nobody uses any more; harmless if that has been done."""
        if not self._held:
            return
        journal = self._open()
        with journal.locked(create=False) as entries:
            if entries is not None:
                self._release(journal, entries)

    def _release(self, journal: Journal, entries: dict[str, Entry]) -> None:
        for entry in entries.values():
            entry.owners = [owner for owner in entry.owners if owner.use != self._use]
        outcomes = _sweep(journal, entries, self.sysctls)
        self.notes += [outcome.text for outcome in outcomes if outcome.action == "left"]
        self._held = False

    def _open(self) -> Journal:
        if self._journal is None:
            self._journal = Journal()
        return self._journal


def same(first: str, second: str) -> bool:
    """Whether two values of a sysctl are the same: numbers in their order, words in any."""
    one, other = first.split(), second.split()
    if all(re.fullmatch(r"-?\d+", word) for word in one + other):
        return [int(word) for word in one] == [int(word) for word in other]
    return sorted(one) == sorted(other)


def recover(
    journal: Journal | None = None, sysctls: Sysctls | None = None, *, force: bool = False
) -> list[Outcome]:
    """Puts back what killed runs left; what is used by a run that lives stays, unless `force`."""
    if journal is None:
        try:
            journal = Journal()
        except NoJournal:
            return []  # who has no place for a journal has left none
    with journal.locked(create=False) as entries:
        if entries is None:
            return []
        if force:
            for entry in entries.values():
                entry.owners = []
        return _sweep(journal, entries, sysctls or Sysctls(), told=True)


def _sweep(
    journal: Journal, entries: dict[str, Entry], sysctls: Sysctls, *, told: bool = False
) -> list[Outcome]:
    """Restores and forgets settings without a living user; `told`: tells of the others too."""
    outcomes: list[Outcome] = []
    for name, entry in list(entries.items()):
        entry.owners = [owner for owner in entry.owners if not owner.gone()]
        if entry.owners:
            if told:
                pids = ", ".join(str(pid) for pid in sorted({o.pid for o in entry.owners}))
                outcomes.append(
                    Outcome(name, "in use", f"{name}: in use by process {pids}, left as it is")
                )
            continue
        try:
            outcomes += _restore(name, entry, sysctls)
        except LabError as error:
            outcomes.append(Outcome(name, "left", str(error)))
        else:
            del entries[name]
    journal.write(entries)
    return outcomes


def _restore(name: str, entry: Entry, sysctls: Sysctls) -> list[Outcome]:
    if not sysctls.path(name).exists():
        return [Outcome(name, "left", f"{name}: is not there any more")]
    now = sysctls.read(name)
    if same(now, entry.before):
        return []
    if not any(same(now, value) for value in entry.ours):
        text = (
            f"{name}: somebody else has set it to {now!r}, so it is left "
            f"(it was {entry.before!r}, we had set {entry.ours[-1]!r})"
        )
        return [Outcome(name, "left", text)]
    sysctls.write(name, entry.before)
    return [Outcome(name, "restored", f"{name}: restored to {entry.before!r} (was {now!r})")]
