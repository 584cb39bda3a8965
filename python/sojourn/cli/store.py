"""`sojourn store`: real replicated stores (Cassandra)."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option, settings


@exits.command
def fetch(
    repository: Annotated[
        str | None,
        Option("URL", help="URL of a mirror of Maven Central. By default Maven Central itself."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Download Cassandra's program files (jars, 68 MB) for `lab run` and check them.

    The files come from Maven Central, are checked by SHA-256, and are stored in ~/.cache/sojourn
    (or below $XDG_CACHE_HOME). They are not installed on the system.
    """
    from sojourn.lab.cassandra import VERSION, artefacts

    with bars.counting("fetching Cassandra", "jars") as tell:
        made = artefacts.fetch(repository=repository or artefacts.REPOSITORY, progress=tell)
    where = artefacts.folder()
    if as_json:
        output.print_data({"version": VERSION, "folder": str(where), "fetched": made})
        return
    typer.echo(f"Cassandra {VERSION} is in {where}" + ("" if made else " already"))


@settings
class Measurement:
    """Options of a measurement of a running store."""

    contact_points: Annotated[str, Option("A,B")]
    """Addresses of running nodes, separated by commas."""
    port: Annotated[int, Option(min=1, max=65_535)] = 9042
    """Port on which the nodes answer clients."""
    user: str | None = None
    """User name at the store; the password is in $SOJOURN_STORE_PASSWORD or --password-file."""
    password_file: Annotated[Path | None, Option("FILE", existing=True)] = None
    """File that contains the password."""
    authority: Annotated[Path | None, Option("FILE", flag="--tls", existing=True)] = None
    """Use TLS; FILE is the certificate of the authority that signs the nodes' certificates."""
    certificate: Annotated[Path | None, Option("FILE", flag="--tls-certificate", existing=True)] = (
        None
    )
    """File with a client certificate and its key, if the nodes require one."""
    rate: Annotated[float, Option(min=0.01, max=100_000)] = 100.0
    """Largest number of requests per second."""
    seed: options.Seed = 1
    settings: options.Settings = None


@exits.command
def measure(
    file: options.ScenarioFile, asked: Measurement, as_json: options.AsJson = False
) -> None:
    """Measure a running store.

    The scenario's requests go to the store over the existing network, not over the scenario's
    links. A keyspace is created for the test and dropped at the end; other data are not touched.
    """
    from sojourn.lab.store.findings import values
    from sojourn.lab.store.measure import Running
    from sojourn.lab.store.measure import measure as ask

    scenario = options.load(file, asked.settings)
    points = [point.strip() for point in asked.contact_points.split(",") if point.strip()]
    if not points:
        exits.fail("--contact-points must name at least one node, such as 127.0.0.1")
    password = os.environ.get("SOJOURN_STORE_PASSWORD", "")
    if asked.password_file is not None:
        password = asked.password_file.read_text("utf-8").removesuffix("\n")
    if asked.user is not None and not password:
        message = "--user needs a password, in SOJOURN_STORE_PASSWORD or by --password-file"
        exits.fail(message)
    if asked.certificate is not None and asked.authority is None:
        exits.fail("--tls-certificate requires --tls with the certificate of the signing authority")
    running = Running(
        points, asked.port, asked.user, password,
        authority=None if asked.authority is None else str(asked.authority),
        certificate=None if asked.certificate is None else str(asked.certificate),
        rate=asked.rate,
    )  # fmt: skip
    # SIGTERM raises KeyboardInterrupt, as Ctrl-C does, so that the keyspace is dropped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with bars.waiting("measuring the store", scenario.plan.duration / 1e9):
        columns, about = ask(scenario.plan, asked.seed, running, output.note)
    found = values(columns)
    if as_json:
        output.print_data({"metrics": found, "store": asdict(about)})
        return
    from sojourn.scenario.summary import format_value

    rows = [
        {"metric": name, "value": format_value(found[name], unit, name)}
        for name, unit, _, _ in columns
    ]
    output.table(rows, ["metric", "value"], scenario.name)


FAMILY = (fetch, measure)
"""The commands of `sojourn store`."""
