"""The bursts of docs/scenarios/syslog.md: loss and largest size of a receive buffer by policy.

`python examples/syslog_buffers.py` prints the mean loss and the largest size over ten seeds.
"""

import json

from sojourn import _core

SECOND, MS = 10**9, 10**6
CHARGED = 768  # bytes of memory for a message of 442 bytes
burst = round(8e6 / 8 / 442 * CHARGED)  # charged bytes per second of each device
daemon = round(80e6 / 8 / 442 * CHARGED)

rates = [(at * SECOND + ms * MS, r) for at in range(30) for ms, r in ((0, burst), (40, 0))]
plan = {
    "duration": 30 * SECOND, "warmup": 5 * SECOND, "ask": 10 * MS, "sockets": 1, "clients": 40,
    "message": CHARGED, "handler": {"rate": daemon, "pauses": []}, "port": 0,
    "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
    "memory": 4 << 30, "used": 1 << 30, "samples": 0,
}  # fmt: skip
policies = [
    "static size 212992", "static size 3mb", "rrda", "elastic ceiling 16mb",
    "elastic floor 3mb ceiling 16mb",
]  # fmt: skip
for policy in policies:
    lost, peak = [], []
    for seed in range(1, 11):
        outcome = json.loads(_core.simulate_server(json.dumps({**plan, "policy": policy}), seed))
        lost.append(outcome["exhaustion"])
        peak.append(outcome["peak_size"])
    print(f"{policy:<32} lost {sum(lost) / 10:6.1%}, at most {max(peak) / 2**20:5.1f} MiB")
