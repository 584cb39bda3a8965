"""Settings of the whole machine that a laboratory needs: changed with a journal, then restored.

Most settings of a laboratory belong to a namespace and end with it (`Host.sysctl`). A few sysctls
exist once per machine: `net.core.rmem_max`, `net.ipv4.tcp_allowed_congestion_control`. Laboratories
record them in the journal and change them while in use. The last user restores them. If users were
killed, the next laboratory or `sojourn lab clean` restores them. A value that another program has
changed meanwhile is not restored, and this is reported.
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
    """A requirement on a setting's value."""

    def met(self, value: str) -> bool:
        """Returns whether `value` satisfies the requirement."""
        ...

    def change(self, value: str) -> str:
        """Returns the value nearest to `value` that satisfies the requirement."""
        ...


@dataclass(frozen=True)
class AtLeast:
    """A minimum, such as `AtLeast(4 << 20)`."""

    number: int

    def met(self, value: str) -> bool:
        """Returns whether `value` is large enough."""
        return int(value) >= self.number

    def change(self, value: str) -> str:
        """Returns the smallest sufficient value."""
        return str(max(int(value), self.number))


@dataclass(frozen=True)
class Includes:
    """Words that a list must contain, such as `Includes(("cubic",))`."""

    words: tuple[str, ...]

    def met(self, value: str) -> bool:
        """Returns whether `value` contains all words."""
        return set(self.words) <= set(value.split())

    def change(self, value: str) -> str:
        """Returns the existing words and the missing words."""
        return " ".join(dict.fromkeys([*value.split(), *self.words]))


@dataclass(frozen=True)
class Exactly:
    """An exact value; two laboratories with different values cannot run at the same time."""

    value: str

    def met(self, value: str) -> bool:
        """Returns whether `value` is the required one."""
        return same(value, self.value)

    def change(self, value: str) -> str:
        """Returns the required value."""
        del value
        return self.value


@dataclass(frozen=True)
class Outcome:
    """Result for a setting that a laboratory had changed."""

    name: str
    action: Literal["restored", "left", "in use", "removed"]
    text: str
    """Description of the result."""


class Sysctls:
    """The sysctls of the machine, below `root`."""

    def __init__(self, root: Path = Path("/proc/sys")) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Returns the file of a sysctl; raises `LabError` for sysctls outside the network."""
        if not _NAME.fullmatch(name):
            raise LabError(f"{name!r} is no sysctl of the network")
        return self.root / name.replace(".", "/")

    def read(self, name: str) -> str:
        """Returns the value, with single spaces."""
        try:
            return " ".join(self.path(name).read_text(encoding="ascii").split())
        except OSError as error:
            raise Unavailable(f"the sysctl {name} cannot be read ({error.strerror})") from error

    def write(self, name: str, value: str) -> None:
        """Sets the value."""
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
        """Returns whether this process may set the sysctl."""
        return os.access(self.path(name), os.W_OK)


class Settings:
    """A context manager that adapts the machine's settings to a laboratory's demands.

    `demands` has the requirements by sysctl. Settings that satisfy them are not touched. All
    demands are checked before any setting is changed. `changed` lists changed settings with the
    values before and after. `notes` reports what killed runs had left changed, and settings that
    were not restored.
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
        """Changes the settings that do not satisfy their demands."""
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
                entry.before = now[name]  # set by another program; restored like any other value
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
        """Restores the settings without further users; has no effect a second time."""
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
    """Returns whether two values of a sysctl are equal; the order matters for numbers only."""
    one, other = first.split(), second.split()
    if all(re.fullmatch(r"-?\d+", word) for word in one + other):
        return [int(word) for word in one] == [int(word) for word in other]
    return sorted(one) == sorted(other)


def recover(
    journal: Journal | None = None, sysctls: Sysctls | None = None, *, force: bool = False
) -> list[Outcome]:
    """Restores settings of killed runs; settings of living runs stay, unless `force`."""
    if journal is None:
        try:
            journal = Journal()
        except NoJournal:
            return []  # without a place for a journal there are no entries
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
    """Restores and removes settings without a living user; `told` also reports the others."""
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
