"""Findings about a machine, in groups by the user's purpose."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["yes", "no", "unknown"]
Verdict = Literal["yes", "partly", "no"]

GROUPS = {
    "simulate": "run, compare, study, paper",
    "play": "play",
    "real-runs": "lab run, compare --real, wire",
    "linux": "Linux's own network code in virtual time: linux build",
    "buffers": "adapt receive buffers: rcvbuf, udp",
    "balance": "balance servers: lb serve, flows to balancers in lab run",
    "stores": "replicated stores: advise store, lab run with [store], store measure",
    "cluster": "studies on a cluster: --on",
    "tune": "tune search",
}
"""Purposes of a user, and the commands for them."""


@dataclass(frozen=True)
class Finding:
    """A feature that is available or missing."""

    name: str
    state: State
    found: str
    """Result: a version, or the missing part."""
    remedy: str = ""
    """Command or advice that adds it."""
    needed: bool = True
    """Whether its group does not work at all without it."""
    why: str = ""
    """Reason why it matters, if it is not obvious."""


@dataclass(frozen=True)
class Group:
    """A purpose of a user, with its findings."""

    name: str
    what: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """`no` if a necessary feature is missing, `partly` if another one is, otherwise `yes`."""
        if any(f.needed and f.state == "no" for f in self.findings):
            return "no"
        lacking = any(f.state == "no" or (f.needed and f.state != "yes") for f in self.findings)
        return "partly" if lacking else "yes"

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary."""
        return {
            "name": self.name,
            "what": self.what,
            "verdict": self.verdict,
            "findings": [asdict(f) for f in self.findings],
        }
