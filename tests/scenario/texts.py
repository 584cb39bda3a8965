"""Scenarios as texts, for several tests."""

from __future__ import annotations

HOME = """\
name = "home"
duration = "60s"
warmup = "10s"

[links.uplink]
from = "home"
to = "isp"
rate = "20mbit"
netem = "delay 15ms"
queue = "codel limit 1000p target 5ms"

[[flows]]
from = "home"
to = "isp"
app = "bulk"
tcp = "cubic"
count = 4
start = "uniform 0s 1s"

[[flows]]
from = "home"
to = "isp"
app = "voip"
"""

LAN = """\
duration = "3s"
warmup = "1s"

[topology]
template = "lan"
clients = 10
servers = 2
rate = "2gbit"
netem = "delay 1ms"
queue = "codel"

[[flows]]
name = "up"
from = "clients"
to = "servers"
app = "cbr rate 1mbit payload 1400"
count = 10
"""

SWITCH = """\
duration = "3s"
warmup = "1s"

[topology]
template = "star"
rate = "2gbit"
netem = "delay 1ms"
clients.hosts = 10

[topology.servers]
hosts = 2
rate = ["4mbit", "6mbit"]
queue = "codel"

[[flows]]
name = "up"
from = "clients"
to = "servers"
app = "cbr rate 1100kbit payload 1400"
count = 10
"""

DUMBBELL = """\
duration = "10s"

[topology]
template = "dumbbell"
rate = "10mbit"
forward.netem = "delay 100ms"
queue = "pfifo limit 300p"

[topology.left]
hosts = 4
rate = "100mbit"
forward.netem = ["delay 20ms", "delay 40ms", "delay 60ms"]

[topology.right]
hosts = 2

[[flows]]
from = "left"
to = "right"
app = "bulk"
count = 64
"""
