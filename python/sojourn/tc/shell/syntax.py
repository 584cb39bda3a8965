"""Parser of scripts: words with their expansions, simple and compound commands.

The syntax is that of POSIX.1-2024, Shell Command Language, with extensions of bash that many
scripts use: `[[ ]]`, `(( ))`, `for ((;;))`, `function`, `+=`, `&>`.
"""

from __future__ import annotations

import re

from sojourn.tc.shell.nodes import (
    LENGTH,
    Arithmetic,
    Case,
    Command,
    CountedFor,
    Evaluation,
    For,
    Function,
    Group,
    If,
    List,
    Literal,
    Parameter,
    Piece,
    Pipeline,
    Redirection,
    Simple,
    Substitution,
    Test,
    While,
    Word,
)

DEPTH = 40
"""Largest depth of nested compound commands and expansions."""

KEYWORDS = {
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "do",
    "done",
    "while",
    "until",
    "case",
    "esac",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_:./,+%@^-]+(?:[ \t]+[A-Za-z0-9_:./,+%@^-]+)*[ \t]*")
_OPERATORS = (
    "&&", "||", ";;&", ";;", ";&", "&>>", "&>", ">>", ">&", ">|", "<<<", "<<-", "<<", "<&", "<>",
    "|&", ";", "&", "|", "(", ")", "<", ">",
)  # fmt: skip
_REDIRECT = {"&>>", "&>", ">>", ">&", ">|", "<<<", "<<-", "<<", "<&", "<>", "<", ">"}


class ShellSyntaxError(Exception):
    """Raised for a text that is not a script; `line` is the line of the error."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str, line: int = 1, depth: int = 0) -> List:
    """Returns the commands of a script; raises `ShellSyntaxError`."""
    parser = _Parser(text, line, depth)
    found = parser.commands(frozenset())
    if parser.sign is not None:
        raise parser.error(f"`{parser.sign}` is not allowed here")
    return found


class _Parser:
    def __init__(self, text: str, line: int = 1, depth: int = 0) -> None:
        if depth > DEPTH:
            raise ShellSyntaxError("commands or expansions are nested too deeply", line)
        self.text, self.at, self.depth = text, 0, depth
        self.line = line
        self.pending: list[tuple[Redirection, str, bool, bool]] = []
        self.advance()

    def error(self, message: str) -> ShellSyntaxError:
        return ShellSyntaxError(message, self.line)

    # `sign` is the token: the text of an operator, a newline, or "word" where a word begins.

    def advance(self) -> None:
        """Moves to the next token, skipping blanks and comments."""
        text, at = self.text, self.at
        while at < len(text):
            if text[at] in " \t\r":
                at += 1
            elif text.startswith("\\\n", at) or text.startswith("\\\r\n", at):
                at = text.index("\n", at) + 1
                self.line += 1
            elif text[at] == "#":
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            else:
                break
        self.at = at
        if at >= len(text):
            self.sign: str | None = None
        elif text[at] == "\n":
            self.sign = "\n"
        else:
            self.sign = next((op for op in _OPERATORS if text.startswith(op, at)), "word")

    def skip(self) -> str:
        """Takes the next token, an operator or newline, and returns it."""
        sign = self.sign or ""
        self.at += len(sign)
        if sign == "\n":
            self.line += 1
            self._bodies()
        self.advance()
        return sign

    def newlines(self) -> None:
        while self.sign == "\n":
            self.skip()

    def peek_name(self) -> str:
        """Returns the next word without taking it; empty if it has quotes or expansions."""
        if self.sign != "word":
            return ""
        match = re.compile(r"[^\s;&|()<>\"'`$\\#]+").match(self.text, self.at)
        if match is None:
            return ""
        behind = self.text[match.end() : match.end() + 1]
        return (
            match[0]
            if behind in ("", " ", "\t", "\n", "\r", ";", "&", "|", "(", ")", "<", ">")
            else ""
        )

    def keyword(self, *names: str) -> None:
        found = self.peek_name()
        if found not in names:
            what = " or ".join(f"`{name}`" for name in names)
            raise self.error(f"{what} is missing" + (f" before `{found}`" if found else ""))
        self.at += len(found)
        self.advance()

    # Lists

    def commands(self, ends: frozenset[str]) -> List:
        """Returns the commands up to a word in `ends`, up to `)`, or up to `;;`, `;&` or `;;&`."""
        found = List()
        before = ";"
        self.newlines()
        while self.sign not in (None, ")", ";;", ";&", ";;&") and self.peek_name() not in ends:
            found.items.append((before, self.pipeline()))
            before = ";"
            if self.sign in ("&&", "||"):
                before = self.skip()
                self.newlines()
                continue
            if self.sign in (";", "&", "\n"):
                self.skip()
                self.newlines()
            elif self.sign not in (None, ")", ";;", ";&", ";;&"):
                raise self.error(f"`{self.sign}` is not allowed here")
        return found

    def pipeline(self) -> Pipeline:
        found = Pipeline([])
        while self.peek_name() == "!":
            self.keyword("!")
            found.negated = not found.negated
        if self.peek_name() == "time":
            self.keyword("time")
        found.commands.append(self.command())
        while self.sign in ("|", "|&"):
            self.skip()
            self.newlines()
            found.commands.append(self.command())
        return found

    def command(self) -> Command:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.error("commands are nested too deeply")
        try:
            found = self._command()
            if not isinstance(found, Simple):
                while self.redirection(found.redirections):
                    pass
            return found
        finally:
            self.depth -= 1

    def _command(self) -> Command:
        if self.sign == "(":
            if self.text.startswith("((", self.at):
                return Evaluation(self._double())
            self.skip()
            body = self.commands(frozenset())
            self._close(")")
            return Group(body, subshell=True)
        match self.peek_name():
            case "{":
                self.keyword("{")
                body = self.commands(frozenset("}"))
                self.keyword("}")
                return Group(body, subshell=False)
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "while" | "until" as word:
                self.keyword(word)
                test = self.commands(frozenset({"do"}))
                return While(test, self._body(), word == "until")
            case "case":
                return self._case()
            case "function":
                self.keyword("function")
                name = self.peek_name()
                self.keyword(name)
                if self.sign == "(":
                    self.skip()
                    self._close(")")
                self.newlines()
                return Function(name, self.command())
            case "[[":
                return self._test()
            case word if word in KEYWORDS:
                raise self.error(f"`{word}` is not allowed here")
            case _:
                return self._simple()

    def _close(self, what: str) -> None:
        if self.sign != what:
            raise self.error(f"`{what}` is missing")
        self.skip()

    def _double(self) -> Word:
        """Takes and returns the text between `((` and `))`."""
        end = _double_end(self.text, self.at + 2)
        if end < 0:
            raise self.error("`))` is missing")
        inner = self.text[self.at + 2 : end]
        self.line += inner.count("\n")
        self.at = end + 2
        self.advance()
        return quoted_text(inner, self.line, self.depth)

    def _body(self) -> List:
        self.newlines()
        if self.sign == ";":
            self.skip()
            self.newlines()
        if self.peek_name() == "{":
            self.keyword("{")
            body = self.commands(frozenset("}"))
            self.keyword("}")
            return body
        self.keyword("do")
        body = self.commands(frozenset({"done"}))
        self.keyword("done")
        return body

    def _if(self) -> If:
        self.keyword("if")
        branches: list[tuple[List, List]] = []
        while True:
            test = self.commands(frozenset({"then"}))
            self.keyword("then")
            branches.append((test, self.commands(frozenset({"elif", "else", "fi"}))))
            if self.peek_name() != "elif":
                break
            self.keyword("elif")
        otherwise = None
        if self.peek_name() == "else":
            self.keyword("else")
            otherwise = self.commands(frozenset({"fi"}))
        self.keyword("fi")
        return If(branches, otherwise)

    def _for(self) -> For | CountedFor:
        self.keyword("for")
        if self.sign == "(" and self.text.startswith("((", self.at):
            end = _double_end(self.text, self.at + 2)
            parts = self.text[self.at + 2 : end].split(";") if end >= 0 else []
            if len(parts) != 3:
                raise self.error("`for ((` needs three expressions separated by `;`")
            self.line += sum(part.count("\n") for part in parts)
            self.at = end + 2
            self.advance()
            first, test, step = (quoted_text(part, self.line, self.depth) for part in parts)
            return CountedFor(first, test, step, self._body())
        name = self.peek_name()
        if not _NAME.fullmatch(name):
            raise self.error("`for` needs the name of a variable")
        self.keyword(name)
        self.newlines()
        words: list[Word] | None = None
        if self.peek_name() == "in":
            self.keyword("in")
            words = []
            while self.sign == "word":
                words.append(self.word())
        return For(name, words, self._body())

    def _case(self) -> Case:
        self.keyword("case")
        found = Case(self.word(), [])
        self.newlines()
        self.keyword("in")
        self.newlines()
        while self.peek_name() != "esac":
            if self.sign is None:
                raise self.error("`esac` is missing")
            if self.sign == "(":
                self.skip()
            patterns = [self.word()]
            while self.sign == "|":
                self.skip()
                patterns.append(self.word())
            self._close(")")
            body = self.commands(frozenset({"esac"}))
            end = self.skip() if self.sign in (";;", ";&", ";;&") else ";;"
            found.branches.append((patterns, body, end))
            self.newlines()
        self.keyword("esac")
        return found

    def _test(self) -> Test:
        self.keyword("[[")
        words: list[Word] = []
        while self.peek_name() != "]]":
            if self.sign is None:
                raise self.error("`]]` is missing")
            if self.sign == "\n":
                self.skip()
            elif self.sign != "word":
                words.append(Word((Literal(self.skip()),)))
            else:
                words.append(self.word())
        self.keyword("]]")
        return Test(words)

    # Simple commands

    def _simple(self) -> Command:
        found = Simple(self.line)
        plain = _PLAIN.match(self.text, self.at)
        if plain is not None and self.text[plain.end() : plain.end() + 1] in ("", "\n"):
            # Fast path: most lines of long lists have no quotes and no expansions.
            found.words = [Word((Literal(word),)) for word in plain[0].split()]
            self.at = plain.end()
            self.advance()
            return found
        while True:
            if self.redirection(found.redirections):
                continue
            if self.sign == "(" and len(found.words) == 1 and not found.assignments:
                name = found.words[0].plain
                if name and re.fullmatch(r"[\w.:-]+", name):
                    self.skip()
                    self._close(")")
                    self.newlines()
                    return Function(name, self.command())
            if self.sign != "word":
                break
            if not found.words and (
                match := re.compile(r"([A-Za-z_]\w*)(\+?)=").match(self.text, self.at)
            ):
                self.at = match.end()
                if self.text.startswith("(", self.at):
                    raise self.error("arrays are not supported")
                value = self._word_here() if self._goes_on() else Word(())
                found.assignments.append((match[1], bool(match[2]), value))
                continue
            found.words.append(self.word())
        if not (found.words or found.assignments or found.redirections):
            raise self.error(f"`{self.sign}` is not allowed here")
        return found

    def _goes_on(self) -> bool:
        """Returns whether the current word continues here; at its end, moves to the next token."""
        if self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|()<>":
            return True
        self.advance()
        return False

    def redirection(self, found: list[Redirection]) -> bool:
        """Takes a redirection, if one is next; returns whether there was one."""
        match = (
            re.compile(r"\d+(?=[<>])").match(self.text, self.at) if self.sign == "word" else None
        )
        if match is not None:
            self.at = match.end()
            self.advance()
        if self.sign not in _REDIRECT:
            return False
        op = self.skip_operator()
        if self.sign != "word":
            raise self.error(f"`{op}` needs the name of a file")
        begin = self.at
        one = Redirection(op, self.word(), match[0] if match else "")
        if op in ("<<", "<<-"):
            written = self.text[begin : self.at].strip()
            end = re.sub(r"[\"'\\]", "", written.split()[0])
            quoted = any(mark in written for mark in "\"'\\")
            self.pending.append((one, end, quoted, op == "<<-"))
        found.append(one)
        return True

    def skip_operator(self) -> str:
        """Takes an operator and returns it, without the bodies of `<<`."""
        sign = self.sign or ""
        self.at += len(sign)
        self.advance()
        return sign

    def _bodies(self) -> None:
        """Takes the bodies of `<<` that begin at this line."""
        for one, end, quoted, strips in self.pending:
            lines: list[str] = []
            first = self.line
            while True:
                if self.at >= len(self.text):
                    raise self.error(f"the line `{end}` that ends `<<` is missing")
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                self.line += 1
                line = line.lstrip("\t") if strips else line
                if line.rstrip("\r") == end:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            one.body = (
                Word((Literal(body, quoted=True),))
                if quoted
                else quoted_text(body, first, self.depth)
            )
        self.pending = []

    # Words

    def word(self) -> Word:
        """Takes and returns the next word."""
        if self.sign != "word":
            raise self.error("a word is missing" + (f" before `{self.sign}`" if self.sign else ""))
        return self._word_here()

    def _word_here(self) -> Word:
        reader = _WordReader(self.text, self.at, self.line, self.depth)
        pieces = reader.unquoted(" \t\r\n;&|()<>")
        self.at, self.line = reader.at, reader.line
        self.advance()
        return Word(tuple(pieces))


class _WordReader:
    """Reads the pieces of a word: text and expansions."""

    def __init__(self, text: str, at: int, line: int, depth: int) -> None:
        if depth > DEPTH:
            raise ShellSyntaxError("expansions are nested too deeply", line)
        self.text, self.at, self.line, self.depth = text, at, line, depth

    def error(self, message: str) -> ShellSyntaxError:
        return ShellSyntaxError(message, self.line)

    def unquoted(self, ends: str) -> list[Piece]:
        pieces: list[Piece] = []
        text = self.text
        while self.at < len(text) and text[self.at] not in ends:
            char = text[self.at]
            if char == "\\":
                if text.startswith("\\\n", self.at) or text.startswith("\\\r\n", self.at):
                    self.at = text.index("\n", self.at) + 1
                    self.line += 1
                else:
                    pieces.append(Literal(text[self.at + 1 : self.at + 2], quoted=True))
                    self.at += 2
            elif char == "'":
                pieces.append(Literal(self._until("'", 1), quoted=True))
            elif char == '"':
                self.at += 1
                inner = self.quoted('"')
                self._expect('"')
                pieces += inner or [Literal("", quoted=True)]
            elif char == "$" and text.startswith("$'", self.at):
                self.at += 1
                pieces.append(Literal(self._until("'", 1), quoted=True))
            elif char in "$`":
                pieces.append(self._expansion(quoted=False))
            else:
                begin = self.at
                while (
                    self.at < len(text)
                    and text[self.at] not in ends
                    and text[self.at] not in "\\'\"$`"
                ):
                    self.line += text[self.at] == "\n"
                    self.at += 1
                pieces.append(Literal(text[begin : self.at]))
        return pieces

    def quoted(self, end: str) -> list[Piece]:
        """Returns the pieces within double quotes, up to `end` or the end of the text."""
        pieces: list[Piece] = []
        text = self.text
        plain: list[str] = []

        def keep() -> None:
            if plain:
                pieces.append(Literal("".join(plain), quoted=True))
                plain.clear()

        while self.at < len(text) and not (end and text.startswith(end, self.at)):
            char = text[self.at]
            if char == "\\" and self.at + 1 < len(text):
                following = text[self.at + 1]
                if following == "\n":
                    self.line += 1
                elif following in '$`"\\' or following == end:
                    plain.append(following)
                else:
                    plain.append(char + following)
                self.at += 2
            elif char in "$`":
                keep()
                pieces.append(self._expansion(quoted=True))
            else:
                self.line += char == "\n"
                plain.append(char)
                self.at += 1
        keep()
        return pieces

    def _until(self, mark: str, skip: int) -> str:
        end = self.text.find(mark, self.at + skip)
        if end < 0:
            raise self.error(f"a closing {mark} is missing")
        inner = self.text[self.at + skip : end]
        self.line += inner.count("\n")
        self.at = end + 1
        return inner

    def _expect(self, mark: str) -> None:
        if not self.text.startswith(mark, self.at):
            raise self.error(f"a closing {mark} is missing")
        self.at += len(mark)

    def _expansion(self, *, quoted: bool) -> Piece:
        text, at = self.text, self.at
        if text[at] == "`":
            inner = self._backquoted()
            return Substitution(parse(inner, self.line, self.depth + 1), inner.strip(), quoted)
        if text.startswith("$((", at):
            end = _double_end(text, at + 3)
            if end >= 0:
                inner = text[at + 3 : end]
                self.at = end + 2
                return Arithmetic(quoted_text(inner, self.line, self.depth + 1), quoted)
        if text.startswith("$[", at) and (end := text.find("]", at)) > 0:
            # the old form `$[...]` of bash
            inner = text[at + 2 : end]
            self.at = end + 1
            return Arithmetic(quoted_text(inner, self.line, self.depth + 1), quoted)
        if text.startswith("$(", at):
            end = _closing(text, at + 2)
            if end < 0:
                raise self.error("`)` is missing")
            inner = text[at + 2 : end]
            line = self.line
            self.line += inner.count("\n")
            self.at = end + 1
            return Substitution(parse(inner, line, self.depth + 1), inner.strip(), quoted)
        if text.startswith("${", at):
            return self._braced(quoted)
        match = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])").match(text, at)
        if match is None:
            self.at += 1
            return Literal("$", quoted)
        self.at = match.end()
        return Parameter(match[1], quoted=quoted)

    def _backquoted(self) -> str:
        at = self.at + 1
        plain: list[str] = []
        while at < len(self.text) and self.text[at] != "`":
            if self.text[at] == "\\" and self.text[at + 1 : at + 2] in ("`", "\\", "$"):
                at += 1
            plain.append(self.text[at])
            at += 1
        if at >= len(self.text):
            raise self.error("a closing ` is missing")
        self.at = at + 1
        return "".join(plain)

    def _braced(self, quoted: bool) -> Parameter:
        match = re.compile(r"\$\{(#?)([A-Za-z_]\w*|\d+|[@*#?$!-])").match(self.text, self.at)
        if match is None:
            raise self.error("`${` is not followed by a name")
        self.at = match.end()
        name, length = match[2], bool(match[1])
        if self.text.startswith("}", self.at):
            self.at += 1
            return Parameter(name, LENGTH if length else "", None, quoted)
        op = re.compile(r":?[-=?+]|%%?|##?|//?|:|\^\^?|,,?").match(self.text, self.at)
        if op is None or length:
            raise self.error(f"`${{{name}` is followed by an expansion that is not supported")
        self.at = op.end()
        inner = _WordReader(self.text, self.at, self.line, self.depth + 1)
        # Quotes around the expansion do not make its pattern literal.
        takes_pattern = op[0][0] in "%#/"
        pieces = inner.quoted("}") if quoted and not takes_pattern else inner.unquoted("}")
        self.at, self.line = inner.at, inner.line
        self._expect("}")
        return Parameter(name, op[0], Word(tuple(pieces)), quoted)


def quoted_text(text: str, line: int, depth: int) -> Word:
    """Returns a text as a word, with expansions as within double quotes."""
    reader = _WordReader(text, 0, line, depth + 1)
    return Word(tuple(reader.quoted("")))


def _double_end(text: str, at: int) -> int:
    """Returns the position of the `))` that closes an expression begun at `at`; -1 without one."""
    depth = 0
    while at < len(text):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            if depth == 0:
                return at if text.startswith("))", at) else -1
            depth -= 1
        at += 1
    return -1


def _closing(text: str, at: int) -> int:
    """Returns the position of the `)` that closes a substitution begun at `at`; -1 without one."""
    depth = 0
    quote = ""
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and text[at - 1] in " \t\n":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        elif char == "(":
            depth += 1
        elif char == ")":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return -1
