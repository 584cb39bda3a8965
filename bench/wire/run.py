"""Measures the throughput of the wire, and compares it with a veth pair and the kernel's netem.

Each value is from one run, so compare only values of one call of this program. The programs that
send and receive share the processors with the wire, as in a laboratory.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from sojourn.lab import LabError, Sandbox
from sojourn.lab.engine import WireEngine
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.scenario import Scenario

SECONDS = 6
BULK = '{{from = "a", to = "b", app = "bulk", tcp = "cubic", count = {count}}}'
LINK = '{{from = "{a}", to = "{b}", rate = "{rate}", netem = "{netem}", queue = "{queue}"}}'


def scenario(links: list[str], flows: list[str]) -> Scenario:
    """Return a scenario with these links and flows."""
    named = "\n".join(f"links.l{number} = {link}" for number, link in enumerate(links))
    return Scenario.from_toml(
        f'name = "bench"\nduration = "{SECONDS + 1}s"\nwarmup = "1s"\n'
        f'bottleneck = "l0"\nflows = [{", ".join(flows)}]\n{named}\n'
    )


def one(rate: str, queue: str, flows: list[str], netem: str = "") -> Scenario:
    """Return a scenario with one link from `a` to `b`."""
    return scenario([LINK.format(a="a", b="b", rate=rate, netem=netem, queue=queue)], flows)


def run(
    wanted: Scenario, engine: WireEngine | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a scenario in the laboratory; return its metrics, and its validity and health."""
    made = wanted.run(1, engine=engine or WireEngine())
    record: Any = made.record
    return dict(made.metrics), record.real


def say(what: str, figure: str, real: dict[str, Any] | None = None, note: str = "") -> None:
    """Print one line of the table."""
    how = note
    if real is not None:
        health = real["health"]
        how = (
            f"late by {health['lateness_p50'] * 1e6:.0f} us, "
            f"99 % {health['lateness_p99'] * 1e6:.0f} us; processor {health['cpu_share']:.0%}"
            + "".join(f"; NOT VALID: {v['what']} {v['found']}" for v in real["violations"])
        )
    print(f"{what:<46} {figure:>18}   {how}", flush=True)


def work(metrics: dict[str, Any], real: dict[str, Any]) -> None:
    """Print the cost of a packet in the wire, from the wire's own counters.

    Other programs on the machine hardly affect these values.
    """
    health, packets = real["health"], metrics["departures"]
    each = packets / (health["cpu_share"] * metrics["measured"])
    reads, writes = health["reads"] / packets, health["writes"] / packets
    note = f"per packet {reads:.2f} reads and {writes:.2f} writes of devices"
    say("    packets per CPU-second of the wire", f"{each / 1e3:.0f} k", note=note)


def veth(offloads: bool) -> float:
    """Return the goodput of one TCP connection over a veth pair, in bit/s."""
    with Sandbox() as sandbox:
        a, b = sandbox.host("a"), sandbox.host("b")
        sandbox.veth(a, "eth0", b, "eth0")
        for number, host in enumerate((a, b), 1):
            host.add_address("eth0", f"10.0.0.{number}/24")
            if not offloads:
                host.set_offloads("eth0", tso=False, gso=False, gro=False)
            host.set_link("eth0", up=True)
        server = b.spawn(["iperf3", "--server", "--one-off"])
        b.wait_port(5201, 10.0, by=server)
        words = ["--client", "10.0.0.2", "--time", str(SECONDS), "--omit", "1", "--json"]
        client = a.spawn(["iperf3", *words, "--congestion", "cubic"])
        if client.wait(60.0) != 0:
            raise LabError(f"iperf3 failed{client.complaint()}")
        return float(json.loads(client.output())["end"]["sum_received"]["bits_per_second"])


def kernels(wanted: Scenario) -> None:
    """Print the utilisation with the kernel's own htb, qdisc and netem, if the kernel has them."""
    what = "kernel's netem and qdiscs, 100mbit"
    try:
        metrics, _ = run(wanted, KernelEngine())
    except LabError as error:
        say(what, "not available", note=str(error).splitlines()[0])
        return
    say(what, f"{metrics['utilisation']:.1%} used")


def main() -> int:
    """Print the table."""
    print(f"load averages {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    say("veth pair, one TCP connection", f"{veth(True) / 1e9:.2f} Gbit/s")
    say("veth pair without offloads", f"{veth(False) / 1e9:.2f} Gbit/s")
    for queue in ("pfifo limit 10000p", "codel limit 10000p", "fq_codel limit 10000p"):
        metrics, real = run(one("20gbit", queue, [BULK.format(count=1)]))
        packets = metrics["departures"] / metrics["measured"]
        figure = f"{metrics['goodput'] / 1e9:.2f} Gbit/s"
        say(f"wire, {queue.split()[0]}, one TCP connection", figure, real)
        say("    packets of 1514 bytes", f"{packets / 1e3:.0f} k/s")
        work(metrics, real)
    small = '{from = "a", to = "b", app = "cbr rate 200mbit size 106"}'
    metrics, real = run(one("10gbit", "fq_codel", [small]))
    packets = metrics["received"] / metrics["measured"]
    say("wire, fq_codel, UDP of 106 bytes, 236 k/s asked", f"{packets / 1e3:.0f} k/s", real)
    work(metrics, real)
    for rate in ("10mbit", "100mbit", "1gbit"):
        metrics, real = run(one(rate, "fq_codel", [BULK.format(count=1)], "delay 5ms"))
        say(f"wire, {rate}, one TCP connection", f"{metrics['utilisation']:.1%} used", real)
        work(metrics, real)
    kernels(one("100mbit", "fq_codel", [BULK.format(count=1)], "delay 5ms"))
    pairs = range(50)
    links = [
        LINK.format(a=f"a{i}", b=f"b{i}", rate="2mbit", netem="delay 5ms", queue="fq_codel")
        for i in pairs
    ]
    flows = [
        f'{{name = "f{i}", from = "a{i}", to = "b{i}", app = "cbr rate 1mbit"}}' for i in pairs
    ]
    metrics, real = run(scenario(links, flows))
    say("wire, 50 links at once, 1 Mbit/s of UDP each", f"{metrics['packet_loss']:.2%} lost", real)
    return 0


if __name__ == "__main__":
    sys.exit(main())
