"""Commands and files of `nft` (nft(8)): rules that set marks, code points and classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sojourn.tc.filters import read_number
from sojourn.tc.iptables import address, code_point, dscp, ports, protocol
from sojourn.tc.model import (
    HOOKS,
    WORD,
    Change,
    Firewall,
    Match,
    Place,
    Refused,
    Step,
    Words,
    name_of,
)

FAMILIES = ("ip", "ip6", "inet", "arp", "bridge", "netdev")
PRIORITIES = {
    "raw": -300, "mangle": -150, "dstnat": -100, "filter": 0, "security": 50, "srcnat": 100,
}  # fmt: skip
_WORDS = re.compile(r'"[^"]*"|[=!<>]=|[{},;=<>!]|[^\s{},;=<>!"]+')
_OPERATORS = {"!", "!=", "<", ">", "<=", ">=", "and", "&", "map", "vmap"}
_Tests = list[tuple[tuple[Match, ...], ...]]


class Reader:
    """Applies commands and files of `nft` to a firewall."""

    def __init__(self, firewall: Firewall) -> None:
        self._firewall = firewall

    def command(self, words: list[str], place: Place) -> None:
        """Applies a command, given by its words after `nft`; raises `Refused` if not supported."""
        found = [word for text in words for word in _WORDS.findall(text)]
        while found and found[0].startswith("-"):
            del found[0]
        family = found[2] if len(found) > 2 and found[2] in FAMILIES else "ip"
        rest = found[3:] if len(found) > 2 and found[2] in FAMILIES else found[2:]
        match found[:2]:
            case ["add" | "insert" as verb, "rule"] if len(rest) > 2:
                self._rule(verb, family, f"{rest[0]}/{rest[1]}", rest[2:], place)
            case ["add" | "create", "chain"] if len(rest) > 2:
                self._hook(f"{rest[0]}/{rest[1]}", rest[2:])
            case ["flush" | "delete", "table"] if rest:
                self._remove(f"{rest[0]}/")
            case ["flush" | "delete", "chain"] if len(rest) > 1:
                self._remove(f"{rest[0]}/{rest[1]}")
            case ["flush", "ruleset"]:
                self._remove("")
            case ["add" | "insert" | "replace" | "delete", "rule" | "element" | "set" | "map"]:
                raise Refused(f"`{found[0]} {found[1]}` is not supported", found[1])

    def file(self, text: str, place: Place) -> list[tuple[Place, Refused]]:
        """Applies the rules in a file; returns the lines that are not supported."""
        refused: list[tuple[Place, Refused]] = []
        family, table, chain, depth = "ip", "", "", 0
        for line, clean in _lines(text):
            here = Place(place.file, place.line, line)
            words = _WORDS.findall(clean)
            opened = re.fullmatch(r"(table|chain|set|map|flowtable)\s+(.*?)\s*\{", clean)
            try:
                if opened is not None and opened[1] == "table":
                    named = opened[2].split()
                    family, table, chain = named[0] if len(named) > 1 else "ip", named[-1], ""
                elif opened is not None and opened[1] == "chain":
                    chain = f"{table}/{opened[2]}"
                elif opened is not None or depth:
                    # the elements of a set are on the following lines
                    depth += clean.count("{") - clean.count("}")
                elif words == ["}"]:
                    table, chain = (table, "") if chain else ("", "")
                elif chain and words[:1] == ["type"]:
                    self._hook(chain, words)
                elif chain and words[:1] != ["policy"]:
                    self._rule("add", family, chain, words, here)
                elif not table:
                    self.command(words, here)
            except Refused as why:
                refused.append((here, why))
        return refused

    def _remove(self, lead: str) -> None:
        for name in self._firewall.chains:
            if name == f"nft:{lead}" or (lead[-1:] in ("", "/") and name.startswith(f"nft:{lead}")):
                self._firewall.chains[name].clear()

    def _hook(self, chain: str, words: list[str]) -> None:
        text = " ".join(words)
        self._firewall.chains.setdefault(f"nft:{chain}", [])
        if (
            found := re.search(r"\bhook (\w+) priority (\w+|-?\d+)(?: ([+-]) (\d+))?", text)
        ) is None:
            return
        hook, base, sign, more = found.groups()
        if hook in HOOKS:
            order = PRIORITIES[base] if base in PRIORITIES else int(base) if _is_int(base) else 0
            order += int(f"{sign}{more}") if sign else 0
            self._firewall.hooks[f"nft:{chain}"] = (hook, order)

    def _rule(self, verb: str, family: str, chain: str, words: list[str], place: Place) -> None:
        step = _step(words, chain.partition("/")[0], place)
        if step is None:
            return
        if family == "ip6":
            step = Step(place, is_idle=True)
        steps = self._firewall.chains.setdefault(f"nft:{chain}", [])
        steps.insert(len(steps) if verb == "add" else 0, step)


def _is_int(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yields each non-empty line, as written and with comments removed and definitions replaced."""
    defined: dict[str, str] = {}
    for line in text.splitlines():
        clean = re.sub(r"(^|\s)#.*", "", line).strip().rstrip(";").strip()
        for name, value in defined.items():
            clean = re.sub(rf"\${name}\b", lambda _: value, clean)  # noqa: B023 - called at once
        if made := re.fullmatch(r"define\s+(\w+)\s*=\s*(.*)", clean):
            defined[made[1]] = made[2]
        elif clean:
            yield line, clean


def _step(words: list[str], table: str, place: Place) -> Step | None:
    """Returns a rule; None if it neither changes packets nor has a verdict."""
    given = Words(words)
    tests: _Tests = []
    device, changes = None, []
    verdict, target = "continue", ""
    while (word := given.next()) is not None:
        match word:
            case "counter":
                while given.peek() in ("packets", "bytes"):
                    given.next()
                    given.next()
            case "comment":
                given.next()
            case "oif" | "oifname" | "iif" | "iifname":
                name = given.value(word).strip('"')
                if name in ("{", "!", "!="):
                    raise Refused(f"`{word} {name}` is not supported", word)
                device = name if word.startswith("o") else device
            case "accept" | "return":
                verdict = word
            case "jump" | "goto":
                verdict, target = word, f"nft:{table}/{given.value(word)}"
            case "ip6":
                # packets here are IPv4
                return Step(place, is_idle=True)
            case _:
                found = _expression(word, given)
                if isinstance(found, Change):
                    changes.append(found)
                else:
                    tests += found
    if not changes and verdict == "continue":
        return None
    return Step(place, tuple(tests), device, tuple(changes), verdict, target)


def _expression(word: str, given: Words) -> _Tests | Change:
    """Returns the tests of an expression or the change of a statement; may raise `Refused`."""
    key = given.value(word)
    match (word, key):
        case ("meta", "l4proto") | ("ip", "protocol"):
            return [tuple(test for one in _values(given) for test in protocol(one)[0])]
        case ("ip", "saddr" | "daddr"):
            offset = 12 if key == "saddr" else 16
            return [tuple((address(one, offset),) for one in _values(given))]
        case ("tcp" | "udp" | "th", "sport" | "dport"):
            own = protocol(word) if word != "th" else []
            return [*own, tuple((ports(key, one, "-"),) for one in _values(given))]
        case ("ip", "dscp"):
            if given.peek() == "set":
                given.next()
                return Change("dscp", code_point(given.value(key)))
            return [tuple((dscp(code_point(one)),) for one in _values(given))]
        case ("meta", "mark"):
            return _mark(given)
        case ("meta", "priority") if given.peek() == "set":
            given.next()
            text = given.value(key).strip('"')
            if (name := name_of(text)) is None:
                raise Refused(f"`{text}` is not the name of a class, such as 1:10", text)
            return Change("class", name)
    raise Refused(f"`{word} {key}` is not supported", word)


def _mark(given: Words) -> _Tests | Change:
    """Returns the change of `meta mark set`, otherwise a test.

    Changes are `set N`, `set mark or N` and `set mark and N`. Tests are `meta mark N` and
    `meta mark and M == N`.
    """
    if given.peek() == "set":
        given.next()
        if given.peek() not in ("mark", "meta"):
            return Change("mark", _last(given))
        words = list(iter(given.next, None))
        match [word for word in words if word not in ("meta", "mark")]:
            case ["or" | "|", value]:
                return Change("mark", read_number(value), read_number(value))
            case ["and" | "&", value]:
                return Change("mark", 0, ~read_number(value) & WORD)
        raise Refused(f"`mark set {' '.join(words)}` is not supported", "set")
    if given.peek() in ("and", "&"):
        given.next()
        mask = read_number(given.value("mark"))
        if given.value("mark") != "==":
            raise Refused("a comparison of a mark other than `==` is not supported", "mark")
        return [((Match("mark", read_number(given.value("mark")), mask),),)]
    return [tuple((Match("mark", read_number(one), WORD),) for one in _values(given))]


def _last(given: Words) -> int:
    """Returns a number; raises `Refused` if an operator follows the number."""
    text = given.value("set")
    if given.peek() in ("or", "and", "xor", "|", "&", "^", "map", "vmap"):
        raise Refused(f"`set {text} {given.peek()}` is not supported", text)
    return read_number(text)


def _values(given: Words) -> list[str]:
    """Returns the values of a test: a single value, or the values of a set in braces."""
    first = given.value("a test")
    if first == "==":
        first = given.value("a test")
    if first in _OPERATORS or first.startswith(("@", "$")):
        raise Refused(f"a test by `{first}` is not supported", first)
    if first != "{":
        return [first]
    found = []
    while (word := given.value("a set")) != "}":
        if word != ",":
            found.append(word)
    return found
