"""Checks of commands that pages show but no test runs: their names, options and values."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Programs of others, which may not be installed. A name that is not here is a mistake, until it is.
OTHERS = {
    *("curl", "dask", "git", "helm", "ip", "iperf3", "kubectl", "ovs-vsctl", "pip", "tshark", "uv"),
    *("source", "systemctl"),
}


class Wrong(AssertionError):
    """A command that cannot be what it claims to be."""


def check(words: list[str]) -> None:
    """Raises `Wrong` if a command has words that its program does not know."""
    words = list(words)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words.pop(0)
    if not words:
        raise Wrong("no command")
    program, *arguments = words
    match program:
        case "sojourn":
            parse(arguments)
        case "make":
            _make(arguments)
        case "cargo":
            _cargo(arguments)
        case "python":
            _python(arguments)
        case _ if program not in OTHERS:
            raise Wrong(f"`{program}` is no program that the documentation knows")


def _tree() -> Any:
    """All commands, made anew, with nothing behind them."""
    from typer.main import get_command

    from sojourn.cli.app import app

    def empty(command: Any) -> Any:
        command.callback = lambda *_, **__: None
        for inner in getattr(command, "commands", {}).values():
            empty(inner)
        return command

    return empty(get_command(app))


def parse(arguments: list[str]) -> None:
    """Parses the arguments of a `sojourn` command, with all their types, and goes no further."""
    from sojourn.cli.arguments import spread

    try:
        _tree().main(args=spread(arguments), prog_name="sojourn", standalone_mode=False)
    except Exception as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if re.search(r"'[^']*' does not exist", message):
            mention(arguments)  # a reader's own file: all options must still be known
            return
        raise Wrong(message) from error


@cache
def known(*path: str) -> tuple[frozenset[str], dict[str, bool]]:
    """The commands below a command, and its options: whether they take a value."""
    command = _tree()
    for name in path:
        command = command.commands[name]
    options = {"--help": False, "-h": False}
    for param in command.params:
        for text in (*param.opts, *param.secondary_opts):
            options[text] = not getattr(param, "is_flag", False)
    return frozenset(getattr(command, "commands", ())), options


PLACEHOLDER = re.compile(r"[A-Z]+|…|\.\.\.|>|\{.*\}")


def mention(words: list[str]) -> None:
    """Checks `sojourn WORDS` where a sentence names it: its commands and options exist."""
    path: list[str] = []
    left = iter(words)
    for word in left:
        commands, options = known(*path)
        name, _, value = word.partition("=")
        if word == "--":  # then another program's words
            return
        if word.startswith("-"):
            if name not in options:
                raise Wrong(f"`sojourn {' '.join(path)}` has no option {name}")
            if options[name] and not value:
                next(left, None)
        elif word in commands:
            path.append(word)
        elif commands and PLACEHOLDER.fullmatch(word):
            return
        elif commands:
            raise Wrong(f"`sojourn {' '.join(path)}` has no command {word}")


@cache
def _targets() -> frozenset[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def _make(arguments: list[str]) -> None:
    for word in arguments:
        if "=" not in word and word not in _targets():
            raise Wrong(f"the Makefile has no `{word}`")


@cache
def _crates() -> dict[str, Path]:
    found = {}
    for path in (ROOT / "crates").glob("*/Cargo.toml"):
        found[tomllib.loads(path.read_text(encoding="utf-8"))["package"]["name"]] = path.parent
    return found


def _cargo(arguments: list[str]) -> None:
    if arguments[0] not in {"bench", "build", "clippy", "deny", "fmt", "run", "test"}:
        raise Wrong(f"cargo {arguments[0]}?")
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    values = dict(pairwise(ours))
    name = values.get("-p") or values.get("--package")
    if name is None:
        return
    if name not in _crates():
        raise Wrong(f"there is no crate {name}")
    for option, folder in {
        "--test": "tests",
        "--bench": "benches",
        "--example": "examples",
    }.items():
        if option in values and not (_crates()[name] / folder / f"{values[option]}.rs").exists():
            raise Wrong(f"{name} has no {folder}/{values[option]}.rs")


def _python(arguments: list[str]) -> None:
    first, *rest = arguments
    path = ROOT / (rest.pop(0).replace(".", "/") + ".py" if first == "-m" else first)
    if not path.is_file():
        raise Wrong(f"there is no {path.relative_to(ROOT)}")
    text = path.read_text(encoding="utf-8")
    for word in rest:
        if word.startswith("--") and f'"{word}"' not in text:
            raise Wrong(f"{path.relative_to(ROOT)} has no option {word}")
