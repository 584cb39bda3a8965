"""`sojourn store`: real replicated stores (Cassandra)."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict
from typing import Annotated

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.lab.store.settings import Running
from sojourn.settings import Option


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


@exits.command
def measure(
    file: options.ScenarioFile,
    running: Running,
    seed: options.Seed = 1,
    settings: options.Settings = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure a running store.

    The scenario's requests go to the store over the existing network, not over the scenario's
    links. A keyspace is created for the test and dropped at the end; other data are not touched.
    """
    from sojourn.lab.store.findings import values
    from sojourn.lab.store.measure import measure as ask

    scenario = options.load(file, settings)
    password = os.environ.get("SOJOURN_STORE_PASSWORD", "")
    if running.password_file is not None:
        password = running.password_file.read_text("utf-8").removesuffix("\n")
    if running.user is not None and not password:
        exits.fail("--user needs a password, in SOJOURN_STORE_PASSWORD or by --password-file")
    # SIGTERM raises KeyboardInterrupt, as Ctrl-C does, so that the keyspace is dropped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with bars.waiting("measuring the store", scenario.plan.duration / 1e9):
        columns, about = ask(scenario.plan, seed, running, password, output.note)
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
