"""Packets from an OpenFlow switch: no bytes crash the parser, and answers to them read the same.

Coverage is measured in `sojourn.lb.packets` and in the parsers of os-ken. The arguments are
libFuzzer's.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["os_ken.lib.packet", "sojourn.lb.packets"]):
    from sojourn.lb import packets

MAC = "02:00:00:00:00:01"


def check(data: bytes) -> None:
    """Reads a packet, and answers it if it is a request to the address of one host."""
    seen = packets.read(data)
    if seen is None or seen.destination.is_multicast or int(seen.destination) in (0, 0xFFFFFFFF):
        return
    if isinstance(seen, packets.Arp) and seen.asks:
        answer = packets.read(packets.arp_answer(MAC, seen.destination, seen))
        assert answer == packets.Arp(False, MAC, seen.destination, seen.source)
    elif isinstance(seen, packets.Echo) and seen.asks:
        answer = packets.read(packets.echo_answer(MAC, seen, data))
        assert isinstance(answer, packets.Echo)
        assert (answer.asks, answer.source) == (False, seen.destination)


atheris.Setup(sys.argv, check)
atheris.Fuzz()
