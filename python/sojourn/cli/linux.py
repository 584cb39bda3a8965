"""`sojourn linux`: management of kernels that run in virtual time."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import engines
from sojourn.arguments import hint
from sojourn.cli import bars, exits, options, output
from sojourn.linux.settings import Build
from sojourn.settings import Option, settings
from sojourn.stopping import requests

if TYPE_CHECKING:
    from sojourn.linux.kernels import Kernel


@exits.command
def build(asked: Build, as_json: options.AsJson = False) -> None:
    """Build a kernel for virtual time.

    The kernel is compiled from Linux's source as an ordinary program (User-Mode Linux), and stored
    in ~/.cache/sojourn/linux (or below $XDG_CACHE_HOME). It does not replace this machine's kernel.
    The same command continues an interrupted build.
    """
    from sojourn.linux.build import build as make

    try:
        for number in requests():
            signal.signal(number, signal.default_int_handler)
        with bars.steps() as stage:
            made = make(asked, stage, output.note)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; run the same command to continue") from None
    kernel = made.kernel
    if as_json:
        output.print_data(_listed(kernel.folder).as_dict() | {"new": made.new})
        return
    typer.echo(f"kernel {kernel.name} is in {kernel.folder}" + ("" if made.new else " already"))


@exits.command
def list_(as_json: options.AsJson = False) -> None:
    """List the kernels for virtual time."""
    from sojourn.linux import kernels
    from sojourn.linux.build import unfinished

    found = [_listed(folder) for folder in kernels.folders()]
    left = unfinished()
    if as_json:
        output.print_data({"kernels": [one.as_dict() for one in found], "unfinished": left})
        return
    if not found:
        output.note(f"no kernel for virtual time yet; {kernels.REMEDY}")
    else:
        columns = ["name", "release", "HZ", "patches", "repeats", "size", "path"]
        output.table([one.row() for one in found], columns)
    for one in found:
        if one.error is not None:
            output.note(one.error)
    if left:
        output.note(
            f"unfinished and kept builds use {left / 1e6:,.0f} MB; `sojourn linux remove "
            "--unfinished` removes them"
        )


@dataclass(frozen=True)
class Listed:
    """A folder of a kernel."""

    folder: Path
    size: int
    """Size of all files in bytes."""
    kernel: Kernel | None = None
    """The kernel; None for a damaged one."""
    error: str | None = None
    """Reason why the kernel is damaged."""

    def as_dict(self) -> dict[str, object]:
        """Returns the kernel as data for JSON."""
        data = {"name": self.folder.name, "path": str(self.folder), "size": self.size}
        if self.error is not None:
            return data | {"error": self.error}
        kernel = self.kernel
        return data if kernel is None else data | kernel.as_dict() | {"repeats": kernel.repeats}

    def row(self) -> dict[str, str]:
        """Returns the kernel as a row of a table."""
        kernel = self.kernel
        return {
            "name": self.folder.name,
            "release": "damaged" if kernel is None else kernel.release,
            "HZ": "-" if kernel is None else str(kernel.hz),
            "patches": ", ".join(kernel.patches if kernel else ()) or "none",
            "repeats": "-" if kernel is None else "yes" if kernel.repeats else "no",
            "size": f"{self.size / 1e6:.1f} MB",
            "path": str(self.folder),
        }


def _listed(folder: Path) -> Listed:
    from sojourn.lab.errors import LabError
    from sojourn.linux import kernels

    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    try:
        return Listed(folder, size, kernels.read(folder))
    except LabError as error:
        return Listed(folder, size, error=str(error))


@settings
class Removed:
    """The kernel or files to remove."""

    name: Annotated[str | None, Option("[NAME]", positional=True)] = None
    """Name of the kernel, from `sojourn linux list`."""
    unfinished: bool = False
    """Remove downloads, sources and object files of builds, but no kernel."""


@exits.command
def remove(asked: Removed, as_json: options.AsJson = False) -> None:
    """Remove a kernel for virtual time, or the intermediate files of builds."""
    from sojourn.linux import build as building
    from sojourn.linux import kernels

    name = asked.name
    if (name is None) != asked.unfinished:
        exits.fail("give either the name of a kernel or --unfinished")
    if name is None:
        size = building.unfinished()
        building.remove_unfinished()
        removed = f"unfinished and kept builds, {size / 1e6:,.0f} MB"
    else:
        folders = {folder.name: folder for folder in reversed(kernels.folders())}
        if name not in folders:
            rest = hint(name, sorted(folders), "existing") if folders else ": no kernel exists"
            exits.fail(f"no kernel `{name}`{rest}")
        kernels.remove(folders[name])
        removed = str(folders[name])
    if as_json:
        output.print_data({"removed": removed})
        return
    typer.echo(f"removed {removed}")


@settings
class Shell:
    """Options of a shell in a scenario."""

    file: Annotated[Path, Option("FILE", positional=True)]
    """Scenario, a TOML file."""
    host: Annotated[str | None, Option("NAME")] = None
    """Host in which the shell runs: a sender or receiver of the scenario. By default the first."""
    engine: Annotated[
        str,
        Option(
            "NAME", help=f"Engine of the scenario's links: {engines.help_text(engines.VIRTUAL)}."
        ),
    ] = engines.LINUX
    settings: options.Settings = None
    seed: options.Seed = 1


@exits.command
def shell(asked: Shell) -> None:
    """Open a shell in a host of a scenario, in virtual time.

    The scenario's links are up, and its flows do not run. This machine's programs and its /etc are
    available, read-only. Waiting takes no real time. The virtual machine ends with the shell.
    """
    from sojourn.linux.shell import shell as opened

    scenario = options.load(asked.file, asked.settings)
    kind = engines.find(asked.engine, engines.VIRTUAL)
    with exits.refusals(), output.speaking():
        opened(kind.make(), scenario.plan, asked.seed, asked.host)


FAMILY = (build, list_, remove, shell)
"""The commands of `sojourn linux`."""
