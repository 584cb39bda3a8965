"""What is said of a machine: findings, in groups of what a person wants to do."""

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
"""What a person may want to do, and the commands for it."""


@dataclass(frozen=True)
class Finding:
    """One thing that is there or not."""

    name: str
    state: State
    found: str
    """What was found: a version, or what is missing."""
    remedy: str = ""
    """The command that adds it, or what else would."""
    needed: bool = True
    """Whether without it nothing of its group works."""
    why: str = ""
    """Why it matters, where that does not go without saying."""


@dataclass(frozen=True)
class Group:
    """What a person wants to do."""

    name: str
    what: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """`no` if something is missing that all of it needs, `partly` if anything else is."""
        if any(f.needed and f.state == "no" for f in self.findings):
            return "no"
        lacking = any(f.state == "no" or (f.needed and f.state != "yes") for f in self.findings)
        return "partly" if lacking else "yes"

    def as_dict(self) -> dict[str, Any]:
        """It as plain data."""
        return {
            "name": self.name,
            "what": self.what,
            "verdict": self.verdict,
            "findings": [asdict(f) for f in self.findings],
        }
