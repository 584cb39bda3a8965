"""Monitors the receive buffers of running UDP servers and adapts their sizes.

`Tuner` adapts the sockets of running, unmodified programs. `AdaptiveBuffer` adapts a socket of the
calling program. `restore` undoes the changes of killed tuners. Measurements and changes are in Rust
(`crates/autotune`). This package contains the interface for users and the export of metrics.
"""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, Self

from sojourn._core import AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder
from sojourn.own.text import alone

__all__ = ["POLICY", "AdaptiveBuffer", "Tuner", "restore", "state_folder"]

POLICY = "elastic ready 8mb"
"""Default policy of a tuner. Buffers begin with 8 MB, which hold a burst of about 3500 full
datagrams before the tuner has measured the server. A buffer takes memory only for waiting packets.
"""


class Tuner:
    """Monitors the UDP sockets of running programs and adapts their receive buffers.

    One argument selects the sockets: `pid` those of a process and its children, `unit` those of a
    unit of systemd, `port` those on this port, `everybody` those of all processes (only with
    `dry_run`). With another selection, `port` limits it to sockets on this port. `policy` is a text
    as for `BufferPolicy`. With `dry_run`, no socket is changed. Times are in seconds. Sizes are in
    bytes as the kernel counts them.

    As a context manager, the tuner restores all sockets at the end.
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
        """Returns whether the tuner has ended because the process that it followed has ended."""
        return self._tuner.over

    @property
    def recovered(self) -> list[dict[str, Any]]:
        """Changes of killed tuners that this tuner has undone at its start, with the results."""
        found: list[dict[str, Any]] = json.loads(self._tuner.recovered)
        return found

    def snapshot(self) -> dict[str, Any]:
        """Returns the measurements: the key `sockets` has a list with an entry for each socket."""
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
