"""Options that several commands share, alone and in groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sojourn.cli.exits import fail
from sojourn.cli.output import note
from sojourn.study.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

    from sojourn.lab.engine import WireEngine
    from sojourn.scenario import Scenario

ScenarioFile = Annotated[
    Path,
    # Whether it can be read is told by who reads it, as for everything else that is wrong with it.
    typer.Argument(metavar="FILE", help="Scenario, a TOML file.", readable=False),
]
Real = Annotated[
    bool,
    typer.Option(
        "--real",
        help="With real programs and real packets instead of the simulator: takes as long as the "
        "scenario says, one run after the other.",
    ),
]
Privilege = Annotated[
    Literal["auto", "user", "root"],
    typer.Option(
        "--privilege",
        help="Real runs: in a user namespace, as root, or as root only where a user namespace "
        "does not suffice.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the run.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the scenario, such as links.uplink.rate=10mbit. Repeat for more.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Runs made at a time; by default as many as cores."),
]


def load(file: Path | str, settings: list[str] | None) -> Scenario:
    """The scenario in `file` with the command line's changes."""
    from sojourn.scenario import Scenario

    return changed(Scenario.load(file), settings)


def changed(scenario: Scenario, settings: list[str] | None) -> Scenario:
    """The scenario with the command line's changes."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.change import setting

    if not settings:
        return scenario
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    for text in settings:
        try:
            key, value = setting(text)
        except ScenarioError as error:
            problems += error.problems
        else:
            changes[key] = value
    if problems:
        raise ScenarioError(problems)
    return scenario.replace(changes)


LONGEST_FOLDER = 80
"""Characters of a folder's name that we choose; systems allow 255 bytes."""


def folder_of(name: str, otherwise: str) -> Path:
    """Where results of what is called so are kept, if nothing else is said."""
    plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_FOLDER].strip("-.")
    return Path("results") / (plain or otherwise)


@dataclass(frozen=True)
class Cluster:
    """The Dask cluster that makes the runs, if one does."""

    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ADDRESS",
            help="Let the workers of a Dask cluster make the runs: its scheduler's address, such "
            "as tcp://host:8786.",
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-ca", metavar="FILE", help="Authority the cluster's certificates are from."
        ),
    ] = None
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="Certificate for the cluster."),
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate.")
    ] = None

    @contextmanager
    def connected(self) -> Iterator[Client | None]:
        """The cluster as a study takes it; None is this machine."""
        if self.on is None:
            if self.tls_ca or self.tls_cert or self.tls_key:
                raise ClusterError(
                    "--tls-ca, --tls-cert and --tls-key belong to a cluster: see --on"
                )
            yield None
            return
        from sojourn.study.cluster import Tls, connected

        note(f"connecting to {self.on}")
        with connected(self.on, Tls(self.tls_ca, self.tls_cert, self.tls_key)) as client:
            yield client


@dataclass(frozen=True)
class Simulated:
    """Where runs are simulated."""

    workers: Workers = None
    cluster: Cluster = Cluster()


@dataclass(frozen=True)
class Made:
    """Where runs are made, simulated or real."""

    workers: Workers = None
    real: Real = False
    cluster: Cluster = Cluster()

    def engine(self, as_json: bool) -> WireEngine | None:
        """The engine of a study: None is the simulator."""
        if not self.real:
            return None
        if self.cluster.on is not None:
            fail(
                "`--real` and `--on` exclude each other: real runs are made on this machine alone",
                as_json=as_json,
            )
        from sojourn.lab.engine import WireEngine

        return WireEngine()


def tell_doubts(engine: WireEngine | None) -> None:
    """Says which of the runs just made are not to be believed, and why."""
    if engine is None or not engine.doubtful:
        return
    note(f"{len(engine.doubtful)} of {engine.made} real runs are NOT VALID:")
    for doubt in dict.fromkeys(doubt for doubts in engine.doubtful for doubt in doubts):
        note(f"  {doubt}")
