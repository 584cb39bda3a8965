"""Export of a tuner's measurements to Prometheus by a small HTTP server."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from sojourn.rcvbuf.state import Snapshot, SocketState
from sojourn.serving import PageServer

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PREFIX = "sojourn_rcvbuf_"
"""Beginning of the names of all metrics."""
LABELS = ("local", "process", "pid", "unit", "container", "socket")
"""Labels of the metrics of a socket."""

SIZES: tuple[tuple[str, str, Literal["occupied", "peak_occupied", "size", "peak_size"]], ...] = (
    ("occupied_bytes", "Memory of the packets in a receive buffer, in bytes.", "occupied"),
    ("occupied_peak_bytes", "Largest memory of packets so far, in bytes.", "peak_occupied"),
    ("size_bytes", "Size of a receive buffer in bytes, as in getsockopt.", "size"),
    ("size_peak_bytes", "Largest size of a receive buffer so far, in bytes.", "peak_size"),
)
"""Name, help and source of the metrics of a socket's sizes."""

COUNTERS: tuple[tuple[Literal["softnet_drops", "device_drops", "looks", "late"], str], ...] = (
    ("softnet_drops", "Packets dropped by full backlogs of CPUs, before any socket."),
    ("device_drops", "Packets dropped by network devices, before any socket."),
    ("looks", "Samples of all sockets."),
    ("late", "Samples that were late by more than the time between two samples."),
)
"""Name and help of the counters of a tuner."""


class NoMetrics(RuntimeError):
    """The package prometheus-client is not installed."""


def families(snapshot: Snapshot) -> Iterator[Metric]:
    """Yields the metrics of a tuner's snapshot."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    sockets = snapshot["sockets"]
    for name, text, key in SIZES:
        gauge = GaugeMetricFamily(PREFIX + name, text, labels=LABELS)
        for one in sockets:
            if (size := one[key]) is not None:
                gauge.add_metric(_labels(one), size)
        yield gauge
    tunable = GaugeMetricFamily(
        PREFIX + "tunable", "1 if a socket can be changed, 0 if only monitored.", labels=LABELS
    )
    drops = CounterMetricFamily(
        PREFIX + "drops",
        "Packets dropped at a socket since the start of the tuner.",
        labels=(*LABELS, "reason"),
    )
    changes = CounterMetricFamily(
        PREFIX + "changes", "Changes of the size of a receive buffer.", labels=LABELS
    )
    needed = GaugeMetricFamily(
        PREFIX + "needed_bytes",
        "Size in bytes that the worst burst needed; lost packets count "
        "as the smallest packets (least) or as full frames (most).",
        labels=(*LABELS, "bound"),
    )
    for one in sockets:
        labels = _labels(one)
        for bound in ("least", "most"):
            needed.add_metric([*labels, bound], one["need"][bound])
        tunable.add_metric(labels, float(one["refusal"] is None))
        changes.add_metric(labels, one["changes"])
        for reason, count in one["drops"].items():
            drops.add_metric([*labels, reason], count)
    yield from (tunable, drops, changes, needed)
    for name, text, number in (
        ("sockets", "Sockets that the tuner monitors.", len(sockets)),
        ("left_out", "Sockets beyond the limit, not monitored.", snapshot["left_out"]),
        ("budget_bytes", "Limit on the sum of all receive buffers, in bytes.", snapshot["budget"]),
        ("memory_short", "1 while memory is short and sizes are reduced.", snapshot["short"]),
    ):
        yield GaugeMetricFamily(PREFIX + name, text, value=float(number))
    if snapshot["pressure"] is not None:
        yield GaugeMetricFamily(
            PREFIX + "memory_pressure_ratio",
            "Share of time in which tasks waited for memory (PSI, 10 s).",
            value=snapshot["pressure"],
        )
    for counter, text in COUNTERS:
        yield CounterMetricFamily(PREFIX + counter, text, value=snapshot[counter])
    yield CounterMetricFamily(
        PREFIX + "cpu_seconds", "CPU time of the tuner's loop.", value=snapshot["cpu"]
    )


def _labels(one: SocketState) -> list[str]:
    known = one["cookie"] if one["cookie"] is not None else one["inode"]
    pid = "" if one["pid"] is None else str(one["pid"])
    return [one["local"], one["process"], pid, one["unit"], one["container"], str(known)]


def page(snapshot: Snapshot) -> bytes:
    """Returns the metrics of a snapshot in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Moment(Collector):
        def collect(self) -> Iterator[Metric]:
            return families(snapshot)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Moment())
    return generate_latest(registry)


def address(text: str) -> tuple[str, int]:
    """Returns address and port from `9441`, `127.0.0.1:9441` or `[::1]:9441`.

    The default address is 127.0.0.1. Raises `ValueError` if a part is not valid.
    """
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else "127.0.0.1"
    try:
        ip_address(host)
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number <= 65_535 or not port.isdecimal():
        raise ValueError(f"must be a PORT or ADDRESS:PORT, such as 127.0.0.1:9441; found {text!r}")
    return host, number


class Server(PageServer):
    """An HTTP server that answers `GET /metrics` during the context."""

    connections = 4
    seconds = 5.0

    def __init__(self, where: tuple[str, int], snapshot: Callable[[], Snapshot]) -> None:
        try:
            import prometheus_client  # noqa: F401
        except ImportError:
            raise NoMetrics(
                "--metrics requires prometheus-client: pip install 'sojourn[metrics]'"
            ) from None
        own = [] if ip_address(where[0]).is_loopback else [socket.gethostname(), socket.getfqdn()]
        self.names = {name.lower() for name in own}
        self.snapshot = snapshot
        super().__init__(where)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Returns type and content of the metrics."""
        if path != "metrics":
            return None
        return "text/plain; version=0.0.4; charset=utf-8", page(self.snapshot())
