"""Evaluates a script without executing it, and finds the commands that it would run.

Assignments, functions, conditions, loops and text output of builtins have their effect. A command
of another program is assumed to succeed without effect; its output is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sojourn.tc.shell import builtins, syntax
from sojourn.tc.shell.arithmetic import BadArithmetic
from sojourn.tc.shell.conditions import BadTest, holds
from sojourn.tc.shell.expand import Expander
from sojourn.tc.shell.nodes import (
    Case,
    Command,
    CountedFor,
    Evaluation,
    For,
    Function,
    Group,
    If,
    List,
    Parameter,
    Pipeline,
    Redirection,
    Simple,
    Test,
    While,
    Word,
)
from sojourn.tc.shell.patterns import fits
from sojourn.tc.shell.values import (
    LENGTH,
    Exit,
    Leave,
    Origins,
    Return,
    TooMuch,
    Value,
    Variables,
)

STEPS = 200_000
"""Largest number of commands and loop iterations in all files together."""
WHICH_IS = ", the output of "
"""Text between a variable's name and the command whose output is its value."""
CALLS = 30
"""Largest depth of nested functions and substitutions."""


@dataclass(frozen=True, slots=True)
class Run:
    """A command of another program that a script would run."""

    words: list[str]
    line: int
    origins: Origins
    stdin: str | None
    """Standard input of the command; None if it is unknown."""


class Shell:
    """Evaluates scripts.

    `program` is called for a command of another program, and returns whether the command's output
    is known to be empty. `doubt` is called with the line and a message for a construct that cannot
    be read.
    """

    def __init__(
        self,
        given: Mapping[str, str],
        program: Callable[[Run], bool],
        doubt: Callable[[int, str], None],
        script: str = "sh",
    ) -> None:
        self.variables = Variables(given, script)
        self.expander = Expander(self.variables, self._substitute)
        self.functions: dict[str, Command] = {}
        self.files: dict[str, str] = {}
        """Texts of files that the script has written, by name."""
        self.sources: dict[str, str] = {}
        """Texts of other given files, by the last part of their name; `.` may read them."""
        self._program = program
        self._doubt = doubt
        self._out: list[str] | None = None
        self._origins: Origins | None = None
        self._stdin: list[str] | None = None
        self._steps = 0
        self._calls = 0
        self.line = 1
        self._callers: list[int] = []
        self._read: set[str] = set()
        self.absent: dict[str, int] = {}
        """Files that `.` did not find, with the line of the command."""

    def run(self, script: List) -> None:
        """Evaluates a script to its end; raises `ShellSyntaxError` or `TooMuch`."""
        try:
            self._list(script)
        except (Exit, Return, Leave):
            return
        except RecursionError:
            raise TooMuch("functions and compound commands are nested too deeply") from None

    def step(self) -> None:
        """Counts a command or loop iteration; raises `TooMuch` above `STEPS`."""
        self._steps += 1
        if self._steps > STEPS:
            raise TooMuch(f"the script runs more than {STEPS} commands and loop iterations")

    # Output

    def write(self, text: str, origins: Origins | None = None) -> None:
        """Appends a text to standard output if it is captured; records the text's origins."""
        if self._out is None:
            return
        self._out.append(text)
        if sum(map(len, self._out)) > LENGTH:
            raise TooMuch(f"an output is longer than {LENGTH} characters")
        if origins is not None and self._origins is not None:
            self._origins.missing |= origins.missing
            self._origins.unknown |= origins.unknown

    def write_unknown(self, what: str) -> None:
        """Records that standard output contains an unknown output of the command `what`."""
        if self._origins is not None:
            self._origins.unknown[what] = None

    def read(self) -> str | None:
        """Returns the next line of standard input; None at its end, or if it is unknown."""
        return self._stdin.pop(0) if self._stdin else None

    @property
    def stdin(self) -> str | None:
        """The rest of standard input; None if it is unknown."""
        return None if self._stdin is None else "\n".join(self._stdin)

    def _capture(self, action: Callable[[], object], origins: Origins) -> str:
        outer, of_outer = self._out, self._origins
        mine: list[str] = []
        self._out, self._origins = mine, origins
        self._calls += 1
        if self._calls > CALLS:
            raise TooMuch("functions and substitutions are nested too deeply")
        try:
            action()
        finally:
            self._out, self._origins = outer, of_outer
            self._calls -= 1
        return "".join(mine)

    def _substitute(self, script: List, origins: Origins) -> str:
        def action() -> None:
            with self.variables.copy():
                try:
                    self._list(script)
                except (Exit, Return, Leave):
                    return

        return self._capture(action, origins)

    # Lists

    def _list(self, commands: List) -> None:
        for before, pipeline in commands.items:
            if before == "&&" and self.variables.status != 0:
                continue
            if before == "||" and self.variables.status == 0:
                continue
            self._pipeline(pipeline)

    def _pipeline(self, pipeline: Pipeline) -> None:
        if len(pipeline.commands) == 1:
            self._command(pipeline.commands[0])
        else:
            outer = self._stdin
            try:
                for command in pipeline.commands[:-1]:
                    origins = Origins()
                    found = self._capture(lambda c=command: self._command(c), origins)  # type: ignore[misc]
                    self._stdin = None if origins.unknown else found.splitlines()
                if self._stdin is None:
                    for what in origins.unknown:
                        self.write_unknown(what)
                self._command(pipeline.commands[-1])
            finally:
                self._stdin = outer
        if pipeline.negated:
            self.variables.status = int(self.variables.status == 0)

    def _status(self, commands: List) -> bool:
        self._list(commands)
        return self.variables.status == 0

    # Commands

    def _command(self, command: Command) -> None:
        self.step()
        if isinstance(command, Simple):
            self.line = self._callers[-1] if self._callers and _passes_on(command) else command.line
            self._guarded(lambda: self._simple(command))
            return
        self._redirected(
            command.redirections, lambda: self._guarded(lambda: self._compound(command))
        )

    def _guarded(self, action: Callable[[], None]) -> None:
        """Runs an action; a construct that cannot be read is reported and gives the status 2."""
        try:
            action()
        except (BadArithmetic, BadTest) as why:
            self._doubt(self.line, str(why))
            self.variables.status = 2

    def _compound(self, command: Command) -> None:
        match command:
            case If():
                self._if(command)
            case For():
                self._for(command)
            case CountedFor():
                self._counted_for(command)
            case While():
                self._while(command)
            case Case():
                self._case(command)
            case Function():
                self.functions[command.name] = command.body
                self.variables.status = 0
            case Group(subshell=True):
                with self.variables.copy():
                    try:
                        self._list(command.body)
                    except Exit:
                        return
            case Group():
                self._list(command.body)
            case Test():
                self._test(command)
            case Evaluation():
                self.variables.status = int(self.expander.number(command.word, Origins()) == 0)

    def _if(self, command: If) -> None:
        for test, body in command.branches:
            if self._status(test):
                self._list(body)
                return
        self.variables.status = 0
        if command.otherwise is not None:
            self._list(command.otherwise)

    def _round(self, body: List) -> bool:
        """Runs one iteration of a loop; returns whether another iteration may follow."""
        self.step()
        try:
            self._list(body)
        except Leave as leave:
            if leave.loops > 1:
                raise Leave(leave.loops - 1, goes_on=leave.goes_on) from None
            return leave.goes_on
        return True

    def _for(self, command: For) -> None:
        self.variables.status = 0
        if command.words is None:
            values = list(self.variables.positional)
        else:
            values = self.expander.fields(command.words, Origins())
        for value in values:
            self.variables.put(command.name, value)
            if not self._round(command.body):
                break

    def _counted_for(self, command: CountedFor) -> None:
        number = self.expander.number
        number(command.first, Origins())
        while not command.test.pieces or number(command.test, Origins()):
            if not self._round(command.body):
                break
            number(command.step, Origins())

    def _while(self, command: While) -> None:
        while self._status(command.test) != command.until:
            if not self._round(command.body):
                break
        self.variables.status = 0

    def _case(self, command: Case) -> None:
        text = self.expander.text(command.word, Origins())
        self.variables.status = 0
        falls = False
        for words, body, end in command.branches:
            if not falls and not any(
                fits(self.expander.pattern(w, Origins()), text) for w in words
            ):
                continue
            self._list(body)
            falls = end == ";&"
            if end == ";;":
                return

    def _test(self, command: Test) -> None:
        words = [self.expander.text(word, Origins()) for word in command.words]
        as_patterns = [self.expander.pattern(word, Origins()) for word in command.words]
        self.variables.status = int(not holds(words, as_patterns))

    def _simple(self, command: Simple) -> None:
        origins = Origins()
        words = self.expander.fields(command.words, origins)
        if not words:
            self.variables.status = 0
            for name, adds, word in command.assignments:
                self._assign(name, adds, word)
            self._redirected(command.redirections, lambda: None)
            return
        self._redirected(command.redirections, lambda: self._call(words, origins))

    def _assign(self, name: str, adds: bool, word: Word) -> None:
        origins = Origins()
        old = self.variables.get(name) if adds else None
        text = origins.add(old) if old is not None else ""
        value = origins.value(text + self.expander.text(word, origins))
        # The user may set a command's unknown output by the name of this variable.
        unknown = (u if WHICH_IS in u else f"{name}{WHICH_IS}{u}" for u in value.unknown)
        self.variables.put(name, Value(value.text, value.missing, frozenset(unknown)))

    def _call(self, values: list[Value], origins: Origins) -> None:
        """Runs a command: a function, a builtin or another program."""
        words = [value.text for value in values]
        body = self.functions.get(words[0])
        if body is not None:
            line = self.line
            self._function(body, values[1:])
            self.line = line
            return
        if not builtins.run(self, words, origins):
            self.call_program(words, origins)

    def call_program(self, words: list[str], origins: Origins) -> None:
        """Runs a command of another program, whose output is unknown unless it is empty."""
        line = self.line
        self.variables.status = 0
        if not self._program(Run(words, line, origins, self.stdin)):
            self.write_unknown(words[0])

    def _function(self, body: Command, values: list[Value]) -> None:
        self._calls += 1
        if self._calls > CALLS:
            raise TooMuch("functions and substitutions are nested too deeply")
        self._callers.append(self.line)
        try:
            with self.variables.call(values):
                self.variables.status = 0
                self._command(body)
        except Return:
            return
        finally:
            self._callers.pop()
            self._calls -= 1

    # Redirections

    def _redirected(self, redirections: list[Redirection], action: Callable[[], None]) -> None:
        outer = self._stdin
        target: tuple[str, bool] | None = None
        for one in redirections:
            name = self.expander.text(one.target, Origins())
            if one.op in ("<<", "<<-") and one.body is not None:
                self._stdin = self.expander.text(one.body, Origins()).splitlines()
            elif one.op == "<<<":
                self._stdin = name.splitlines()
            elif one.op == "<":
                text = self.files.get(name)
                self._stdin = None if text is None else text.splitlines()
            elif one.op in (">", ">>", ">|", "&>", "&>>") and one.number in ("", "1"):
                target = (name, one.op.endswith(">>"))
            elif one.op == ">&" and one.number in ("", "1") and name != "1":
                # A substitution captures only descriptor 1; output to other descriptors is
                # discarded.
                target = ("/dev/null" if name == "-" or name.isdecimal() else name, False)
        try:
            if target is None:
                action()
                return
            origins = Origins()
            found = self._capture(action, origins)
            name, adds = target
            if not origins.unknown and not name.startswith("/dev/"):
                old = self.files.get(name, "") if adds else ""
                if len(old) + len(found) > LENGTH or len(self.files) > 1000:
                    raise TooMuch(
                        f"the script writes more than {LENGTH} characters to a file, "
                        "or too many files"
                    )
                self.files[name] = old + found
        finally:
            self._stdin = outer

    def doubt(self, message: str) -> None:
        """Reports a message about the current line."""
        self._doubt(self.line, message)

    def evaluate(self, text: str) -> None:
        """Evaluates a text as a part of the script; raises `TooMuch`."""
        self._calls += 1
        try:
            if self._calls > CALLS:
                raise TooMuch("`eval` is nested too deeply")
            self._list(syntax.parse(text, self.line))
        finally:
            self._calls -= 1

    def had(self, name: str) -> None:
        """Records that a file is read as a separate script, so that `.` skips it."""
        last = name.rpartition("/")[2]
        self.sources.pop(last, None)
        self._read.add(last)

    def source(self, name: str) -> bool:
        """Evaluates another file; returns whether the user has given this file."""
        last = name.rpartition("/")[2]
        text = self.sources.pop(last, None)
        if text is None:
            return last in self._read
        self._read.add(last)
        line = self.line
        self._calls += 1
        try:
            if self._calls > CALLS:
                raise TooMuch("files that read other files are nested too deeply")
            self._list(syntax.parse(text))
        except Return:
            pass
        finally:
            self._calls -= 1
            self.line = line
        return True


def _passes_on(command: Simple) -> bool:
    """Returns whether a command contains its function's arguments (`$@`).

    The line of the function's call then counts as the line of the command.
    """
    pieces = (piece for word in command.words for piece in word.pieces)
    return any(isinstance(piece, Parameter) and piece.name == "@" for piece in pieces)
