"""Guarantees of consistency levels with replicas in several data centres, by counting.

A level requires a number of answers of any replicas, or numbers of answers of certain data centres.
An acknowledged write is certainly on the replicas whose answers it required. A read certainly sees
a write if no set of answers that the read accepts avoids every set that the write accepts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from sojourn.stats.promises import Lack, plural
from sojourn.stats.quorum import needed

LOCAL, EACH = "local_", "each_"


@dataclass(frozen=True)
class Need:
    """The answers that a request needs."""

    total: int
    """Number of answers."""
    sites: tuple[int, ...] | None = None
    """Number of answers of each data centre; `None` if any replicas may answer."""


@dataclass(frozen=True)
class Sites:
    """The replicas of each data centre, the levels, and the data centres with clients.

    With `near`, coordinators are in the data centre of their client, as with the policy `dc-aware`.
    """

    replicas: tuple[int, ...]
    """Number of replicas in each data centre."""
    writes: str
    """Consistency level of writes."""
    reads: str
    """Consistency level of reads."""
    clients: tuple[int, ...]
    """Numbers of the data centres with coordinators: those of clients if `near`."""
    near: bool = True
    """Whether coordinators are in the data centre of their client."""

    def need(self, level: str, client: int) -> Need:
        """Returns the answers that a request of a client in the data centre `client` needs."""
        if level.startswith(LOCAL):
            count = needed(level.removeprefix(LOCAL), max(self.replicas[client], 1))
            return Need(count, tuple(count * (s == client) for s in range(len(self.replicas))))
        if level.startswith(EACH):
            counts = tuple(n and needed(level.removeprefix(EACH), n) for n in self.replicas)
            return Need(sum(counts), counts)
        return Need(needed(level, sum(self.replicas)))

    def _needs(self, level: str) -> Iterator[Need]:
        return (self.need(level, client) for client in self.clients)

    @property
    def copies(self) -> int:
        """Returns the number of replicas that certainly have an acknowledged write."""
        return min(need.total for need in self._needs(self.writes))

    def sees(self, writer: int, reader: int) -> bool:
        """Returns whether a read certainly sees a write of a client in another data centre."""
        write, read = self.need(self.writes, writer), self.need(self.reads, reader)
        if write.sites is None or read.sites is None:
            return write.total + read.total > sum(self.replicas)
        sites = zip(write.sites, read.sites, self.replicas, strict=True)
        return any(w + r > n for w, r, n in sites)

    @property
    def own(self) -> bool:
        """Returns whether each read sees all acknowledged writes of its own data centre."""
        return all(self.sees(c, c) for c in self.clients) if self.near else self.everywhere

    @property
    def everywhere(self) -> bool:
        """Returns whether each read sees all acknowledged writes."""
        return all(self.sees(a, b) for a in self.clients for b in self.clients)

    def works(self, level: str, down: int) -> bool:
        """Returns whether requests succeed with any `down` replicas of a record down."""
        whole = sum(self.replicas)
        return all(
            need.total <= whole - down
            if need.sites is None
            else all(k <= n - down for k, n in zip(need.sites, self.replicas, strict=True) if k)
            for need in self._needs(level)
        )

    def keeps(self, lost: int) -> bool:
        """Returns whether each acknowledged write survives the loss of any `lost` data centres."""
        return all(
            self._outside(need, gone) > 0
            for gone in self._groups(lost)
            for need in self._needs(self.writes)
        )

    def _outside(self, need: Need, gone: Sequence[int]) -> int:
        """Returns the number of certain replicas of a write outside some data centres."""
        if need.sites is None:
            return need.total - min(need.total, sum(self.replicas[s] for s in gone))
        return sum(k for s, k in enumerate(need.sites) if s not in gone)

    def serves(self, level: str, lost: int) -> bool:
        """Returns whether clients elsewhere succeed while any `lost` data centres are lost."""
        return all(
            need.total <= sum(n for s, n in enumerate(self.replicas) if s not in gone)
            if need.sites is None
            else not any(need.sites[s] for s in gone)
            for gone in self._groups(lost)
            for client in self.clients
            if client not in gone
            for need in [self.need(level, client)]
        )

    def _groups(self, count: int) -> Iterator[tuple[int, ...]]:
        held = [s for s, n in enumerate(self.replicas) if n]
        return combinations(held, min(count, len(held)))

    def lacks(self, survive: int, down: int, *, overlap: bool = True) -> dict[Lack, str]:
        """Returns the requirements that are not met, in words, as `Promise.lacks`.

        `overlap` concerns reads and writes of one data centre.
        """
        found: dict[Lack, str] = {}
        if self.copies <= survive:
            found["durable"] = (
                f"an acknowledged write is on {plural(self.copies, 'node')} for certain, and lost "
                f"with {'it' if self.copies == 1 else 'them'}"
            )
        if overlap and not self.own:
            client = self.clients[0]
            need = self.need(self.reads, client)
            of = sum(self.replicas) if need.sites is None else self.replicas[client]
            found["own-writes"] = (
                f"a read asks {need.total} of {of} replicas and may miss an acknowledged write"
            )
        for lack, what, level in (
            ("write-down", "writes", self.writes),
            ("read-down", "reads", self.reads),
        ):
            if not self.works(level, down):
                found[lack] = f"{what} fail with {plural(down, 'node')} down"  # type: ignore[index]
        return found

    def guarantees(self) -> dict[str, bool]:
        """Returns what holds while a data centre is lost, and which writes reads see.

        The result is empty if a single data centre has replicas.
        """
        if sum(n > 0 for n in self.replicas) < 2:
            return {}
        return {
            "writes_kept": self.keeps(1),
            "writes_served": self.serves(self.writes, 1),
            "reads_served": self.serves(self.reads, 1),
            "reads_see_own_site": self.own,
            "reads_see_all_sites": self.everywhere,
        }

    def notes(self) -> list[str]:
        """Returns what is lost or fails with a data centre, and what other data centres miss."""
        holds = self.guarantees()
        found = []
        if not holds.get("writes_kept", True):
            found.append("an acknowledged write may be lost together with a data centre")
        failing = [what for what in ("writes", "reads") if not holds.get(f"{what}_served", True)]
        if failing:
            found.append(f"{' and '.join(failing)} fail everywhere while a data centre is down")
        if not holds.get("reads_see_all_sites", True):
            found.append(
                "a read in another data centre than the write may miss it until the write has "
                "arrived there"
            )
        return found

    def unavailable(self, level: str, up: float) -> float:
        """Returns the largest probability, of all clients, that too few replicas are up.

        Nodes are up independently with the probability `up`.
        """

        def too_few(n: int, wanted: int) -> float:
            return sum(comb(n, i) * up**i * (1 - up) ** (n - i) for i in range(wanted))

        worst = 0.0
        for need in self._needs(level):
            fine = 1.0
            parts = (
                [(sum(self.replicas), need.total)]
                if need.sites is None
                else zip(self.replicas, need.sites, strict=True)
            )
            for n, k in parts:
                fine *= 1 - too_few(n, k)
            worst = max(worst, 1 - fine)
        return worst
