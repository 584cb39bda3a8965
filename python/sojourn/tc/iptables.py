"""Rules in commands of `iptables` and in the input of `iptables-restore`."""

from __future__ import annotations

import shlex

from sojourn.tc.filters import PORT, PROTOCOLS, port_range, read_network, read_number
from sojourn.tc.model import WORD, Change, Firewall, Match, Place, Refused, Step, Words, name_of

PROGRAMS = ("iptables", "ip6tables", "ipt", "iptables-legacy", "iptables-nft")
RESTORES = ("iptables-restore", "ip6tables-restore")
CODE_POINTS = {
    "be": 0, "cs0": 0, "le": 1, "ef": 46, "va": 44,
    **{f"cs{n}": 8 * n for n in range(1, 8)},
    **{f"af{high}{low}": 8 * high + 2 * low for high in range(1, 5) for low in range(1, 4)},
}  # fmt: skip
TOS = {
    "minimize-delay": 0x10, "maximize-throughput": 0x08, "maximize-reliability": 0x04,
    "minimize-cost": 0x02, "normal-service": 0,
}  # fmt: skip
MODULES = {"tcp", "udp", "multiport", "dscp", "tos", "mark", "comment"}
"""Modules of `iptables` whose tests are supported."""
BUILT_IN = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
TABLES = {"raw": -300, "mangle": -150, "nat": 0, "filter": 1}
"""Priority of each table at a hook; the table with the lowest priority comes first."""
_PORTS = {
    "--sport": "sport", "--source-port": "sport", "--dport": "dport",
    "--destination-port": "dport", "--sports": "sport", "--source-ports": "sport",
    "--dports": "dport", "--destination-ports": "dport",
}  # fmt: skip


class Reader:
    """Applies commands of `iptables` to a firewall."""

    def __init__(self, firewall: Firewall) -> None:
        self._firewall = firewall

    def command(self, words: list[str], place: Place) -> None:
        """Applies a command, given by its words after the name; raises `Refused` if unsupported."""
        self._command(words, place, "filter")

    def restore(self, text: str, place: Place) -> list[tuple[Place, Refused]]:
        """Applies the input of `iptables-restore`; returns the lines that are not supported."""
        table, refused = "filter", []
        for line in text.splitlines():
            here = Place(place.file, place.line, line)
            if line.startswith("*"):
                table = line[1:].strip()
            elif line.startswith("-"):
                try:
                    self._command(shlex.split(line), here, table)
                except (Refused, ValueError) as why:
                    refused.append((here, why if isinstance(why, Refused) else Refused(str(why))))
        return refused

    def _command(self, words: list[str], place: Place, table: str) -> None:
        given, rest, act, chain, at = Words(words), [], "", "", None
        while (word := given.next()) is not None:
            if word in ("-t", "--table"):
                table = given.value(word)
            elif word in _ACTS and not act:
                act = _ACTS[word]
                if (following := given.peek()) is not None and not following.startswith("-"):
                    chain = given.value(word)
                if act == "insert" and (given.peek() or "").isdecimal():
                    at = int(given.value(word))
            elif word not in ("-w", "--wait"):
                rest.append(word)
        name = f"{table}/{chain}"
        chains = self._firewall.chains
        match act:
            case "append" | "insert":
                step = _step(rest, table, place)
                where = chains.setdefault(name, [])
                self._enter(table, chain)
                where.insert(len(where) if act == "append" else (at or 1) - 1, step)
            case "delete":
                step = _step(rest, table, place)
                steps = chains.get(name, [])
                same = (n for n, one in enumerate(steps) if _same(one, step))
                if (found := next(same, None)) is not None:
                    del steps[found]
            case "flush":
                for known in [known for known in chains if known == name or not chain]:
                    if known.partition("/")[0] == table:
                        chains[known].clear()

    def _enter(self, table: str, chain: str) -> None:
        if chain in BUILT_IN:
            name = f"{table}/{chain}"
            self._firewall.hooks.setdefault(name, (chain.lower(), TABLES.get(table, 0)))


_ACTS = {
    "-A": "append", "--append": "append", "-I": "insert", "--insert": "insert",
    "-D": "delete", "--delete": "delete", "-F": "flush", "--flush": "flush",
    **{f"-{letter}": "other" for letter in "NXPZLSCER"},
    "--new-chain": "other", "--delete-chain": "other", "--policy": "other", "--list": "other",
    "--check": "other", "--zero": "other",
}  # fmt: skip


def _same(one: Step, other: Step) -> bool:
    return (one.tests, one.device, one.changes, one.verdict, one.target) == (
        other.tests, other.device, other.changes, other.verdict, other.target,
    )  # fmt: skip


def _step(words: list[str], table: str, place: Place) -> Step:
    given = Words(words)
    tests: list[tuple[tuple[Match, ...], ...]] = []
    changes: tuple[Change, ...] = ()
    device, verdict, target = None, "continue", ""
    while (word := given.next()) is not None:
        match word:
            case "!":
                raise Refused("a negated test (`!`) is not supported", "!")
            case "-o" | "--out-interface":
                device = given.value(word)
            case "-j" | "--jump" | "-g" | "--goto":
                goal = given.value(word)
                changes, verdict = _target(goal, given)
                if verdict == "chain":
                    verdict = "goto" if word in ("-g", "--goto") else "jump"
                    target = f"{table}/{goal}"
            case _:
                tests += _test(word, given)
    return Step(place, tuple(tests), device, changes, verdict, target)


def _test(word: str, given: Words) -> list[tuple[tuple[Match, ...], ...]]:
    """Returns the tests of an option; each test is a list of alternatives."""
    match word:
        case "-m" | "--match":
            module = given.value(word)
            if module not in MODULES:
                raise Refused(f"`-m {module}` is not supported", module)
            return []
        case "-i" | "--in-interface":
            # The device by which packets came in is not modelled; the test is assumed to hold.
            given.value(word)
            return []
        case "--comment":
            given.value(word)
            return []
        case "-p" | "--protocol":
            return protocol(given.value(word))
        case "-s" | "--source" | "-d" | "--destination":
            offset = 12 if word in ("-s", "--source") else 16
            return [tuple((address(text, offset),) for text in given.value(word).split(","))]
        case "--dscp" | "--dscp-class" | "--tos":
            value = given.value(word)
            return [((dscp(_tos(value) >> 2 if word == "--tos" else code_point(value)),),)]
        case "--mark":
            value, _, mask = given.value(word).partition("/")
            return [((Match("mark", read_number(value), read_number(mask) if mask else WORD),),)]
        case "--ports":
            listed = given.value(word).split(",")
            ends = ("sport", "dport")
            return [tuple((ports(end, one, ":"),) for one in listed for end in ends)]
        case _ if word in _PORTS:
            listed = given.value(word).split(",")
            return [tuple((ports(_PORTS[word], one, ":"),) for one in listed)]
    raise Refused(f"`{word}` is not supported", word)


def _target(goal: str, given: Words) -> tuple[tuple[Change, ...], str]:
    """Returns the changes that a target makes, and its verdict."""
    match goal:
        case "ACCEPT" | "RETURN":
            return (), goal.lower()
        case "MARK":
            key = given.value(goal)
            text, _, bits = given.value(key).partition("/")
            value, mask = read_number(text), read_number(bits) if bits else WORD
            match key:
                case "--set-mark" | "--set-xmark" if key == "--set-mark" or not value & ~mask:
                    return (Change("mark", value, value | mask),), "continue"
                case "--or-mark":
                    return (Change("mark", value, value),), "continue"
                case "--and-mark":
                    return (Change("mark", 0, ~value & WORD),), "continue"
            raise Refused(f"`{key}` is not supported", key)
        case "DSCP":
            key = given.value(goal)
            return (Change("dscp", code_point(given.value(key))),), "continue"
        case "TOS":
            key, text = given.value(goal), given.value(goal).partition("/")[0]
            if key != "--set-tos":
                raise Refused(f"`{key}` is not supported", key)
            return (Change("dscp", _tos(text) >> 2),), "continue"
        case "CLASSIFY":
            given.value(goal)
            text = given.value(goal)
            if (name := name_of(text)) is None:
                raise Refused(f"`{text}` is not the name of a class, such as 1:10", text)
            return (Change("class", name),), "continue"
    if goal.isupper() and goal in _OTHERS:
        raise Refused(f"the target `{goal}` is not supported", goal)
    return (), "chain"


_OTHERS = {
    "CONNMARK", "CONNSECMARK", "CT", "DNAT", "DROP", "IDLETIMER", "IMQ", "LOG", "MASQUERADE",
    "NETMAP", "NFLOG", "NFQUEUE", "NOTRACK", "QUEUE", "RATEEST", "REDIRECT", "REJECT", "SET",
    "SNAT", "TCPMSS", "TCPOPTSTRIP", "TEE", "TPROXY", "TRACE", "TTL", "ULOG",
}  # fmt: skip
"""Targets that are not names of chains, and are not supported."""


def protocol(text: str) -> list[tuple[tuple[Match, ...], ...]]:
    """Returns the test of the transport protocol; empty for all protocols."""
    if text in ("all", "0"):
        return []
    value = PROTOCOLS.get(text)
    value = read_number(text) if value is None else value
    return [((Match("ip", value << 16, 0xFF << 16, 8),),)]


def address(text: str, offset: int) -> Match:
    """Returns the test of an address or network at a byte offset in the IP header."""
    found = read_network(text)
    return Match("ip", int(found.network_address), int(found.netmask), offset)


def ports(end: str, text: str, dash: str) -> Match:
    """Returns the test of a port or of a range with `dash`; raises `Refused` for other texts."""
    first, between, last = text.partition(dash)
    low = read_number(first) if first else 0
    high = (read_number(last) if last else PORT) if between else low
    if not max(low, 1) <= high <= PORT:
        raise Refused(f"`{text}` is neither a port nor a range of ports", text)
    return Match(end, port_range(max(low, 1), high))


def dscp(value: int) -> Match:
    """Returns the test of a differentiated services code point."""
    return Match("ip", value << 18, 0xFC << 16, 0)


def code_point(text: str) -> int:
    """Returns a code point (DSCP) from its name or number; raises `Refused` for other texts."""
    found = CODE_POINTS.get(text.lower())
    found = read_number(text) if found is None else found
    if found > 63:
        raise Refused(f"`{text}` is not a code point", text)
    return found


def _tos(text: str) -> int:
    found = TOS.get(text.lower())
    return read_number(text) if found is None else found
