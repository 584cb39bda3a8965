"""Settings of a wire between namespaces or interfaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sojourn.settings import Bytes, Option, Seconds, settings


@settings
class Wire:
    """A wire as a whole: its name, duration, created devices and capture."""

    name: Annotated[str, Option("NAME")] = "link"
    """Name of the wire and of its links."""
    duration: Seconds | None = None
    """Stop after this time. By default run until interrupted."""
    seed: Annotated[int, Option(min=0)] = 1
    """Seed of the link's random draws."""
    mtu: int = 1500
    """Largest packet in bytes, without the Ethernet header."""
    tap: bool = False
    """Create Ethernet devices (TAP) instead of IP devices (TUN)."""
    device: Annotated[str | None, Option("DEV")] = None
    """Name of the created devices. By default wireN, with a number N."""
    addresses: Annotated[str | None, Option("A/N,B/N")] = None
    """Addresses of the created devices. By default a free /30 network in 10.64.0.0/10."""
    capture: Annotated[Path | None, Option("DIR")] = None
    """Record the packets before and after each queue in DIR (pcapng)."""
    snaplen: Annotated[int, Option(min=1, max=65_535)] = 65_535
    """Largest number of bytes recorded of each packet."""
    capture_size: Bytes = 1 << 30
    """Largest size of a capture file."""
