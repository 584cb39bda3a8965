"""Configurations from public threads: 58 of 60 are read with all of their filters.

The others are named with their reason. A filter counts as read if a scenario can have flows that it
selects: here a flow for each, which has the port, mark or address that the filter asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pytest

from sojourn.scenario import Scenario, ScenarioError
from sojourn.tc import apply, read
from tests.tc.texts import HERE, HOME

T = TypeVar("T")
TEXTS = {
    address: text
    for part in (HERE / "public.txt").read_text(encoding="utf-8").split("\n==== ")[1:]
    for address, _, text in [part.partition("\n")]
}

GIVEN: dict[str, dict[str, str]] = {
    "firehol/issues/297": {"1": "eth0"},
    "kubernetes/issues/11965": {"hostname -i": "10.0.0.1"},
    "lartc.ratelimit.single": {"DEV": "eth0"},
    "tc:tldr:98987": {
        "max_bandwidth_mb": "10", "max_burst_rate_kb": "32", "max_latency_before_drop_ms": "400",
    },
    "316405b02": {"WAN_INTERFACE": "eth0"},
    "wangzhe1635": {"1": "eth0", "2": "start", "3": "1000000", "4": "8000000"},
    "629838": {"RATE": "5mbit"},
    "116609277": {"lan": "eth1"},
    "wZmqxG89": {"dev": "eth0"},
}  # fmt: skip
"""Values that the scripts take from their caller, by a part of the address."""

CHOSEN = {
    "LibreQoS/issues/34": "enp5s0f0:1",
    "LibreQoS/issues/111": "enp4s0f0:1",
    "ignisf": "eth2slowegress,eth2slowingress",
    "sqm-reporting": "eth0",
}
"""Devices chosen where there are several, by address."""

NOT_READ = {
    # Delays by class.
    "https://github.com/alexei-led/pumba/issues/52": "netem in a class is not modelled",
    # Typing errors (`1:htb`, `cllassid`, `prtocol`, `oxffff`): tc refuses it.
    "https://blog.csdn.net/u012335044/article/details/52415852": "`1:htb` is not the handle",
}
"""Those that are not read, and how the first reason begins."""


def of(table: Mapping[str, T], address: str) -> T | None:
    """Returns a table's value for an address; `None` for unknown addresses."""
    return next((value for part, value in table.items() if part in address), None)


HOSTS = {
    "thombashi/tcconfig/issues/94": {"10.211.55.22": "home"},
    "kubernetes/issues/11965": {"10.0.0.1": "home"},
    "alexei-led/pumba/issues/52": {"172.17.0.3": "isp"},
    "lartc.ratelimit.single": {"195.96.96.97": "isp"},
    "herrbischoff": {"195.96.97.98": "isp"},
    "254535": {"192.0.2.1": "isp"},
    "629838": {"192.0.2.1": "isp"},
    "tcviz/issues/2": {"10.0.2.7": "isp"},
    "116609277": {"192.168.20.230": "isp"},
}
"""Nodes that have the addresses of filters, by a part of the address."""

SELECTS = {
    "shuzhiduo": ["web", "mail"],
    "etcd/issues/11469": ["peer", "etcd"],
    "etcd/issues/9770": ["peer", "etcd"],
    "dropvps": ["node"],
    "d3s.mff": ["ssh", "dns", "web", "https", "mail", "smtps"],
    "3mZTkzyu": ["game"],
    "wZmqxG89": ["torrent"],
    "629838": ["own"],
}
"""Flows of `WITH_PORTS` that the filters by port and mark select."""

PORTS = {
    "ssh": "destination_port = 22", "dns": "destination_port = 53", "web": "destination_port = 80",
    "https": "source_port = 443", "mail": "source_port = 25", "smtps": "destination_port = 465",
    "peer": "destination_port = 2380", "etcd": "source_port = 2379", "torrent": "mark = 128",
    "node": "destination_port = 3000", "game": "destination_port = 2222",
    "own": "destination_port = 44444",
}  # fmt: skip
WITH_PORTS = Scenario.from_toml(
    HOME
    + "".join(
        f'[[flows]]\nname = "{name}"\nfrom = "home"\nto = "isp"\napp = "bulk"\n{key}\n'
        for name, key in PORTS.items()
    )
)


def reason(address: str) -> str | None:
    """Why a configuration is not read; None if it is, with each of its filters."""
    given, device = of(GIVEN, address) or {}, of(CHOSEN, address)
    reading = read([("posted", TEXTS[address])], given, device)
    try:
        found = apply(WITH_PORTS, reading, device, of(HOSTS, address))
    except ScenarioError as error:
        assert all(problem.line for problem in error.problems), error
        return error.problems[0].message
    assert found.placed
    assert not any("matches none" in notice for notice in found.notices), found.notices
    selected = {name for one in found.selections for name in (*one.flows, *one.answers)}
    assert set(of(SELECTS, address) or ()) <= selected, found.selections
    return None


def test_there_are_sixty_and_nine_tenths_are_read() -> None:
    assert len(TEXTS) == 60
    assert len(TEXTS) - len(NOT_READ) >= 58
    assert set(NOT_READ) <= set(TEXTS)


@pytest.mark.parametrize("address", TEXTS)
def test_a_posted_configuration(address: str) -> None:
    found = reason(address)
    if address in NOT_READ:
        assert found is not None
        assert found.startswith(NOT_READ[address])
    else:
        assert found is None
