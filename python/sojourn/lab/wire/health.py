"""The wire's report on its own work, by which the validity of a run is judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Health:
    """Lateness of a wire's packets, packets lost outside the links, and use of the processor.

    Lateness is in seconds; `None` if no packet was written.
    """

    lateness_p50: float | None = None
    lateness_p99: float | None = None
    lateness_p999: float | None = None
    lateness_max: float | None = None
    reads: int = 0
    """Number of reads of devices."""
    writes: int = 0
    """Number of writes to devices."""
    refused: int = 0
    """Packets that a device did not accept, for example because its host's queue was full."""
    overflowed: int = 0
    """Packets lost because the network already held the maximum number of packets."""
    unroutable: int = 0
    """Packets to addresses of no host in the plan."""
    malformed: int = 0
    """Frames that could not be read, or whose packets are longer than the wire's MTU."""
    cut: int = 0
    """Packets discarded at hosts because of a partition."""
    cpu_share: float = 0.0
    """CPU time of the wire's thread, as a share of the real time."""
