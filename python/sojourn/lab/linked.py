"""Two hosts that an emulated link joins, for tests and scripts.

The link is described by the words of `sojourn wire`: `rate 20mbit netem 'delay 15ms' queue codel`.
"""

from __future__ import annotations

import json
import shlex
import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import Self

from sojourn.lab.errors import LabError
from sojourn.lab.programs.plan import MTU, address
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.sandbox import Privilege, Sandbox
from sojourn.lab.wire.join import LONGEST
from sojourn.lab.wire.links import configure, started, tun
from sojourn.lab.wire.wiring import Configuration
from sojourn.scenario import Scenario
from sojourn.temporary import nameless

KEYS = ("rate", "netem", "queue")
"""Keys of a link in words: rate and netem of both directions, queue from client to server."""
REVERSE = "reverse."
"""Beginning of the keys of the direction from server to client alone."""


def scenario(words: str, duration: str = "60s") -> Scenario:
    """Returns the scenario of a link in words, between `client` and `server`.

    Its flow of own programs does nothing. Raises `LabError` for unknown words and `ScenarioError`
    for wrong values.
    """
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise LabError(f"link {words!r}: {error}") from None
    link: dict[str, object] = {"from": "client", "to": "server"}
    back: dict[str, object] = {}
    for key, value in zip(parts[::2], [*parts[1::2], None], strict=False):
        name = key.removeprefix(REVERSE)
        keys = [*KEYS, *(REVERSE + one for one in KEYS)]
        if name not in KEYS:
            raise LabError(f"link {words!r}: unknown word `{key}`; allowed: {', '.join(keys)}")
        to = link if name == key else back
        if value is None or name in to:
            what = "has no value" if value is None else "is given twice"
            raise LabError(f"link {words!r}: `{key}` {what}; quote a value of several words")
        to[name] = value
    if back:
        link["reverse"] = back
    flow = {"name": "command", "from": "client", "to": "server", "app": "command", "client": "true"}
    data = {"name": words, "duration": duration, "links": {"link": link}, "flows": [flow]}
    return Scenario.from_dict(data)


class LinkedHosts:
    """Two hosts, `client` and `server`, that an emulated link joins, as a context manager.

    `words` describe the link, such as `rate 20mbit netem 'delay 15ms' queue codel`: `rate` and
    `netem` of both directions, `queue` from client to server; `reverse.queue` and the like of the
    other direction. Hosts are network namespaces in a
    sandbox, which the kernel removes when the block or this process ends. By default a user
    namespace is used, without root. `seed` seeds the link's random draws. Raises `LabError` for
    wrong words, and `Unavailable` if this machine has no sandboxes.
    """

    def __init__(self, words: str = "", privilege: Privilege = "auto", seed: int = 1) -> None:
        self.words = words
        self._plan = scenario(words, f"{LONGEST}s").plan
        self._seed = seed
        self._stack = ExitStack()
        self.sandbox = Sandbox(privilege, needs=("tun",))
        self.client: Host
        """The host from which the link's forward direction leads."""
        self.server: Host
        """The other host."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.sandbox)
            hosts = {n: self.sandbox.host(one.name) for n, one in enumerate(self._plan.nodes)}
            configuration, outcome = (stack.enter_context(nameless()) for _ in range(2))
            given = Configuration(
                plan=self._plan.text,
                seed=self._seed,
                mtu=MTU,
                journals=(),
                devices=[asdict(tun(node, host)) for node, host in hosts.items()],
                control=None,
                name="link",
                captures=(),
                around=None,
            )
            configuration.write(json.dumps(asdict(given)).encode())
            configuration.seek(0)
            _, starts, _ = started(self.sandbox, [configuration.fileno(), outcome.fileno()])
            stack.enter_context(starts)
            configure(hosts, MTU)
            starts.write(b"%d\n" % time.monotonic_ns())
            for node, host in hosts.items():
                host.address = address(node)
                setattr(self, host.name, host)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
