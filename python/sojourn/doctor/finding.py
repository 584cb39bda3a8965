"""Findings of an examination, in groups by the user's task."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from sojourn.data import Object

State = Literal["yes", "no", "unknown"]
Verdict = Literal["yes", "partly", "no"]

GROUPS = {
    "simulate": "run, compare, study, paper",
    "play": "play",
    "real-runs": "lab run, compare --real, wire",
    "linux": "Linux itself in virtual time: compare --confirm, --engine linux, differ",
    "buffers": "adapt receive buffers: rcvbuf, udp",
    "balance": "balance servers: lb serve, flows to balancers in lab run",
    "stores": "replicated stores: advise store, lab run with [store], store measure",
    "cluster": "studies on a cluster: --on",
    "tune": "tune search",
}
"""Tasks of a user, with the commands for each task."""


@dataclass(frozen=True)
class Finding:
    """The state of one feature of the machine."""

    name: str
    state: State
    found: str
    """Description: the version, or the missing part."""
    remedy: str = ""
    """Command or advice that enables the feature; empty if none is necessary or known."""
    needed: bool = True
    """Whether the task is impossible without the feature."""
    why: str = ""
    """Explanation of why the feature matters; empty if it is obvious."""


@dataclass(frozen=True)
class Group:
    """A task of a user, with the findings on its features."""

    name: str
    what: str
    """Commands of the task."""
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """`no` if a needed feature is missing, `partly` if only optional ones are, otherwise `yes`.

        A needed feature whose state is unknown gives `partly`.
        """
        if any(f.needed and f.state == "no" for f in self.findings):
            return "no"
        lacking = any(f.state == "no" or (f.needed and f.state != "yes") for f in self.findings)
        return "partly" if lacking else "yes"

    def as_dict(self) -> Object:
        """Returns the fields as a dictionary."""
        return {
            "name": self.name,
            "what": self.what,
            "verdict": self.verdict,
            "findings": [asdict(f) for f in self.findings],
        }
