"""The two worlds of the study: bulk transfers and Web sessions, both with a tenth of UDP.

From the paper: a bottleneck of 10 Mbit/s with 100 ms of delay, data senders 20, 40, 60 and 80 ms
away from it (base round-trip times of 120 to 180 ms), TCP frames of 1514 bytes, in the Web
simulations of 1400 to 1628 bytes, four UDP sources of 1 Mbit/s together in frames of 573 bytes,
starts spread over 10 s, 100 s of warm-up. Delays are in the direction of the data, as the paper's
machines added them.

The bulk traffic was measured: figure 2 of the paper labels the bottleneck as Ethernet of 10 Mbit/s,
and its hosts run Linux. So a frame also takes Ethernet's preamble, checksum and gap, and TCP has
timestamps, which Linux enables by default. The Web traffic was simulated with ns-2, whose links
carry only the packets.

Not from the paper: its table of Web distributions is lost. The preset is the first of Feldmann's
two sets, the only one whose link fills up between 800 and 1400 sessions, as the paper's does. Four
Web loads are named; its 1000 simulations of 50 repetitions and four mechanisms make five. The fifth
is ours: the middle of the range.
"""

from __future__ import annotations

from sojourn.scenario import Scenario

#: Bottleneck rate in bit/s, the TCP frame in bytes, UDP's aggregate rate in bit/s.
RATE, FRAME, UDP_RATE = 10e6, 1514, 1e6
#: Base round-trip times in seconds.
ROUND_TRIPS = (0.120, 0.140, 0.160, 0.180)
#: Loads of the two worlds.
FLOWS = (16, 32, 64, 128, 256)
SESSIONS = (800, 1000, 1100, 1200, 1400)
#: Frames of the Web simulations: 1400 to 1628 bytes, evenly distributed, mean 1514.
WEB_FRAMES = (1400, 1457, 1514, 1571, 1628)
#: Bytes of a full frame without payload: Ethernet, IPv4 and TCP headers without options.
HEADERS = 54
#: Additional bytes of a frame on an Ethernet cable: preamble, checksum, gap (IEEE 802.3).
OVERHEAD = 24
#: Seconds within which flows start.
STARTS = 10.0
#: TCP of the study: SACK, Reno's window, no timestamps; and that of the testbed's Linux.
TCP = "reno profile sack-2001"
LINUX_TCP = f"{TCP} timestamps on"
#: Web sessions: values of Feldmann's first set (see the module's comment).
WEB = "web preset pareto-1"

_NETWORK = """
[topology]
template = "dumbbell"
rate = "10mbit"
overhead = {overhead}
forward.netem = "delay 100ms"
queue = "pfifo limit 300p"

[topology.left]
hosts = 4
rate = "100mbit"
forward.netem = ["delay 20ms", "delay 40ms", "delay 60ms", "delay 80ms"]

[topology.right]
hosts = 4
rate = "100mbit"

[[flows]]
name = "udp"
from = "left"
to = "right"
app = "cbr rate 250kbit size 573"
count = 4
start = "uniform 0s {starts:g}s"
"""

_TCP_GROUP = """
[[flows]]
name = "{name}"
from = "left"
to = "right"
app = "{app}"
tcp = "{tcp}"
count = {count}
start = "uniform 0s {starts:g}s"
"""


def _scenario(
    name: str,
    duration: float,
    warmup: float,
    groups: str,
    queue: str,
    starts: float = STARTS,
    overhead: int = 0,
) -> Scenario:
    head = (
        f'name = "{name}"\nduration = "{duration:g}s"\nwarmup = "{warmup:g}s"\n'
        'observe.series = "1s"\n'
    )
    text = head + _NETWORK.format(starts=starts, overhead=overhead) + groups
    return Scenario.from_toml(text).with_queue(queue)


def bulk(
    flows: int,
    duration: float,
    warmup: float,
    queue: str = "pfifo limit 300p",
    tcp: str = LINUX_TCP,
    starts: float = STARTS,
) -> Scenario:
    """Returns `flows` endless TCP transfers and the UDP sources, over Ethernet."""
    group = _TCP_GROUP.format(name="bulk", app="bulk", tcp=tcp, count=flows, starts=starts)
    return _scenario(f"taildrop bulk {flows}", duration, warmup, group, queue, starts, OVERHEAD)


def web(sessions: int, duration: float, warmup: float, queue: str = "pfifo limit 300p") -> Scenario:
    """Returns a scenario of `sessions` Web sessions and the UDP sources.

    The sessions are concurrent, and divided equally over the frame sizes.
    """
    share, rest = divmod(sessions, len(WEB_FRAMES))
    groups = "".join(
        _TCP_GROUP.format(
            name=f"web{frame}",
            app=WEB,
            tcp=f"{TCP} mss {frame - HEADERS}",
            count=share + (i < rest),
            starts=STARTS,
        )
        for i, frame in enumerate(WEB_FRAMES)
    )
    return _scenario(f"taildrop Web {sessions}", duration, warmup, groups, queue)
