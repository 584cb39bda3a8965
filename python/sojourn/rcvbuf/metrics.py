"""Export of a tuner's measurements to Prometheus by a small HTTP server."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Collection, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from sojourn.rcvbuf.state import Snapshot, SocketState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PREFIX = "sojourn_rcvbuf_"
"""Beginning of the names of all metrics."""
CONNECTIONS = 4
"""Maximum number of simultaneous connections; further connections are closed."""
PATIENCE = 5.0
"""Time limit for a client's request, in seconds."""
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


def is_own(host: str, names: Collection[str]) -> bool:
    """Returns whether the header `Host` of a request names this machine.

    `names` are the machine's names. A Web page of another site can make a browser connect to this
    machine by a name of its own (DNS rebinding), but not by an address or by these names.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name in names:
            return True
        ip_address(name)
    except ValueError:
        return False
    return True


class Server:
    """An HTTP server that answers `GET /metrics` during the context."""

    def __init__(self, where: tuple[str, int], snapshot: Callable[[], Snapshot]) -> None:
        try:
            import prometheus_client  # noqa: F401
        except ImportError:
            raise NoMetrics(
                "--metrics requires prometheus-client: pip install 'sojourn[metrics]'"
            ) from None
        room = threading.BoundedSemaphore(CONNECTIONS)
        own = [] if ip_address(where[0]).is_loopback else [socket.gethostname(), socket.getfqdn()]
        names = {name.lower() for name in own}

        class Handler(BaseHTTPRequestHandler):
            timeout = PATIENCE
            server_version = "sojourn"
            sys_version = ""

            def do_GET(self) -> None:
                hosts = self.headers.get_all("Host") or []
                if len(hosts) != 1 or not is_own(hosts[0].lower(), names):
                    self.send_error(HTTPStatus.FORBIDDEN, "use an address or this machine's name")
                    return
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(HTTPStatus.NOT_FOUND, "only /metrics exists")
                    return
                body = page(snapshot())
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        class Listener(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET

            def process_request(self, request: Any, client_address: Any) -> None:
                if not room.acquire(blocking=False):
                    self.shutdown_request(request)
                    return
                super().process_request(request, client_address)

            def process_request_thread(self, request: Any, client_address: Any) -> None:
                try:
                    super().process_request_thread(request, client_address)
                finally:
                    room.release()

            def handle_error(self, *_: Any) -> None:
                """Ignores errors of connections, such as a client that disconnects early."""

        self._listener = Listener(where, Handler)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, name="metrics", daemon=True
        )

    @property
    def address(self) -> str:
        """Returns address and port of the listening socket."""
        host, port = self._listener.server_address[:2]
        text = str(host)
        return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
