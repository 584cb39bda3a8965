"""The tree of commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

HELP = """Learn which queue, buffer, server or number of replicas serves your traffic, how sure that
is, and what to do. Begin with `sojourn compare FILE`."""

COMMANDS = {
    "compare": ("compare", "Find the queue that serves a scenario best, or another setting."),
    "run": ("run", "See what happens in a scenario: simulate it once."),
    "play": ("play", "Play with a scenario: a page that simulates at every change."),
    "new": ("new", "Write a commented scenario to begin with, for `compare`."),
    "tc": ("deploy", "Get the commands that put a scenario's queue on a real interface."),
    "report": ("report", "Get figures and one HTML page from a folder of results."),
    "paper": ("paper", "See which findings of a published study hold: repeat it."),
    "verify": ("verify", "Check that our queues decide as Linux's recorded ones did."),
    "check": ("check", "Try a policy of your own with random schedules."),
    "doctor": ("doctor", "Say what this machine can do, and what adds the rest."),
    "list": ("words", "See what there is: queues, transports, policies, metrics."),
    "explain": ("words", "Look up a word: what a queue, metric or key means and takes."),
    "schema": ("words", "Get the JSON Schema by which editors check scenario files."),
    "completion": (
        "completion",
        "Print the script that completes commands and options in a shell.",
    ),
    "study": ("study", "Vary anything in a scenario, over many seeds, into one table."),
    "tune": ("tune", "Find better settings for a queue, and prove them by simulation."),
    "advise": ("advise", "Learn what to choose, and how sure that is, by simulation."),
    "lab": ("lab", "See a scenario for real, on this machine."),
    "wire": ("wire", "Put an emulated link between network namespaces or interfaces."),
    "lb": ("lb", "Spread flows over servers on an OpenFlow 1.3 switch."),
    "rcvbuf": ("rcvbuf", "Have a running UDP server drop less: adapt its buffers."),
    "udp": ("udp", "Move files over UDP, with a receive buffer that adapts."),
    "store": ("store", "Use a real store: for `lab run`, or one that runs already."),
    "linux": ("linux", "Linux's own network code in virtual time: kernels, and a shell."),
}
"""By command, in the order in which help shows them: the module that has it, and its summary."""


class _Commands(Mapping[str, Any]):
    """The commands, each made when it is looked up, and its module imported."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        module = COMMANDS[name][0]
        if name not in self._made:
            family = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
            import_module(f"sojourn.cli.{module}").register(family)
            _summed_up(family)
            self._made |= typer.main.get_group(family).commands
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Root(TyperGroup):
    """The root of the tree: its help and its completion import no command."""

    def __init__(self, *, commands: object = None, **attributes: Any) -> None:
        del commands
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: object) -> list[str]:
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: object, formatter: Any) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


app = typer.Typer(
    cls=_Root,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help takes half the time, and can be searched and piped
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 all is well; 1 what was found is not well; 2 it could not be done, the "
    "message says why; 70 a fault of ours; 130 interrupted, what is done is kept.",
)


def _version(value: bool) -> None:
    if value:
        from sojourn._core import fingerprint, version

        typer.echo(f"sojourn {version()}, engine {fingerprint()}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    """Nothing but its options: the help is `HELP`."""
    del version


def _summed_up(app: typer.Typer) -> None:
    """Lists commands with their whole first sentence: the parser would cut it to one line."""

    def first(text: str | None) -> str:
        paragraph = " ".join((text or "").split("\n\n")[0].split())
        return paragraph.split(". ")[0].removesuffix(".") + "."

    for entry in app.registered_commands:
        text = entry.help or (entry.callback.__doc__ if entry.callback else None)
        entry.short_help = entry.short_help or first(text)
    for group in app.registered_groups:
        if (family := group.typer_instance) is not None:
            group.short_help = group.short_help or first(family.info.help)
            _summed_up(family)
