"""The tree of all commands of `sojourn`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

HELP = """Find out which queue, buffer, server or number of replicas serves your traffic best, how
certain the answer is, and how to apply it. Begin with `sojourn compare FILE`."""

COMMANDS = {
    "compare": (
        "compare",
        "Find the best queue, or the best value of another setting, for a scenario.",
    ),
    "ab": ("ab", "Decide whether one program is worse than another, also over an emulated link."),
    "run": ("run", "Simulate a scenario once and show the results."),
    "play": ("play", "Open a page that simulates a scenario after every change of a setting."),
    "new": ("new", "Write a commented scenario as a starting point."),
    "tc": ("deploy", "Print the commands that install a scenario's queue on an interface."),
    "report": ("report", "Make figures and an HTML page from a folder of results."),
    "paper": ("paper", "Repeat a published study and check which of its findings hold."),
    "judge": ("judge", "Judge any implementation of a queue discipline by the text of its RFC."),
    "verify": ("verify", "Compare the decisions of our queues with decisions recorded from Linux."),
    "check": ("check", "Test your own policy with random schedules of calls."),
    "doctor": ("doctor", "Check which features work on this machine and how to enable the others."),
    "list": ("words", "List queues, transports, policies and metrics."),
    "explain": ("words", "Explain a queue, metric or key and its values."),
    "schema": ("words", "Print the JSON Schema of scenario files, or of a command's JSON output."),
    "completion": (
        "completion",
        "Print the shell script that completes commands and options.",
    ),
    "study": (
        "study",
        "Run a scenario with many settings and seeds, and print the results in one table.",
    ),
    "tune": ("tune", "Find better settings for a queue and verify them by simulation."),
    "fit": ("fit", "Infer a line from measurements: iperf3, ping, flent and irtt."),
    "advise": ("advise", "Choose a measured line's queue, or a store's parameters, by simulation."),
    "lab": ("lab", "Run a scenario with real programs and packets on this machine."),
    "wire": ("wire", "Put an emulated link between network namespaces or interfaces."),
    "lb": ("lb", "Balance flows over servers on an OpenFlow 1.3 switch."),
    "rcvbuf": ("rcvbuf", "Adapt the receive buffers of a running UDP server."),
    "udp": ("udp", "Transfer files over UDP, unencrypted, with an adaptive receive buffer."),
    "store": ("store", "Download a real store for `lab run`, or test a running one."),
    "differ": ("differ", "Find the first packet by which two engines differ."),
    "linux": ("linux", "Manage kernels that run Linux's network code in virtual time."),
}
"""Module in `sojourn.cli` and summary of each command, in the order of the help."""
LINUX = {"lab", "wire", "rcvbuf", "udp", "linux"}
"""The commands that use interfaces of Linux's kernel."""


class _Commands(Mapping[str, Any]):
    """The commands by name; each is created, and its module imported, on first access."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, *COMMANDS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Root(TyperGroup):
    """The root command; its own help imports no module of a command."""

    def __init__(self, *, commands: object = None, **attributes: Any) -> None:
        del commands
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if hasattr(error, "format_message") and hasattr(error, "ctx"):
                import_module("sojourn.cli.mistakes").reword(error)
            raise

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
    rich_markup_mode=None,  # help without rich takes half the time, and can be searched
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 success; 1 completed with a negative result; 2 error (see the "
    "message); 3 not decided (ab); 70 internal error; 130 interrupted (saved results are kept).",
)


def _version(value: bool) -> None:
    if value:
        from sojourn._core import fingerprint, version

        typer.echo(f"sojourn {version()}, engine {fingerprint()}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Root command without an action; its help text is `HELP`."""
    del version


def _made(name: str, module: str, summary: str) -> Any:
    """Returns a command: the function of its name, or the family of commands in `FAMILY`.

    The function with the name of a family is called without a command of the family.
    """
    if name in LINUX and sys.platform != "linux":
        exits = import_module("sojourn.cli.exits")
        exits.fail(f"`sojourn {name}` needs Linux; this system is {sys.platform}")
    found = import_module(f"sojourn.cli.{module}")
    top = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if not hasattr(found, "FAMILY"):
        function = vars(found).get(f"{name}_") or vars(found)[name]
        top.command(name, short_help=summary)(function)
    else:
        family = typer.Typer(help=summary, no_args_is_help=True)
        for function in found.FAMILY:
            word = function.__name__.rstrip("_")
            if word == name:
                family.callback(invoke_without_command=True)(function)
            else:
                family.command(word, short_help=_first_sentence(function.__doc__))(function)
        top.add_typer(family, name=name, short_help=summary)
    return typer.main.get_group(top).commands[name]


def _first_sentence(text: str) -> str:
    """Returns the whole first sentence of a text, which Click would shorten."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return paragraph.split(". ")[0].removesuffix(".") + "."
