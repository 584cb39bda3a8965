"""Builtin commands of the shell, and programs that only produce text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from sojourn.tc.shell import arithmetic
from sojourn.tc.shell.conditions import holds
from sojourn.tc.shell.nodes import Command
from sojourn.tc.shell.values import Exit, Leave, Origins, Return, TooMuch, Value, Variables

NUMBERS = 10_000
"""Largest number of values that `seq` produces."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "", "b": "", "e": "", "c": ""}


class Shell(Protocol):
    """The part of a shell that builtins read and change."""

    variables: Variables
    functions: dict[str, Command]
    files: dict[str, str]
    absent: dict[str, int]
    line: int

    @property
    def stdin(self) -> str | None:
        """The rest of standard input; None if it is unknown."""

    def read(self) -> str | None:
        """Returns the next line of standard input; None at its end."""

    def write(self, text: str, origins: Origins | None = None) -> None:
        """Appends a text to standard output."""

    def write_unknown(self, what: str) -> None:
        """Records an unknown output of the command `what`."""

    def evaluate(self, text: str) -> None:
        """Evaluates a text as a part of the script."""

    def source(self, name: str) -> bool:
        """Evaluates another file; returns whether the user has given this file."""

    def call_program(self, words: list[str], origins: Origins) -> None:
        """Calls a program."""


def run(shell: Shell, words: list[str], origins: Origins) -> bool:
    """Runs a builtin command; returns whether the command is a builtin."""
    command = COMMANDS.get(words[0])
    if command is None:
        return False
    shell.variables.status = 0
    command(shell, words[1:], origins)
    return True


def _true(shell: Shell, words: list[str], origins: Origins) -> None:
    pass


def _false(shell: Shell, words: list[str], origins: Origins) -> None:
    shell.variables.status = 1


def _test(shell: Shell, words: list[str], origins: Origins) -> None:
    shell.variables.status = int(not holds(words))


def _bracket(shell: Shell, words: list[str], origins: Origins) -> None:
    _test(shell, words[:-1] if words[-1:] == ["]"] else words, origins)


def _echo(shell: Shell, words: list[str], origins: Origins) -> None:
    end, escapes = "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        end = "" if "n" in words[0] else end
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    shell.write((_escaped(text) if escapes else text) + end, origins)


def _escaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text)


def _printf(shell: Shell, words: list[str], origins: Origins) -> None:
    if words[:1] == ["-v"] and len(words) > 2:
        text = _formatted(words[2], words[3:])
        shell.variables.put(words[1], origins.value(text))
    elif words:
        shell.write(_formatted(words[0], words[1:]), origins)


_FORMAT = re.compile(r"%([-0 +#]*)(\d{0,3})(?:\.(\d{1,3}))?([sdiuxXoc%b])")


def _formatted(form: str, values: list[str]) -> str:
    form = _escaped(form)
    found = ""
    wanted = sum(match[4] != "%" for match in _FORMAT.finditer(form))
    left = list(values)

    def one(match: re.Match[str]) -> str:
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        text = left.pop(0) if left else ""
        if kind in "sbc":
            text = _escaped(text) if kind == "b" else text[:1] if kind == "c" else text
            return f"%{flags}{width}{f'.{precision}' if precision else ''}s" % text
        number = arithmetic.integer(text) if text.strip() else 0
        return f"%{flags}{width}{kind.replace('u', 'd').replace('i', 'd')}" % number

    while True:
        found += _FORMAT.sub(one, form)
        if not left or not wanted:
            return found
        if len(found) > 1 << 20:
            raise TooMuch("the output of `printf` is too long")


def _assign(shell: Shell, words: list[str], origins: Origins) -> None:
    """Sets the variables that `export`, `readonly` or `declare` name."""
    for word in words:
        name, equals, text = word.partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
            shell.variables.put(name, origins.value(text))


def _local(shell: Shell, words: list[str], origins: Origins) -> None:
    for word in words:
        name = word.partition("=")[0]
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            shell.variables.local(name)
    _assign(shell, words, origins)


def _unset(shell: Shell, words: list[str], origins: Origins) -> None:
    for name in words:
        shell.variables.unset(name)
        shell.functions.pop(name, None)


def _set(shell: Shell, words: list[str], origins: Origins) -> None:
    while words and words[0] != "--" and words[0][:1] in ("-", "+") and len(words[0]) > 1:
        words = words[2:] if words[0].endswith("o") else words[1:]
    if words:
        values = words[1:] if words[0] == "--" else words
        shell.variables.positional = [origins.value(value) for value in values]


def _shift(shell: Shell, words: list[str], origins: Origins) -> None:
    count = arithmetic.integer(words[0]) if words else 1
    positional = shell.variables.positional
    shell.variables.status = int(count > len(positional))
    shell.variables.positional = positional[max(count, 0) :]


def _exit(shell: Shell, words: list[str], origins: Origins) -> None:
    raise Exit


def _return(shell: Shell, words: list[str], origins: Origins) -> None:
    shell.variables.status = arithmetic.integer(words[0]) & 255 if words else shell.variables.status
    raise Return


def _break(shell: Shell, words: list[str], origins: Origins) -> None:
    raise Leave(arithmetic.integer(words[0]) if words else 1, goes_on=False)


def _continue(shell: Shell, words: list[str], origins: Origins) -> None:
    raise Leave(arithmetic.integer(words[0]) if words else 1, goes_on=True)


def _eval(shell: Shell, words: list[str], origins: Origins) -> None:
    shell.evaluate(" ".join(words))


def _source(shell: Shell, words: list[str], origins: Origins) -> None:
    if words and not shell.source(words[0]):
        shell.absent.setdefault(words[0], shell.line)


def _command(shell: Shell, words: list[str], origins: Origins) -> None:
    if words[:1] in (["-v"], ["-V"]):
        _which(shell, words[1:], origins)
    elif words:
        shell.call_program(words, origins)


def _which(shell: Shell, words: list[str], origins: Origins) -> None:
    shell.write("".join(f"{word}\n" for word in words if word[:1] != "-"), origins)


def _let(shell: Shell, words: list[str], origins: Origins) -> None:
    for word in words:
        number = arithmetic.evaluate(
            word,
            lambda name: shell.variables.need(name, origins),
            lambda name, text: shell.variables.put(name, origins.value(text)),
        )
        shell.variables.status = int(number == 0)


def _expr(shell: Shell, words: list[str], origins: Origins) -> None:
    if any(
        word not in ("+", "-", "*", "/", "%", "(", ")") and not word.isdecimal() for word in words
    ):
        shell.write_unknown("expr " + " ".join(words))
        return
    number = arithmetic.evaluate(" ".join(words), lambda _: "0", lambda _, __: None)
    shell.variables.status = int(number == 0)
    shell.write(f"{number}\n", origins)


def _seq(shell: Shell, words: list[str], origins: Origins) -> None:
    numbers = [arithmetic.integer(word) for word in words]
    match numbers:
        case [last]:
            made = range(1, last + 1)
        case [first, last]:
            made = range(first, last + 1)
        case [first, step, last] if step != 0:
            made = range(first, last + (1 if step > 0 else -1), step)
        case _:
            made = range(0)
    if len(made) > NUMBERS:
        raise TooMuch(f"`seq` produces more than {NUMBERS} numbers")
    shell.write("".join(f"{number}\n" for number in made), origins)


def _cat(shell: Shell, words: list[str], origins: Origins) -> None:
    names = [word for word in words if word == "-" or word[:1] != "-"]
    texts = [shell.stdin if name == "-" else shell.files.get(name) for name in names or ["-"]]
    if None in texts:
        shell.write_unknown(" ".join(["cat", *words]))
        return
    shell.write("".join(f"{text}\n" if text else "" for text in texts), origins)


def _read(shell: Shell, words: list[str], origins: Origins) -> None:
    names = [word for word in words if re.fullmatch(r"[A-Za-z_]\w*", word)]
    line = shell.read()
    shell.variables.status = int(line is None)
    if line is None:
        return
    parts = line.split(maxsplit=len(names) - 1) if names else []
    for number, name in enumerate(names):
        text = parts[number] if number < len(parts) else ""
        shell.variables.put(name, Value(text))


def _basename(shell: Shell, words: list[str], origins: Origins) -> None:
    if words:
        shell.write(words[0].rstrip("/").rpartition("/")[2] + "\n", origins)


def _cut(shell: Shell, words: list[str], origins: Origins) -> None:
    """Writes a field of each line, as `cut -d. -f1` does, for example a part of an address."""
    match = re.fullmatch(r"(?:-d ?(.) -f ?(\d+)|-f ?(\d+) -d ?(.))", " ".join(words))
    text = shell.stdin
    if match is None or text is None:
        shell.write_unknown(" ".join(["cut", *words]))
        return
    mark, place = match[1] or match[4], int(match[2] or match[3])
    for line in text.splitlines():
        parts = line.split(mark)
        shell.write((parts[place - 1] if 0 < place <= len(parts) else "") + "\n", origins)


Builtin = Callable[["Shell", list[str], Origins], None]
COMMANDS: dict[str, Builtin] = {
    ":": _true, "true": _true, "false": _false, "test": _test, "[": _bracket, "echo": _echo,
    "printf": _printf, "export": _assign, "readonly": _assign, "declare": _local,
    "typeset": _local, "local": _local, "unset": _unset, "set": _set, "shift": _shift,
    "exit": _exit, "return": _return, "break": _break, "continue": _continue, "eval": _eval,
    ".": _source, "source": _source, "command": _command, "builtin": _command, "which": _which,
    "type": _true, "let": _let, "expr": _expr, "seq": _seq, "cat": _cat, "read": _read,
    "basename": _basename, "cut": _cut, "trap": _true, "alias": _true, "umask": _true,
    "wait": _true, "hash": _true, "ulimit": _true, "getopts": _false,
}  # fmt: skip
