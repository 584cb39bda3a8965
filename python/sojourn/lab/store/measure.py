"""Measures a running store over its own network; changes only a keyspace that it creates."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from sojourn import _core
from sojourn.lab.cassandra.client import Client
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.store.findings import keyspace, level, replication, summary_of, table_options
from sojourn.plans import store_in
from sojourn.scenario.engine import Column

FASTEST = 100.0
"""Default limit of the rate of requests, in requests per second."""
LONGEST = 3600 * 10**9
"""Longest duration of the measurement, in nanoseconds."""
SCRIPT = 200_000
"""Maximum number of requests."""
CONNECT_SECONDS = 10
"""Time limit of a connection to a node, in seconds."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Running:
    """Addresses of a running store, credentials, and the limit of the request rate."""

    contact_points: Sequence[str]
    port: int = 9042
    user: str | None = None
    password: str = field(default="", repr=False)
    authority: str | None = None
    """Path of the authority's certificates, which verify those of the nodes; enables TLS."""
    certificate: str | None = None
    """Path of the client's certificate and key, for nodes that require them."""
    rate: float = FASTEST
    """Limit of the rate of requests, in requests per second."""


def measure(
    plan_json: str, seed: int, running: Running, tell: Callable[[str], None] = lambda _: None
) -> tuple[Sequence[Column], Json]:
    """Measures a running store with the requests of a plan's first client.

    Returns the store's columns of the summary, as in simulated runs, and a description. The client
    creates a keyspace and removes it at the end, except after `kill -9`. Nothing else in the store
    is changed. `tell` is called with the name of the keyspace before its creation, and before long
    steps. Raises `Unavailable` if the store cannot be reached, and `LabError` if it refuses a
    request.
    """
    plan: Json = json.loads(plan_json)
    store = store_in(plan)
    if store is None:
        raise LabError("the scenario has no [store]: add one, see `sojourn explain store`")
    parts = _core.StoreParts(plan_json, seed)
    log = io.StringIO()
    given = {
        "contact_points": list(running.contact_points), "port": running.port,
        "patience_seconds": store["patience"]["client"] / 1e9, "connect_seconds": CONNECT_SECONDS,
        "coordinator": store["coordinator"],
        "data_centre": store["data_centres"][store["clients"][0]["data_centre"]],
        "keyspace": keyspace(), "first_key": parts.first_key,
        "write_level": level(store["write_level"]), "read_level": level(store["read_level"]),
        "value_bytes": store["workload"]["value"], "load": store["load"], "user": running.user,
        "password": running.password, "authority": running.authority,
        "certificate": running.certificate,
    }  # fmt: skip
    with ExitStack() as stack:
        try:
            client = Client(given, log)
        except Exception as error:
            where = ", ".join(running.contact_points)
            raise Unavailable(f"no store answers at {where}: {error}") from error
        stack.callback(client.leave, {})
        tell(f"creates the keyspace {client.keyspace}")
        try:
            stack.callback(client.drop, {"seconds": 60})
            options = table_options(store)
            asked = {"replication": replication(store), "options": options, "seconds": 60}
            client.schema(asked)
            records, rate = store["workload"]["records"], running.rate
            if records > rate:
                tell(f"writes {records} records before the measurement, {records / rate:.0f} s")
            client.load({"first": 0, "count": records, "rate": rate})
            most = store["load"]["requests"] or SCRIPT
            client.script({"script": parts.script(0, min(most, SCRIPT))})
            now = time.monotonic_ns()
            answer = client.run(
                {
                    "start": now,
                    "end": now + min(plan["duration"], LONGEST), "warm": False,
                    "least_gap": int(1e9 / running.rate),
                }
            )  # fmt: skip
            wanted = {"need": parts.write_need, "replicas": False, "most": 20, "rate": rate}
            checked = client.verify(wanted)
        except Unavailable:
            raise
        except Exception as error:
            raise LabError(f"a request to the store failed: {error}") from error
        nodes = {host["address"]: host["address"] for host in client.hosts({})["hosts"]}
    about = {"coordinated": answer["coordinated"], "checked": [checked], "nodes": nodes}
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    return summary_of(plan, rows, about), about
