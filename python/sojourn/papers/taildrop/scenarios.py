"""The two kinds of traffic of the study: bulk transfers and Web sessions, each with 1 Mbit/s UDP.

The paper states: the bottleneck has 10 Mbit/s and a delay of 100 ms. Data senders are 20, 40, 60
and 80 ms away from it, so base round-trip times are 120 to 180 ms. TCP frames have 1514 bytes, in
the Web simulations 1400 to 1628 bytes. Four UDP sources send 1 Mbit/s together in frames of 573
bytes. Starts are spread over 10 s, and the warm-up is 100 s. Delays are only in the direction of
the data, where the paper's machines added them.

The paper measured bulk traffic. Its figure 2 labels the bottleneck as Ethernet of 10 Mbit/s, and
its hosts run Linux. So a frame also occupies the link for Ethernet's preamble, checksum and gap,
and TCP has timestamps, which Linux enables by default. The paper simulated Web traffic with ns-2,
whose links carry only the packets.

The available copy of the paper lacks the table of Web distributions. The preset is the first of
Feldmann's two sets; only with this set does the link fill between 800 and 1400 sessions, as in the
paper. The paper names four Web loads; its 1000 simulations, with 50 repetitions and four
mechanisms, require five. The fifth load here is the middle of the range.
"""

from __future__ import annotations

from sojourn.scenario import Scenario

#: Rate of the bottleneck in bit/s, length of a TCP frame in bytes, total rate of UDP in bit/s.
RATE, FRAME, UDP_RATE = 10e6, 1514, 1e6
#: Base round-trip times of the senders in seconds.
ROUND_TRIPS = (0.120, 0.140, 0.160, 0.180)
#: Loads: numbers of bulk flows and of Web sessions.
FLOWS = (16, 32, 64, 128, 256)
SESSIONS = (800, 1000, 1100, 1200, 1400)
#: Lengths of frames in the Web simulations, in bytes: 1400 to 1628 in equal steps, mean 1514.
WEB_FRAMES = (1400, 1457, 1514, 1571, 1628)
#: Length of the headers of a TCP frame in bytes: Ethernet, IPv4 and TCP without options.
HEADERS = 54
#: Length of preamble, checksum and gap of a frame on Ethernet (IEEE 802.3), in bytes.
OVERHEAD = 24
#: Time within which flows start, in seconds.
STARTS = 10.0
#: TCP of the Web simulations: Reno with SACK and without timestamps. `LINUX_TCP` of the bulk
#: measurements also has timestamps.
TCP = "reno profile sack-2001"
LINUX_TCP = f"{TCP} timestamps on"
#: Congestion controls of today.
TODAY = ("cubic", "cubic ecn classic", "bbr")
#: Numbers of endless transfers and of Web sessions for 10 Mbit/s, in the comparison of today's
#: queues. The sessions alone need about half of the link.
MIX = (8, 400)
#: Mean number of active Web flows of `MIX`.
ACTIVE = 30
#: Application of Web sessions, with the distributions of Feldmann's first set.
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
    """Returns the scenario of `flows` endless TCP transfers and the UDP sources, over Ethernet.

    Times are in seconds.
    """
    group = _TCP_GROUP.format(name="bulk", app="bulk", tcp=tcp, count=flows, starts=starts)
    return _scenario(f"taildrop bulk {flows}", duration, warmup, group, queue, starts, OVERHEAD)


def web(sessions: int, duration: float, warmup: float, queue: str = "pfifo limit 300p") -> Scenario:
    """Returns the scenario of `sessions` concurrent Web sessions and the UDP sources.

    Sessions are divided equally between the lengths of frames. Times are in seconds.
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


def mixed(rate: float, tcp: str, duration: float, warmup: float) -> Scenario:
    """Returns a scenario of today: endless transfers, Web sessions and the UDP sources.

    `rate` is that of the bottleneck in bit/s; the number of flows is proportional to it. `tcp` has
    the words of all TCP. Times are in seconds.
    """
    groups = "".join(
        _TCP_GROUP.format(name=name, app=app, tcp=tcp, count=round(n * rate / RATE), starts=STARTS)
        for name, app, n in (("bulk", "bulk", MIX[0]), ("web", WEB, MIX[1]))
    )
    made = _scenario(f"taildrop today {rate:g} {tcp}", duration, warmup, groups, "pfifo limit 300p")
    links = {"topology": rate, "topology.left": 10 * rate, "topology.right": 10 * rate}
    return made.replace({f"{link}.rate": f"{one / 1e6:g}mbit" for link, one in links.items()})
