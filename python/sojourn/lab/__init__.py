"""The laboratory: a network of real programs on this machine, which leaves nothing behind.

`Sandbox` starts a small process of ours, *init*, in namespaces of its own. Hosts, links and
programs live inside of it; when init dies, or this process does, the kernel removes all of them.
`Host` is a network namespace without a name, `Process` a program in it. `Settings` changes what
exists only once in the machine, with a journal, and puts it back.

What stands in `sandbox.inside` runs there and imports nothing but the standard library until a
network is configured (pyroute2, the extra `sojourn[lab]`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.lab.errors import LabError, RequestFailed, SandboxDied, Unavailable
    from sojourn.lab.machine.settings import Settings
    from sojourn.lab.sandbox.host import Host
    from sojourn.lab.sandbox.process import Process
    from sojourn.lab.sandbox.sandbox import Sandbox

__all__ = [
    "Host",
    "LabError",
    "Process",
    "RequestFailed",
    "Sandbox",
    "SandboxDied",
    "Settings",
    "Unavailable",
]

_HOME = {
    "Host": "sandbox.host",
    "LabError": "errors",
    "Process": "sandbox.process",
    "RequestFailed": "errors",
    "Sandbox": "sandbox.sandbox",
    "SandboxDied": "errors",
    "Settings": "machine.settings",
    "Unavailable": "errors",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"sojourn.lab.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
