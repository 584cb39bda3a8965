"""`sojourn lb`: server selection on an OpenFlow switch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import _core
from sojourn.cli import exits, options
from sojourn.data import Object
from sojourn.lb.settings import Affinity, Limits, Probes, Table
from sojourn.settings import Option, Seconds, settings

if TYPE_CHECKING:
    from sojourn.lb.service import Service

WORDS = ["mac", "weight", "rate", "limit"]
"""Words that may follow a server's address and port."""


def register(app: typer.Typer) -> None:
    """Adds the family `sojourn lb` to `app`."""
    family = typer.Typer(
        help="Balance flows over servers on an OpenFlow 1.3 switch.", no_args_is_help=True
    )
    family.command("serve")(serve)
    app.add_typer(family, name="lb")


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

    def known(self, as_json: bool, remove: bool) -> dict[str, object]:
        """Returns the settings of `Service` that these options determine.

        With `remove`, only those that the rules in the switch depend on.
        """
        from sojourn.own.text import alone

        servers = [_server(text, as_json) for text in self.server]
        if remove:  # the rules need neither policy nor queues, and both may be gone
            return {"address": self.address, "policy": "round-robin", "servers": servers}
        if self.backlog:
            from sojourn.lb.backlog import sources_of

            found = sources_of(self.backlog, [str(one["name"]) for one in servers])
            servers = [one | {"backlog": text} for one, text in zip(servers, found, strict=True)]
        policy = alone("balancer", self.policy)
        return {"address": self.address, "policy": policy, "servers": servers}


@settings
class Switch:
    """Options of the connection to the switch, and limits on the use of the switch."""

    listen: Annotated[str, Option("ADDRESS:PORT")] = "127.0.0.1:6653"
    """Address and port on which the controller listens for the switch."""
    tls_key: Annotated[Path | None, Option("FILE")] = None
    """Private key of the controller (PEM)."""
    tls_cert: Annotated[Path | None, Option("FILE")] = None
    """Certificate of the controller (PEM)."""
    tls_ca: Annotated[Path | None, Option("FILE")] = None
    """Certificate of the authority that signs the switches' certificates (PEM)."""
    datapath: Annotated[list[str] | None, Option("ID")] = None
    """Datapath identifier of an accepted switch: 16 hexadecimal digits. Repeat for more. By default
    any switch on this machine is accepted.
    """
    table: Table = Table()
    limits: Limits = Limits()
    mac: Annotated[str | None, Option("MAC")] = None
    """MAC address for the virtual address. By default derived from the virtual address."""

    def known(self, as_json: bool) -> dict[str, object]:
        """Returns the settings of `Service` that these options determine."""
        host, port = _where(self.listen, as_json)
        tls = {"key": self.tls_key, "certificate": self.tls_cert, "authority": self.tls_ca}
        return {
            "mac": self.mac,
            "table": self.table,
            "limits": self.limits,
            "listen": {
                "host": host,
                "port": port,
                "tls": tls if any(tls.values()) else None,
                "datapaths": [_datapath(text, as_json) for text in self.datapath or ()],
            },
        }


@settings
class Session:
    """Options of this process and its display."""

    stale: Seconds = 3.0
    """Maximum age of a backlog; the policy's period is added. If a backlog is older, round robin
    replaces a policy that reads backlogs.
    """
    state: Annotated[str | None, Option("FILE")] = None
    """File that passes the assignments of flows to the next controller; `none` for no file. By
    default a file in this user's folder under /run.
    """
    status: Annotated[int | None, Option(min=0, max=65535)] = None
    """Port of the status page on 127.0.0.1; 0 selects any free port. By default no page."""
    watch: bool = False
    """Show ports, queues and assignments in the terminal."""
    dry_run: bool = False
    """Print the rules that would be written to the switch and change nothing."""
    remove: bool = False
    """Remove this balancer's rules from the switch and exit."""


@exits.command
def serve(
    balanced: Balanced,
    affinity: Affinity,
    probes: Probes,
    switch: Switch,
    session: Session,
    seed: options.Seed = 1,
    as_json: options.AsJson = False,
) -> None:
    """Balance flows over servers, as the controller of an OpenFlow 1.3 switch.

    The switch must be configured to connect to this controller (Open vSwitch: set-controller,
    connection-mode=out-of-band, fail-mode=secure). The command writes and removes only rules with
    its own cookie, in one table. The rules stay in the switch after the command ends: the next
    controller adopts them, and the same command with `--remove` removes them. `--json` prints one
    line per second.
    """
    from sojourn.lb.serve import Showing, require_os_ken
    from sojourn.lb.serve import serve as run
    from sojourn.own.sources import is_own

    require_os_ken()
    if not is_own(balanced.policy):
        _core.parse_balancer(balanced.policy)
    service = _service(
        as_json,
        **balanced.known(as_json, session.remove),
        affinity=affinity,
        probes=probes,
        **switch.known(as_json),
        seed=seed,
        stale_seconds=session.stale,
        dry_run=session.dry_run or session.remove,
    )
    if session.state != "none":
        place = Path(session.state) if session.state is not None else _state_file(service)
        service = service.model_copy(update={"state": place})
    run(
        service,
        Showing(watch=session.watch, as_json=as_json, page=session.status, remove=session.remove),
    )


def _service(as_json: bool, **values: object) -> Service:
    from pydantic import ValidationError

    from sojourn.lb.service import Service

    try:
        return Service.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        text = first["msg"].removeprefix("Value error, ")
        exits.fail(f"{_place(first['loc'], values)}{text}", as_json=as_json)


def _place(where: tuple[int | str, ...], values: dict[str, object]) -> str:
    """Returns the option that has an invalid value, as the user wrote it, with the value."""
    match where, values:
        case ("servers", int(number), *rest), {"servers": list(servers)}:
            server = servers[number]
            found = "".join(f"{part}={server.get(part)}" for part in rest)
            return f"--server {server['name']}: {found}: "
        case (str(option), *_), _ if values.get(option) is not None and option != "listen":
            return f"--{option.replace('_seconds', '').replace('_', '-')} {values[option]}: "
        case _:
            return f"{'.'.join(map(str, where))}: " if where else ""


def _state_file(service: Service) -> Path:
    from sojourn.lab.wire.control import folder

    return folder() / f"lb-{service.cookie >> 32:08x}.flows"


def _where(text: str, as_json: bool) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        exits.fail(f"--listen {text}: must be ADDRESS:PORT", as_json=as_json)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _datapath(text: str, as_json: bool) -> int:
    try:
        return int(text.removeprefix("0x").replace(":", ""), 16)
    except ValueError:
        exits.fail(f"--datapath {text}: must be 16 hexadecimal digits", as_json=as_json)


def _server(text: str, as_json: bool) -> Object:
    """Parses a server such as `s1=10.0.0.11@2,weight=3,rate=20mbit,limit=100p`."""
    head, *rest = text.split(",")
    name, equals, place = head.partition("=")
    address, at, port = place.partition("@")
    if not (equals and at and name and address and port):
        exits.fail(f"--server {text}: must begin with NAME=ADDRESS@PORT", as_json=as_json)
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
                near = _core.nearest(word, WORDS)
                hint = f": did you mean `{near}`?" if near else f"; allowed: {', '.join(WORDS)}"
                exits.fail(f"--server {text}: unknown word `{word}`{hint}", as_json=as_json)
    return found
