"""Receive buffers of running UDP servers, watched and adapted from outside.

`Tuner` follows the sockets of a program that knows nothing of it; `AdaptiveBuffer` looks after a
socket of one's own; `restore` puts back what tuners that were killed had changed. What decides and
what acts is Rust (`crates/rcvbuf`); here is what people and monitoring see of it.
"""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, Self

from sojourn._core import AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder
from sojourn.own.text import alone

__all__ = ["POLICY", "AdaptiveBuffer", "Tuner", "restore", "state_folder"]

POLICY = "elastic ready 8mb"
"""The policy of a tuner. A size takes no memory until packets wait, so a first burst of some 3500
full datagrams is met before anything is known of the server."""


class Tuner:
    """Watches the UDP sockets of running programs, and adapts their receive buffers.

    Whose: a process and what it starts (`pid`), a unit of systemd (`unit`), whoever has a port
    (`port` alone), or everybody on this machine (`everybody`, with `dry_run`); `port` beside one
    of the others takes that port's sockets only. `policy` is one line, as for `BufferPolicy`. Times
    are seconds, sizes bytes as the kernel counts them.

    A context manager: at its end every socket is as it was.
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
        """Whether it has ended by itself, since the process that it follows has."""
        return self._tuner.over

    @property
    def recovered(self) -> list[dict[str, Any]]:
        """What tuners that were killed had left changed, and what became of it."""
        found: list[dict[str, Any]] = json.loads(self._tuner.recovered)
        return found

    def snapshot(self) -> dict[str, Any]:
        """What it knows: `sockets`, and what concerns all of them."""
        found: dict[str, Any] = json.loads(self._tuner.snapshot())
        return found

    def stop(self) -> list[dict[str, Any]]:
        """Ends it and puts everything back; what became of each socket."""
        found: list[dict[str, Any]] = json.loads(self._tuner.stop())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def restore(state: str | PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Puts back what tuners that were killed had changed; what became of each socket."""
    found: list[dict[str, Any]] = json.loads(rcvbuf_restore(state))
    return found


def state_folder() -> str:
    """Folder in which tuners keep what sockets were like."""
    return str(rcvbuf_state_folder())
