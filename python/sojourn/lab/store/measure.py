"""Measures a running store over its own network; changes only a keyspace that it creates."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from sojourn import _core
from sojourn.lab.cassandra.client import Client
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.store.findings import (
    Answers,
    Row,
    keyspace,
    replication,
    session_of,
    summary_of,
    table_options,
)
from sojourn.lab.store.settings import Running
from sojourn.plan import Plan
from sojourn.scenario.engine import Column

LONGEST = 3600 * 10**9
"""Longest duration of the measurement, in nanoseconds."""
SCRIPT = 200_000
"""Maximum number of requests."""
CONNECT_SECONDS = 10
"""Time limit of a connection to a node, in seconds."""


def measure(
    plan: Plan,
    seed: int,
    running: Running,
    password: str = "",
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Sequence[Column], Answers]:
    """Measures a running store with the requests of a plan's first client.

    Returns the store's columns of the summary, as in simulated runs, and what the client found. The
    client creates a keyspace and removes it at the end, except after `kill -9`. Nothing else in the
    store is changed. `tell` is called with the name of the keyspace before its creation, and before
    long steps. Raises `Unavailable` if the store cannot be reached, and `LabError` if it refuses a
    request.
    """
    if not plan.apps:
        raise LabError("the scenario has no [store]: add one, see `sojourn explain store`")
    (store,) = plan.apps
    parts = _core.StoreParts(plan.text, seed)
    log = io.StringIO()
    session = replace(
        session_of(store, 0, keyspace(), parts.first_key),
        contact_points=running.points,
        port=running.port,
        connect_seconds=CONNECT_SECONDS,
        user=running.user,
        password=password,
        authority=None if running.authority is None else str(running.authority),
        certificate=None if running.certificate is None else str(running.certificate),
    )
    with ExitStack() as stack:
        try:
            client = Client(session, log)
        except Exception as error:
            where = ", ".join(running.points)
            raise Unavailable(f"no store answers at {where}: {error}") from error
        stack.callback(client.leave)
        tell(f"creates the keyspace {client.keyspace}")
        try:
            stack.callback(client.drop, 60)
            client.schema(replication(store), table_options(store), 60)
            records, rate = store.workload.records, running.rate
            if records > rate:
                tell(f"writes {records} records before the measurement, {records / rate:.0f} s")
            client.load(0, records, rate)
            client.script(parts.script(0, min(store.load.requests or SCRIPT, SCRIPT)))
            now = time.monotonic_ns()
            end = now + min(plan.duration, LONGEST)
            answer = client.run(now, end, warm=False, least_gap=int(1e9 / rate))
            checked = client.verify(parts.write_need, 20, replicas=False, rate=rate)
        except Unavailable:
            raise
        except Exception as error:
            raise LabError(f"a request to the store failed: {error}") from error
        nodes = {host.address: host.address for host in client.hosts()}
    answers = Answers(nodes, answer.coordinated, [checked])
    rows = [Row(*json.loads(line)) for line in log.getvalue().splitlines()]
    return summary_of(plan, rows, answers), answers
