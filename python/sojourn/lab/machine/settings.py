"""Settings of the whole machine that laboratories change and restore, with a journal.

Most settings of a laboratory belong to a namespace and disappear with it (`Host.sysctl`). A few
sysctls exist only once per machine, such as `net.core.rmem_max` and
`net.ipv4.tcp_allowed_congestion_control`. A laboratory records the value of such a sysctl in the
journal and changes it. The last laboratory that uses the sysctl restores it. After killed
laboratories, the next laboratory or `sojourn lab clean` restores it. If another program has changed
the sysctl meanwhile, it is not restored, and this is reported.
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
        """Returns a value that satisfies the requirement, with the smallest change of `value`."""
        ...


@dataclass(frozen=True)
class AtLeast:
    """The requirement of a minimum, such as `AtLeast(4 << 20)`."""

    number: int

    def met(self, value: str) -> bool:
        """Returns whether `value` is at least the minimum."""
        return int(value) >= self.number

    def change(self, value: str) -> str:
        """Returns the larger one of `value` and the minimum."""
        return str(max(int(value), self.number))


@dataclass(frozen=True)
class Includes:
    """The requirement that a list contains words, such as `Includes(("cubic",))`."""

    words: tuple[str, ...]

    def met(self, value: str) -> bool:
        """Returns whether `value` contains all words."""
        return set(self.words) <= set(value.split())

    def change(self, value: str) -> str:
        """Returns `value` with the missing words at the end."""
        return " ".join(dict.fromkeys([*value.split(), *self.words]))


@dataclass(frozen=True)
class Exactly:
    """The requirement of an exact value.

    Two laboratories that require different values cannot run at the same time.
    """

    value: str

    def met(self, value: str) -> bool:
        """Returns whether `value` is the required value."""
        return same(value, self.value)

    def change(self, value: str) -> str:
        """Returns the required value; `value` if it differs only by white space."""
        return value if self.met(value) else self.value


@dataclass(frozen=True)
class Outcome:
    """Outcome of putting back a setting that a laboratory had changed."""

    name: str
    action: Literal["restored", "left", "in use", "removed"]
    text: str
    """Message for the user."""


class Sysctls:
    """The sysctls of the machine, as files below the folder `root`."""

    def __init__(self, root: Path = Path("/proc/sys")) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Returns the path of a sysctl; raises `LabError` unless it has a valid `net.` name."""
        if not _NAME.fullmatch(name):
            raise LabError(
                "the name of a network sysctl must be `net.` and names joined by dots, of letters, "
                f"digits, `_` and `-`; found {name!r}"
            )
        return self.root / name.replace(".", "/")

    def read(self, name: str) -> str:
        """Returns the value of a sysctl, with single spaces; raises `Unavailable`."""
        try:
            return " ".join(self.path(name).read_text(encoding="ascii").split())
        except OSError as error:
            raise Unavailable(f"the sysctl {name} cannot be read ({error.strerror})") from error

    def write(self, name: str, value: str) -> None:
        """Sets a sysctl; raises `Unavailable` if the kernel refuses."""
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
        """Returns whether this process may set a sysctl."""
        return os.access(self.path(name), os.W_OK)


class Settings:
    """A context manager that changes sysctls of the machine as a laboratory requires.

    `demands` has the requirements by the name of the sysctl. Sysctls that satisfy their requirement
    are not changed. All requirements are checked before any change. `changed` has the changed
    sysctls, with their values before and after. `notes` has messages on sysctls that were restored
    after killed runs, and on sysctls that were not restored.
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
        """Changes the sysctls that do not satisfy their requirements.

        Raises `Unavailable` without permission, `LabError` if another laboratory requires another
        value.
        """
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
                    f"the sysctl {name} must be {demand.value!r}, but a running laboratory "
                    f"(process {who}) requires {now[name]!r}"
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
                entry.before = now[name]  # set by another program since then
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
                    raise Unavailable(f"the sysctl {name} was set to {value!r}, but is {after!r}")
                self.changed[name] = (now[name], after)
        except BaseException:
            self._release(journal, entries)
            raise

    def release(self) -> None:
        """Ends this use of the sysctls, and restores those that no other laboratory uses.

        Further calls have no effect.
        """
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
    """Returns whether two values of a sysctl are equal; words may be in any order."""
    one, other = first.split(), second.split()
    if all(re.fullmatch(r"-?\d+", word) for word in one + other):
        return [int(word) for word in one] == [int(word) for word in other]
    return sorted(one) == sorted(other)


def recover(
    journal: Journal | None = None, sysctls: Sysctls | None = None, *, force: bool = False
) -> list[Outcome]:
    """Restores the sysctls that killed runs changed, with `force` also those of running ones."""
    if journal is None:
        try:
            journal = Journal()
        except NoJournal:
            return []  # without a folder for the journal, no run has changed a sysctl
    with journal.locked(create=False) as entries:
        if entries is None:
            return []
        if force:
            for entry in entries.values():
                entry.owners = []
        return _sweep(journal, entries, sysctls or Sysctls(), with_used=True)


def _sweep(
    journal: Journal, entries: dict[str, Entry], sysctls: Sysctls, *, with_used: bool = False
) -> list[Outcome]:
    """Restores the sysctls that no running process uses, and removes their entries.

    Returns what happened to the sysctls; with `with_used` also a message on each sysctl in use.
    """
    outcomes: list[Outcome] = []
    for name, entry in list(entries.items()):
        entry.owners = [owner for owner in entry.owners if not owner.gone()]
        if entry.owners:
            if with_used:
                pids = ", ".join(str(pid) for pid in sorted({o.pid for o in entry.owners}))
                outcomes.append(
                    Outcome(name, "in use", f"{name}: in use by process {pids}, not restored")
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
        return [Outcome(name, "left", f"{name}: no longer exists")]
    now = sysctls.read(name)
    if same(now, entry.before):
        return []
    if not any(same(now, value) for value in entry.ours):
        text = (
            f"{name}: not restored, because another program has set it to {now!r} "
            f"(originally {entry.before!r}, set to {entry.ours[-1]!r} by a laboratory)"
        )
        return [Outcome(name, "left", text)]
    sysctls.write(name, entry.before)
    return [Outcome(name, "restored", f"{name}: restored to {entry.before!r} (was {now!r})")]
