"""`sojourn lb`: server selection on an OpenFlow switch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from sojourn import _core
from sojourn.arguments import hint
from sojourn.cli import exits
from sojourn.data import Object
from sojourn.lb.settings import Affinity, Limits, Listen, Probes, Session, Showing, Table
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.lb.service import Service

WORDS = ["mac", "weight", "rate", "limit"]
"""Words that may follow a server's address and port."""


@settings
class Balanced:
    """Options of the virtual address, its servers and the policy."""

    policy: Annotated[str, Option("POLICY")]
    """Balancing policy (`sojourn list balancer`)."""
    address: Annotated[str, Option("ADDRESS")]
    """Virtual IPv4 address of the service."""
    server: Annotated[list[str], Option("NAME=ADDRESS@PORT[,...]")]
    """Server, and the switch port (number or name) to which it is connected. Optional: mac=MAC,
    weight=N, rate=RATE, and limit=SIZE of the port's queue. Repeat for more.
    """
    backlog: Annotated[list[str] | None, Option("SOURCE")] = None
    """Source of the ports' backlogs, in the order of the servers: netlink:IF,IF,... or
    wire:SOCKET:LINK,LINK,... Repeat for several sources.
    """
    mac: Annotated[str | None, Option("MAC")] = None
    """MAC address for the virtual address. By default derived from the virtual address."""

    def known(self, remove: bool) -> dict[str, object]:
        """Returns the settings of `Service` that these options determine.

        With `remove`, only those that the rules in the switch depend on.
        """
        from sojourn.own.text import alone

        servers = [_server(text) for text in self.server]
        if remove:  # the rules need neither policy nor queues, and both may be gone
            return self._named("round-robin", servers)
        if self.backlog:
            from sojourn.lb.backlog import sources_of

            found = sources_of(self.backlog, [str(one["name"]) for one in servers])
            servers = [one | {"backlog": text} for one, text in zip(servers, found, strict=True)]
        return self._named(alone("balancer", self.policy), servers)

    def _named(self, policy: str, servers: list[Object]) -> dict[str, object]:
        return {"address": self.address, "mac": self.mac, "policy": policy, "servers": servers}


@exits.command
def serve(
    balanced: Balanced,
    affinity: Affinity,
    probes: Probes,
    listen: Listen,
    table: Table,
    limits: Limits,
    session: Session,
    showing: Showing,
) -> None:
    """Balance flows over servers, as the controller of an OpenFlow 1.3 switch.

    The switch must be configured to connect to this controller (Open vSwitch: set-controller,
    connection-mode=out-of-band, fail-mode=secure). The command writes and removes only rules with
    its own cookie, in one table. The rules stay in the switch after the command ends: the next
    controller adopts them, and the same command with `--remove` removes them. `--json` prints one
    line per second.
    """
    from sojourn.lab.machine.needs import require_package
    from sojourn.lb.serve import serve as run
    from sojourn.own.sources import is_own

    require_package("os-ken", "os_ken", "openflow")
    if not is_own(balanced.policy):
        _core.parse_balancer(balanced.policy)
    service = _service(
        **balanced.known(showing.remove),
        affinity=affinity,
        probes=probes,
        listen=listen,
        table=table,
        limits=limits,
        session=replace(session, dry_run=session.dry_run or showing.remove),
    )
    run(service, showing)


def _service(**values: object) -> Service:
    from pydantic import ValidationError

    from sojourn.lb.service import Service

    try:
        return Service.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        text = first["msg"].removeprefix("Value error, ")
        exits.fail(f"{_place(first['loc'], values)}{text}")


def _place(where: tuple[int | str, ...], values: dict[str, object]) -> str:
    """Returns the option that has an invalid value, as the user wrote it, with the value."""
    match where, values:
        case ("servers", int(number), *rest), {"servers": list(servers)}:
            server = servers[number]
            found = "".join(f"{part}={server.get(part)}" for part in rest)
            return f"--server {server['name']}: {found}: "
        case (str(option), *_), _ if values.get(option) is not None:
            return f"--{option} {values[option]}: "
        case _:
            return f"{'.'.join(map(str, where))}: " if where else ""


def _server(text: str) -> Object:
    """Parses a server such as `s1=10.0.0.11@2,weight=3,rate=20mbit,limit=100p`."""
    head, *rest = text.split(",")
    name, equals, place = head.partition("=")
    address, at, port = place.partition("@")
    if not (equals and at and name and address and port):
        exits.fail(f"--server {text}: must begin with NAME=ADDRESS@PORT")
    found: Object = {"name": name, "address": address}
    found["port"] = int(port) if port.isdecimal() else port
    for part in rest:
        word, equals, value = part.partition("=")
        match word if equals else "":
            case "mac":
                found["mac"] = value
            case "weight":
                if not value.isdecimal():
                    exits.fail(f"--server {text}: weight={value}: must be a whole number")
                found["weight"] = int(value)
            case "rate":
                found["rate"] = int(_core.parse_quantity("rate", value))
            case "limit" if value.endswith("p"):
                found["limit_packets"] = int(_core.parse_quantity("packets", value))
            case "limit":
                found["limit_bytes"] = int(_core.parse_quantity("size", value))
            case _:
                exits.fail(f"--server {text}: unknown word `{word}`{hint(word, WORDS)}")
    return found


FAMILY = (serve,)
"""The commands of `sojourn lb`."""
