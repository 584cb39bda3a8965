"""Monitors the receive buffers of running UDP servers and adapts their sizes.

`Tuner` adapts the sockets of running, unmodified programs. `AdaptiveBuffer` adapts a socket of the
calling program. `restore` undoes the changes of killed tuners. Measurements and changes are in Rust
(`crates/autotune`). This package contains the interface for users and the export of metrics.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

from sojourn._core import AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder
from sojourn.arguments import checked
from sojourn.own.text import alone
from sojourn.rcvbuf.state import Outcome, Snapshot
from sojourn.settings import Bytes, Option, Seconds, settings

__all__ = ["AdaptiveBuffer", "Settings", "Tuner", "restore", "state_folder"]

State = Annotated[
    Path | None,
    Option(
        "DIR",
        flag="--state",
        help="Folder for the journal of original buffer sizes. By default /run/sojourn/rcvbuf for "
        "root, and sojourn/rcvbuf in $XDG_STATE_HOME (~/.local/state) for other users.",
    ),
]


@settings
class Settings:
    """Sockets, policy and limits of a tuner.

    One of `pid`, `unit`, `port` and `everybody` selects the sockets, the last only with `dry_run`.
    Buffers of the default policy begin with 8 MB, which hold a burst of about 3500 full datagrams
    before the tuner has measured the server; a buffer takes memory only for waiting packets.
    """

    pid: Annotated[int | None, Option("PID", min=1)] = None
    """Follow a process and its descendants."""
    port: Annotated[int | None, Option("PORT", min=1, max=65_535)] = None
    """Follow the process that owns this port. With --pid or --systemd, follow only sockets on this
    port.
    """
    unit: Annotated[str | None, Option("UNIT", flag="--systemd")] = None
    """Follow all processes of a systemd unit, also after restarts."""
    everybody: Annotated[bool, Option(flag="--all")] = False
    """Watch every UDP socket of this machine, including containers, and change none."""
    policy: Annotated[str, Option("POLICY")] = "elastic ready 8mb"
    """Buffer policy (`sojourn list buffer`)."""
    budget: Bytes | None = None
    """Limit on the total size of the followed receive buffers, in addition to --share."""
    share: Annotated[float, Option("SHARE", min=0.001, max=1.0)] = 0.25
    """Limit on the total size of the followed receive buffers, as a share of the least of:
    available memory, available memory of the server's control group, and the kernel's UDP limit.
    """
    sockets: Annotated[int | None, Option(min=1, max=65_536)] = None
    """Largest number of watched sockets. By default 1024; 65536 with --all."""
    interval: Annotated[Seconds | None, Option(min=0.001, max=1.0)] = None
    """Time between two samples of a socket. By default 10ms; 1s with --all."""
    rescan: Annotated[Seconds | None, Option(min=0.05, max=60.0)] = None
    """Time between two searches for sockets. By default 1s; 5s with --all."""
    dry_run: bool = False
    """Report intended changes without making them."""
    state: State = None


@checked
class Tuner:
    """Monitors the UDP sockets of running programs and adapts their receive buffers.

    As a context manager, the tuner restores all sockets at the end.
    """

    def __init__(self, settings: Settings) -> None:
        self._tuner = RcvbufTuner(replace(settings, policy=alone("buffer", settings.policy)))

    @property
    def over(self) -> bool:
        """Returns whether the tuner has ended because the process that it followed has ended."""
        return self._tuner.over

    @property
    def recovered(self) -> list[Outcome]:
        """Changes of killed tuners that this tuner has undone at its start, with the results."""
        found: list[Outcome] = json.loads(self._tuner.recovered)
        return found

    def snapshot(self) -> Snapshot:
        """Returns the measurements: the key `sockets` has a list with an entry for each socket."""
        found: Snapshot = json.loads(self._tuner.snapshot())
        return found

    def stop(self) -> list[Outcome]:
        """Ends the tuner and restores all sockets; returns the result for each socket."""
        found: list[Outcome] = json.loads(self._tuner.stop())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@checked
def restore(state: Path | None = None) -> list[Outcome]:
    """Undoes the changes of killed tuners; returns the result for each socket."""
    found: list[Outcome] = json.loads(rcvbuf_restore(state))
    return found


def state_folder() -> str:
    """Returns the folder in which tuners record the original settings of sockets."""
    return str(rcvbuf_state_folder())
