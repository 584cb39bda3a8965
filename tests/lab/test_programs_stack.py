"""A plan's words for TCP become settings of the kernel, or are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sojourn import _core
from sojourn.lab.programs import (
    Kernel,
    MissingProgram,
    NotPossible,
    Options,
    Ping,
    Probe,
    installed,
    prepare,
)
from sojourn.lab.programs.plan import drawn
from sojourn.lab.programs.stack import Route, default, sysctls
from sojourn.scenario import Scenario
from tests.lab.plans import SECOND, flow, plan

CUBIC = {"beta": 717, "bic_scale": 41, "fast_convergence": 1, "tcp_friendliness": 1, "hystart": 1}
KERNEL = Kernel(("cubic", "dctcp", "reno"), CUBIC, frozenset(Kernel.here().sysctls), (6, 1))


def refused(tcp: str, kernel: Kernel = KERNEL) -> list[str]:
    with pytest.raises(NotPossible) as error:
        prepare(plan(flow("bulk", tcp=tcp, name="up")), 1, kernel=kernel)
    return [str(problem) for problem in error.value.problems]


def test_defaults_are_possible() -> None:
    setup = prepare(plan(flow("bulk"), flow("bulk", tcp="reno", count=3)), 1, kernel=KERNEL)
    assert [program.name for program in setup.programs] == [
        "iperf3-server-bulk.0",
        *(f"iperf3-server-bulk-2.{n}" for n in range(3)),
        "iperf3-client-bulk.0",
        *(f"iperf3-client-bulk-2.{n}" for n in range(3)),
    ]
    assert setup.versions["iperf3"]
    assert not any(settings.routes for settings in setup.settings.values())
    sender, receiver = setup.settings[0].sysctls, setup.settings[1].sysctls
    assert sender["net.ipv4.tcp_no_metrics_save"] == "1"
    assert sender["net.ipv4.tcp_wmem"] == "4096 16384 4194304"
    assert receiver["net.ipv4.tcp_rmem"] == "4096 131072 33554432"
    assert "net.ipv4.tcp_wmem" not in receiver
    assert "net.ipv4.tcp_rmem" not in sender


def test_words_of_tcp_become_settings_of_hosts_and_routes() -> None:
    words = (
        "cubic iw 3 min_rto 1s ecn classic delack 1 sack off timestamps off rwnd 64kb "
        "memory payload autotune off idle_restart off frto off retries 5 sndbuf 100kb"
    )
    setup = prepare(plan(flow("bulk", tcp=words)), 1, kernel=KERNEL)
    there, back = setup.settings[0].routes, setup.settings[1].routes
    assert there == {1: Route(initcwnd=3, rto_min=SECOND, ecn=True)}
    assert back == {0: Route(quickack=True)}
    assert there[1].metrics() == {"initcwnd": 3, "rto_min": 1000, "lock": 8192, "features": 1}
    both = setup.settings[0].sysctls | setup.settings[1].sysctls
    told = {name.removeprefix("net.ipv4."): value for name, value in both.items()}
    for name, value in {
        "tcp_sack": "0",
        "tcp_timestamps": "0",
        "tcp_rmem": "4096 131072 131072",
        "tcp_moderate_rcvbuf": "0",
        "tcp_slow_start_after_idle": "0",
        "tcp_frto": "0",
        "tcp_retries2": "5",
        "tcp_wmem": "4096 16384 102400",
    }.items():
        assert told[name] == value, name


@pytest.mark.parametrize(
    ("tcp", "problem"),
    [
        ("bbr", "`tcp bbr`: this kernel has cubic, dctcp, reno; load the module if it exists"),
        ("prague", "`tcp prague`: this kernel has cubic, dctcp, reno"),
        ("cubic beta 0.5", "`cubic beta 0.5`: tcp_cubic's module parameters have 0.7002"),
        ("cubic reno_friendly off", "`cubic reno_friendly off`: tcp_cubic's module parameters"),
        ("cubic hystart plus_plus", "`hystart plus_plus`: this kernel's cubic has classic"),
        ("reno abc_limit 2", "`abc_limit 2`: Linux sets no limit"),
        ("reno abc off", "`abc off`: Linux counts acknowledged segments"),
        ("reno undo off", "`undo off`: Linux always has on"),
        ("reno recovery rfc6675", "`recovery rfc6675`: Linux reduces the window by `prr`"),
        ("reno recovery newreno", "`recovery newreno`: Linux uses it only with `sack off`"),
        ("reno mss 64", "`mss 64`: must be 88 to 8960 bytes"),
        (
            "reno ecn l4s",
            "`ecn l4s`: supported are off and classic, and accurate only with dctcp",
        ),
        ("dctcp ecn classic", "`dctcp ecn classic`: Linux's dctcp always uses `ecn accurate`"),
        ("dctcp shift 5", "`dctcp shift 5`: Linux has 4"),
        ("reno max_rto 60s", "`max_rto 60s`: Linux always has 120s"),
        ("reno delack 4", "`delack 4`: Linux has 2, or 1 by a route's quickack"),
        ("reno delack_timeout 100ms", "`delack_timeout 100ms`: Linux has 40ms"),
        ("reno idle_restart rfc5681", "`idle_restart rfc5681`: Linux has off and decay"),
        (
            "reno min_rto 1500us",
            "`min_rto 1.5ms`: must be whole milliseconds, as a route's rto_min",
        ),
    ],
)
def test_words_of_tcp_that_linux_lacks_are_refused(tcp: str, problem: str) -> None:
    found = refused(tcp)
    assert found[0].startswith(f"up.0: {problem}"), found


def test_all_refused_words_are_reported_at_once() -> None:
    found = refused("prague profile sack-2001")
    assert len(found) > 5
    assert all(line.startswith("up.0: ") for line in found)


def test_accepted_words_depend_on_the_kernel() -> None:
    assert refused("reno rack off", Kernel(("reno",), {}, KERNEL.sysctls, (6, 17)))
    prepare(plan(flow("bulk", tcp="reno rack off")), 1, kernel=KERNEL)
    none = Kernel(("cubic",), {**CUBIC, "hystart": 0, "beta": 512}, KERNEL.sysctls, (6, 1))
    prepare(plan(flow("bulk", tcp="cubic hystart none beta 0.5")), 1, kernel=none)
    few = Kernel(("reno",), {}, KERNEL.sysctls - {"tcp_frto"}, (6, 1))
    assert refused("reno", few) == ["up.0: `net.ipv4.tcp_frto`: this kernel has no such sysctl"]


def test_two_flows_that_want_different_hosts() -> None:
    both = plan(
        flow("bulk", tcp="reno", name="x"), flow("bulk", tcp="reno iw 3 sack off", name="y")
    )
    with pytest.raises(NotPossible) as error:
        prepare(both, 1, kernel=KERNEL)
    assert [str(problem) for problem in error.value.problems] == [
        "y.0: `tcp_sack 0`: x.0 requires 1, and a has one value for all flows",
        "y.0: `tcp_sack 0`: x.0 requires 1, and b has one value for all flows",
        "y.0: `initcwnd to b 3`: x.0 requires the default, and a has one value for all flows",
    ]
    apart = plan(
        flow("bulk", tcp="reno", name="x"),
        flow("bulk", tcp="reno iw 3", name="y", **{"from": "b", "to": "a"}),
    )
    assert prepare(apart, 1, kernel=KERNEL).settings[1].routes == {0: Route(initcwnd=3)}


def test_every_sysctl_exists_here() -> None:
    kernel = Kernel.here()
    assert set(sysctls(default(), kernel)) <= kernel.sysctls
    assert {"cubic", "reno"} & set(Kernel.here().controls)


def test_missing_programs_of_flows_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sojourn.lab.machine.needs._SBIN", "/nowhere")
    with pytest.raises(MissingProgram) as error:
        prepare(plan(flow("bulk")), 1, Options(pings=(Ping(0, 1),)), KERNEL)
    assert [str(problem) for problem in error.value.problems] == [
        "`iperf3`: not installed: iperf3; on Debian and Ubuntu: sudo apt-get install iperf3",
        "`ping`: not installed: ping; on Debian and Ubuntu: sudo apt-get install iputils-ping",
    ]


def test_a_program_that_is_too_old(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "version", lambda path, kind: "3.1.7")
    with pytest.raises(MissingProgram, match=r"3\.7 or later is needed; .*iperf3 has 3\.1\.7"):
        prepare(plan(flow("bulk")), 1, kernel=KERNEL)


@pytest.mark.parametrize(
    ("ping", "problem"),
    [
        (Ping(0, 2), "`0 to 2`: there are 2 nodes"),
        (Ping(0, 1, interval=0.0001), "`interval 0.0001 s`: must be 0.002 to 3600 s"),
        (Ping(0, 1, payload=8), "`payload 8`: must be 16 to 1472 bytes"),
    ],
)
def test_pings_without_sense(ping: Ping, problem: str) -> None:
    with pytest.raises(NotPossible) as error:
        prepare(plan(flow("bulk")), 1, Options(pings=(ping,)), KERNEL)
    assert str(error.value) == f"ping: {problem}"


@pytest.mark.parametrize(
    ("probe", "problem"),
    [
        (Probe(0, 2), "`0 to 2`: there are 2 nodes"),
        (Probe(1, 1), "`1 to 1`: sender and receiver must be different nodes"),
        (Probe(0, 1, interval=0), "`interval 0 s`: must be 0.0001 to 3600 s"),
        (Probe(0, 1, payload=7), "`payload 7`: must be 8 to 1472 bytes"),
        (Probe(0, 1, dscp=64), "`dscp 64`: must be 0 to 63"),
    ],
)
def test_probes_without_sense(probe: Probe, problem: str) -> None:
    with pytest.raises(NotPossible) as error:
        prepare(plan(flow("bulk")), 1, Options(probes=(probe,)), KERNEL)
    assert str(error.value) == f"probe: {problem}"


def test_starts_are_the_simulators() -> None:
    wanted = plan(flow("bulk", count=3, start="uniform 0s 1s"))
    run = drawn(wanted, 5)
    starts = [flow.start for flow in run.flows]
    table = {name: data for name, _, _, data in _core.simulate(wanted.text, 5).table("flows")}
    import numpy as np

    simulated = np.frombuffer(table["start"])  # type: ignore[arg-type]
    assert starts == [round(at * 1e9) for at in simulated]
    assert len(set(starts)) == 3
    assert starts != [flow.start for flow in drawn(wanted, 6).flows]


@pytest.mark.parametrize(
    ("flows", "mtu"),
    [
        ([flow("bulk"), flow("voip")], 1500),
        ([flow("cbr rate 1mbit size 9014")], 9000),
        ([flow("packets interval 1ms payload exp(200)")], 7514),
        ([flow("bulk", tcp="reno mss 4000"), flow("cbr rate 1mbit size 9014", tcp="reno")], 4040),
    ],
)
def test_no_packet_is_cut_in_pieces(flows: list[str], mtu: int) -> None:
    assert prepare(plan(*flows), 1, kernel=KERNEL).mtu == mtu


def test_flows_have_ports_of_their_own() -> None:
    run = drawn(plan(flow("bulk", count=2), flow("bulk", tcp="reno")), 1)
    assert [flow.port for flow in run.flows] == [20_000, 20_001, 20_002]
    with pytest.raises(NotPossible, match="most 12768, because"):
        drawn(plan(flow("bulk", count=20_000)), 1)


@pytest.mark.parametrize("first", [0, 1])
def test_a_program_s_control_is_that_of_its_route(first: int) -> None:
    """The route of a flow with own programs replaces the control of every socket (Linux)."""
    own = {"from": "a", "to": "b", "app": "command", "client": "true", "tcp": "cubic"}
    bulk = {"from": "a", "to": "b", "app": "bulk", "tcp": "reno", "count": 2}
    line = {"from": "a", "to": "b", "rate": "1gbit"}
    flows = [own, bulk][:: 1 if first else -1]
    both = Scenario.from_dict({"duration": "5s", "links": {"line": line}, "flows": flows})
    with pytest.raises(NotPossible, match="congestion to b reno"):
        prepare(both.plan, 1, kernel=KERNEL)
    prepare(both.replace({"flows.bulk.tcp": "cubic"}).plan, 1, kernel=KERNEL)


def test_a_stores_hosts_have_its_tcp() -> None:
    text = """
duration = "5s"
links.ab = {from = "a", to = "b", rate = "1gbit"}
links.ac = {from = "a", to = "c", rate = "1gbit"}
links.bc = {from = "b", to = "c", rate = "1gbit"}
[store]
nodes = ["a", "b"]
clients = "c"
replication = 1
tcp = "reno min_rto 20ms ecn classic frto off"
"""
    wanted = Scenario.from_toml(text)
    setup = prepare(wanted.plan, 1, kernel=KERNEL)
    assert setup.programs == ()
    names = [node.name for node in setup.run.plan.nodes]
    a, b, c = (names.index(name) for name in "abc")
    opened = Route(rto_min=20_000_000, ecn=True, congestion="reno")
    assert setup.settings[a].routes[b] == setup.settings[b].routes[a] == opened
    assert setup.settings[c].routes[a] == opened
    # The client has opened what it is answered on.
    assert setup.settings[a].routes[c] == Route(rto_min=20_000_000, congestion="reno")
    assert opened.metrics() == {"congctl": "reno", "rto_min": 20, "lock": 8192, "features": 1}
    for host in (a, b, c):
        assert setup.settings[host].sysctls["net.ipv4.tcp_frto"] == "0"

    def asks(**more: Any) -> list[str]:
        with pytest.raises(NotPossible) as error:
            prepare(wanted.replace(more).plan, 1, kernel=KERNEL)
        return [str(problem) for problem in error.value.problems]

    (refusal,) = asks(**{"store.tcp": "reno mss 500"})
    assert re.fullmatch("store.0: `mss 500`: .*MTU of the device", refusal)
    flow = {"from": "a", "to": "b", "app": "bulk", "tcp": "reno sack off"}
    has = "bulk.0 requires 0, and a has one value for all flows"
    assert f"store.0: `tcp_sack 1`: {has}" in asks(**{"store.tcp": "reno", "flows": [flow]})
