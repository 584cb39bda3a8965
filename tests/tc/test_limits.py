"""Large trees are read in a time that grows with their size, and their faults cost little."""

from __future__ import annotations

import time

from sojourn.tc import read

LEAD = (
    "qdisc add dev eth0 root handle 1: htb default 10\n"
    "class add dev eth0 parent 1: classid 1:1 htb rate 1gbit\n"
)


def circuits(count: int, faults: int = 0) -> str:
    """A provider's circuits: a class, a discipline and a filter each; the first ones are wrong."""
    lines = [LEAD]
    for n in range(count):
        rate = "x" if n < faults else "25mbit"
        name = f"1:{n + 0x100:x}"
        lines += [
            f"class add dev eth0 parent 1:1 classid {name} htb rate {rate} ceil 100mbit\n",
            f"qdisc add dev eth0 parent {name} fq_codel\n",
            (
                f"filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst "
                f"10.{n >> 8}.{n & 255}.1 flowid {name}\n"
            ),
        ]
    return "".join(lines)


def effort(text: str, faults: int = 0) -> float:
    """The least processor time of three readings."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        built = read([("circuits", text)], {}).build("eth0", {}, False)
        times.append(time.process_time() - begin)
        assert built is not None
        assert len(built.problems) >= faults
    return min(times)


def test_five_times_as_many_circuits_take_about_five_times_as_long() -> None:
    assert effort(circuits(10_000)) < 12 * effort(circuits(2_000))


def test_faults_take_no_longer_than_classes() -> None:
    assert effort(circuits(1_000, 190), 190) < 2 * effort(circuits(1_000))
