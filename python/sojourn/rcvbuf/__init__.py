"""Monitors and adapts the receive buffers of running UDP servers from outside.

`Tuner` follows the sockets of an unmodified program. `AdaptiveBuffer` adapts a socket of the
calling program. `restore` undoes the changes of tuners that were killed. The decisions and the
actions are in Rust (`crates/rcvbuf`); this package contains the interface for users and for
monitoring.
"""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, Self

from sojourn._core import AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder
from sojourn.own.text import alone

__all__ = ["POLICY", "AdaptiveBuffer", "Tuner", "restore", "state_folder"]

POLICY = "elastic ready 8mb"
"""Default policy of a tuner. A larger size takes no memory until packets wait, so the buffer holds
a first burst of about 3500 full datagrams before the tuner has measured the server.
"""


class Tuner:
    """Monitors the UDP sockets of running programs and adapts their receive buffers.

    The sockets are those of a process and its children (`pid`), of a unit of systemd (`unit`), of
    the process with a port (`port` alone), or of all processes on this machine (`everybody`, with
    `dry_run`). `port` together with another selection limits it to sockets on that port. `policy`
    is one line, as for `BufferPolicy`. Times are in seconds, sizes in bytes as the kernel counts
    them.

    A context manager: its end restores all sockets.
    """

    def __init__(
        self,
        policy: str = POLICY,
        *,
        pid: int | None = None,
        unit: str | None = None,
        port: int | None = None,
        everybody: bool = False,
        interval: float = 0.01,
        rescan: float = 1.0,
        dry_run: bool = False,
        budget: int | None = None,
        share: float = 0.25,
        sockets: int = 1024,
        state: str | PathLike[str] | None = None,
    ) -> None:
        self._tuner = RcvbufTuner(
            alone("buffer", policy),
            pid=pid,
            unit=unit,
            port=port,
            everybody=everybody,
            interval=interval,
            rescan=rescan,
            dry_run=dry_run,
            budget=budget,
            share=share,
            sockets=sockets,
            state=state,
        )

    @property
    def over(self) -> bool:
        """Returns whether the tuner has ended because the followed process has ended."""
        return self._tuner.over

    @property
    def recovered(self) -> list[dict[str, Any]]:
        """Changes of killed tuners that this tuner found, with the result of undoing each."""
        found: list[dict[str, Any]] = json.loads(self._tuner.recovered)
        return found

    def snapshot(self) -> dict[str, Any]:
        """Returns the state of the tuner: `sockets`, and values that concern all sockets."""
        found: dict[str, Any] = json.loads(self._tuner.snapshot())
        return found

    def stop(self) -> list[dict[str, Any]]:
        """Ends the tuner and restores all sockets; returns the result for each socket."""
        found: list[dict[str, Any]] = json.loads(self._tuner.stop())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def restore(state: str | PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Undoes the changes of killed tuners; returns the result for each socket."""
    found: list[dict[str, Any]] = json.loads(rcvbuf_restore(state))
    return found


def state_folder() -> str:
    """Returns the folder in which tuners record the original settings of sockets."""
    return str(rcvbuf_state_folder())
