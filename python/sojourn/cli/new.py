"""`sojourn new`: a scenario as a starting point, from a template or from answers to questions."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from sojourn import _core
from sojourn.arguments import hint
from sojourn.cli import exits, options, output
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.templates import Option as Key
    from sojourn.templates import Template

T = TypeVar("T")

OWN = "my-link.toml"
"""Default path of a scenario that is composed from answers."""


@settings
class Start:
    """Options of a new scenario."""

    template: Annotated[str | None, Option("NAME")] = None
    """Name of a ready-made scenario (see --list)."""
    down: Annotated[str | None, Option("RATE")] = None
    """Downstream rate of the link, for example 100mbit."""
    up: Annotated[str | None, Option("RATE")] = None
    """Upstream rate of the link, for example 20mbit."""
    rate: Annotated[str | None, Option("RATE")] = None
    """Rate of both directions, if they are equal."""
    rtt: Annotated[str | None, Option("TIME")] = None
    """Round-trip time of the link, for example 30ms."""
    loaded: Annotated[str | None, Option("TIME")] = None
    """Round-trip time under load, for example 400ms: `ping` while the link is full in the direction
    of the problem. The present buffer is fitted to it.
    """
    line: Annotated[str | None, Option("WORD")] = None
    """Kind of line, which determines the overhead per packet: adsl, vdsl, cable, fibre, other."""
    does: Annotated[list[str] | None, Option("WORD")] = None
    """Uses of the link: calls, video, games, web, films, downloads, uploads. Separate several by
    commas, or repeat.
    """
    hurts: Annotated[str | None, Option("WORD")] = None
    """Use of the link that suffers most: uploading, downloading, calls, video, games, web, films,
    nothing.
    """
    out: Annotated[
        Path | None,
        Option(
            "FILE",
            help=f"File to write; by default NAME.toml for a template, otherwise {OWN}. Existing "
            "files are not overwritten.",
        ),
    ] = None
    list_: bool = False
    """List the ready-made scenarios and write nothing."""


@exits.command
def new(asked: Start, as_json: options.AsJson = False) -> None:
    """Write a commented scenario as a starting point.

    Without --template, the command asks about your link, its uses and the problem; options answer
    the questions in advance. With --template, the command writes a ready-made scenario with your
    rates and round-trip time.
    """
    if asked.list_:
        list_templates(as_json)
        return
    if asked.template is not None:
        for option, given in (
            ("--loaded", asked.loaded),
            ("--line", asked.line),
            ("--does", asked.does),
            ("--hurts", asked.hurts),
        ):
            if given:
                exits.fail(f"{option} and --template exclude each other")
    values = quantities({"rate": asked.rate, "up": asked.up, "down": asked.down, "rtt": asked.rtt})
    try:
        if asked.template is not None:
            text, others, file = ready_made(asked.template, values, asked.out)
        else:
            text, others, file = answered(values, asked)
    except typer.Abort:  # Ctrl-C or the end of the input, at a question
        raise KeyboardInterrupt("\nno file was written") from None
    write(text, others, file, as_json)


def list_templates(as_json: bool) -> None:
    """Prints the list of templates."""
    from sojourn.templates import TEMPLATES

    if as_json:
        output.print_data(
            [
                {"name": t.name, "what": t.what, "options": list(t.options), "try": t.commands}
                for t in TEMPLATES.values()
            ]
        )
        return
    rows = [
        {"name": t.name, "what": t.what, "options": " ".join(f"--{o}" for o in t.options)}
        for t in TEMPLATES.values()
    ]
    output.table(rows, ["name", "what", "options"])
    typer.echo(
        "\n`sojourn new --template NAME` writes a template; `sojourn new` asks about your link."
    )


def quantities(given: dict[Key, str | None]) -> dict[Key, str]:
    """Returns the given rates and times after a check; an invalid one ends the command."""
    values: dict[Key, str] = {}
    for option, text in given.items():
        if text is None:
            continue
        with exits.refusals(f"--{option}: "):
            both = None if option == "rtt" else in_bytes(text)
            chosen = which_unit(f"--{option}", text, both) if both else text
            values[option] = quantity(option, chosen)
    if "rate" in values and ("up" in values or "down" in values):
        exits.fail("--rate sets both rates: give either --rate, or --up and --down")
    return values


def in_bytes(text: str) -> tuple[str, str] | None:
    """Returns the two meanings of a rate such as `20Mbps`, in bits and bytes; None for others."""
    found = re.fullmatch(r"([0-9.]+)\s*([kmg])bps", text.strip(), re.IGNORECASE)
    if found is None:
        return None
    number, prefix = found[1], found[2].lower()
    return f"{number}{prefix}bit", f"{float(number) * 8:g}{prefix}bit"


def which_unit(option: str, text: str, both: tuple[str, str]) -> str:
    """Returns the rate that the user means by a text with `bps`; asks at a terminal."""
    bits, bytes_ = both
    if output.is_data() or not sys.stdin.isatty():
        exits.fail(
            f"{option}: `{text}` has two meanings: write {bits} for bits per second, or {bytes_} "
            "for bytes per second, as `tc` reads it"
        )
    return ask(
        f"{text}: is it {bits} (bits per second) or {bytes_} (bytes per second, as in tc)?",
        bits,
        lambda given: words_of("", [given.strip()], [bits, bytes_])[0],
    )


def answer(option: Key, text: str) -> str:
    """Returns the quantity of an answer; a number alone is in Mbit/s or ms."""
    text = text.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        text += "ms" if option == "rtt" else "mbit"
    if option != "rtt" and (both := in_bytes(text)) is not None:
        raise ValueError(f"`{text}` has two meanings: {both[0]} or {both[1]}?")
    return quantity(option, text)


def loaded_of(given: str | None, rtt: str, *, asks: bool) -> str:
    """Returns the round-trip time under load: as given, or from an answer if `asks` is set."""
    with exits.refusals("--loaded: "):
        loaded = under_load(given or "", rtt)
    if loaded or not asks:
        return loaded
    question = "What is the ping under load, while the link is full?"
    return ask(question, "unknown", lambda text: under_load(text, rtt))


def under_load(text: str, rtt: str) -> str:
    """Returns the round-trip time under load of an answer; empty for an unknown time.

    Raises `ValueError` for a time that does not exceed `rtt`.
    """
    if text.strip() in ("", "unknown"):
        return ""
    loaded = answer("rtt", text)
    if _core.parse_quantity("time", loaded) <= _core.parse_quantity("time", rtt):
        raise ValueError(f"it must exceed the time of the idle link, {rtt}")
    return loaded


def quantity(option: Key, text: str) -> str:
    """Returns `text` without outer spaces if it is a valid rate or time.

    A rate must be above zero, and a time at most one hour; other texts raise `ValueError`.
    """
    text = text.strip()
    kind: Literal["time", "rate"] = "time" if option == "rtt" else "rate"
    try:
        amount = _core.parse_quantity(kind, text)
    except _core.WordError as error:
        raise ValueError(error.message) from None
    if kind == "rate" and amount == 0:
        raise ValueError("a link's rate must be above zero, such as 20mbit")
    if kind == "time" and amount > 3600 * 10**9:
        raise ValueError(f"a round trip of {text} exceeds the maximum of one hour")
    return text


def ready_made(
    name: str, values: dict[Key, str], out: Path | None
) -> tuple[str, dict[str, bytes], Path]:
    """Returns a template's text, its additional files by name, and the path to write."""
    from sojourn.templates import TEMPLATES
    from sojourn.templates.edit import renamed

    if name not in TEMPLATES:
        exits.fail(f"unknown template `{name}`{hint(name, TEMPLATES, 'existing')}")
    chosen: Template = TEMPLATES[name]
    for option in values:
        if option not in chosen.options:
            takes = ", ".join(f"--{o}" for o in chosen.options) or "none of these options"
            exits.fail(
                f"--{option}: the template `{name}` takes {takes}; edit the written file instead"
            )
    file = out or Path(chosen.file)
    text = renamed(chosen.text(values), chosen.file, file.name)
    return text, {other: chosen.read(other) for other in chosen.beside}, file


def answered(values: dict[Key, str], start: Start) -> tuple[str, dict[str, bytes], Path]:
    """Returns a scenario's text, no additional files, and the path to write.

    The text is composed from the options and from answers to further questions.
    """
    from sojourn.templates.compose import ACTIVITIES, COMPLAINTS, LINES, Answers, about, compose

    line, hurts = start.line, start.hurts
    with exits.refusals():
        given = [word for text in start.does or [] for word in text.replace(",", " ").split()]
        chosen = words_of("--does", given, list(ACTIVITIES))
        if line is not None:
            [line] = words_of("--line", [line], list(LINES))
        if hurts is not None:
            [hurts] = words_of("--hurts", [hurts], list(COMPLAINTS))
    if "rate" in values:
        values |= {"up": values["rate"], "down": values["rate"]}
    known = {"--down": "down" in values, "--up": "up" in values, "--rtt": "rtt" in values}
    known |= {"--does": bool(chosen), "--hurts": hurts is not None}
    lacking = [option for option, there in known.items() if not there]
    if lacking and not sys.stdin.isatty():
        exits.fail(f"questions require a terminal: give {', '.join(lacking)}, or --template")
    if lacking:
        output.note("A few questions about your link. Press Ctrl-C to quit without writing a file.")
    asked: tuple[tuple[Key, str, str], ...] = (
        ("down", "What is the downstream rate?", "100mbit"),
        ("up", "What is the upstream rate?", "20mbit"),
        ("rtt", "What is the round-trip time of the idle link (ping)?", "30ms"),
    )
    for option, question, usual in asked:
        if option not in values:
            values[option] = ask(question, usual, partial(answer, option))
    if line is None and lacking:
        menu("What kind of line is it?", {word: it.what for word, it in LINES.items()})
        line = ask("A word", "other", lambda text: words_of("", [text.strip()], list(LINES))[0])
    if not chosen:
        menu("What is the link used for?", {w: a.what for w, a in ACTIVITIES.items()})
        chosen = ask(
            "Words, separated by spaces",
            "calls web uploads",
            lambda text: words_of("", text.replace(",", " ").split(), list(ACTIVITIES)),
        )
    fit = about(chosen)
    if hurts is None:
        menu("What is the problem?", {word: COMPLAINTS[word].what for word in fit})
        hurts = ask("A word", fit[0], lambda text: words_of("", [text.strip()], fit)[0])
    elif hurts not in fit:
        needs = COMPLAINTS[hurts].needs
        exits.fail(f"--hurts {hurts} needs --does {needs}")
    loaded = loaded_of(start.loaded, values["rtt"], asks=bool(lacking))
    file = start.out or Path(OWN)
    answers = Answers(
        values["down"], values["up"], values["rtt"], chosen, hurts, line or "other", loaded
    )
    return compose(answers, file.name), {}, file


def menu(question: str, words: dict[str, str]) -> None:
    """Prints a question and its possible answers."""
    width = max(map(len, words))
    output.note(f"\n{question}\n")
    for word, what in words.items():
        output.note(f"  {word:<{width}}  {what}")


def ask(question: str, usual: str, read: Callable[[str], T]) -> T:
    """Repeats a question until an answer is valid; returns the answer. `usual` is the default."""

    def value(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    with output.speaking():
        answer: T = typer.prompt(question, default=usual, value_proc=value, err=True)
    return answer


def words_of(option: str, given: Sequence[str], known: list[str]) -> list[str]:
    """Returns the given words, each once, in the order of `known`; raises `ValueError`."""
    place = f"{option}: " if option else ""
    for word in given:
        if word not in known:
            raise ValueError(f"{place}unknown word `{word}`{hint(word, known)}")
    if not given and not option:
        raise ValueError(f"name at least one of {', '.join(known)}")
    return [word for word in known if word in given]


def write(text: str, others: dict[str, bytes], file: Path, as_json: bool) -> None:
    """Checks the text as a scenario, writes the files, and prints commands to try."""
    from sojourn.templates.check import check
    from sojourn.templates.edit import commands
    from sojourn.templates.write import write_new

    for warning in check(text, others).warnings():
        output.note(warning)
    files = {file.parent / name: data for name, data in others.items()}
    try:
        write_new(files | {file: text.encode("utf-8")})
    except FileExistsError as error:
        exits.fail(
            f"{error.filename}: already exists and was not overwritten; choose another path with "
            "--out"
        )
    found = [
        line.replace(shlex.quote(file.name), shlex.quote(str(file))) for line in commands(text)
    ]
    if as_json:
        written = [str(path) for path in [file, *files]]
        output.print_data({"file": str(file), "files": written, "try": found})
        return
    beside = f" and {', '.join(others)} in the same folder" if others else ""
    typer.echo(f"{file} was written{beside}. Try:\n")
    for line in found:
        typer.echo(f"  {line}")
