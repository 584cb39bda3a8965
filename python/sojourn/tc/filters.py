"""Filters of `tc`: their tests as bits of the IP header, and as conditions of a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from itertools import product

from sojourn.tc.model import INGRESS, WORD, Filter, Match, Name, Refused, Words, name_of

PORT = 0xFFFF
ALTERNATIVES = 64
"""Largest number of a scenario's filters that replace one filter of `tc`."""
IPV4 = ("ip", "ipv4", "all", "0x800", "0x0800", "800")
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "gre": 47, "esp": 50, "sctp": 132}
NOT_READ = {
    "bpf": "a BPF program decides",
    "cgroup": "packets here belong to no cgroup",
    "route": "routes here have no realms",
    "rsvp": "there are no RSVP sessions here",
    "tcindex": "packets have no traffic index here",
    "ematch": "it is not a filter by itself",
}
FLOW_KEYS = ("keys", "key", "divisor", "baseclass", "perturb", "addend", "rshift")
"""Words of the filter `flow` that take a value."""
WHOLE = {"src", "dst", "proto-src", "proto-dst"}
"""Keys of the filter `flow` that must all be given to distinguish every pair of flows."""
PASS = {"pass", "ok", "continue", "reclassify", "pipe"}

Condition = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Meaning:
    """Conditions that replace a filter of `tc`: all conditions of one alternative must hold."""

    alternatives: list[list[Condition]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Addresses that no host of the scenario has, so that the filter matches no packet."""


def read_command(new: Filter, words: list[str]) -> None:
    """Reads the words of a filter after its kind into `new`; raises `Refused` if unsupported."""
    if why := NOT_READ.get(new.kind):
        raise Refused(f"`{new.kind}` filters are not supported: {why}", new.kind)
    reader = {"u32": _u32, "flower": _flower, "basic": _basic, "flow": _flow}
    if new.kind not in (*reader, "fw", "matchall"):
        known = ", ".join([*reader, "fw", "matchall"])
        raise Refused(f"`{new.kind}` filters are not supported; supported: {known}", new.kind)
    given = Words(words)
    while (word := given.next()) is not None:
        if word in ("flowid", "classid"):
            new.target = given.value(word)
        elif word in ("action", "actions"):
            _action(new, given)
        elif word == "police":
            police(new)
        elif word in ("skip_hw", "skip_sw", "no_percpu", "verbose"):
            continue
        elif new.kind in reader:
            reader[new.kind](new, word, given)
        else:
            raise Refused(f"unknown word `{word}` for `{new.kind}`", word)
    if new.kind == "fw":
        _mark(new, new.handle)


def _mark(new: Filter, handle: str) -> None:
    value, _, mask = handle.partition("/")
    if not handle:
        raise Refused("`fw` without `handle` uses the mark as the class, which is not modelled")
    new.matches.append(Match("mark", read_number(value), read_number(mask) if mask else WORD))


# Actions


def _action(new: Filter, given: Words) -> None:
    kind = given.value("action")
    if kind == "police":
        police(new)
    elif kind == "mirred":
        _mirred(new, given)
    elif kind == "skbedit":
        while given.peek() in ("priority", "mark", "queue_mapping", "ptype"):
            key, value = given.value("skbedit"), given.value("skbedit")
            if key == "priority" and name_of(value):
                new.target = value
    elif kind in ("gact", *PASS):
        if kind == "gact":
            given.next()
    elif kind in ("connmark", "ctinfo"):
        while given.peek() not in (None, "action", "flowid", "classid", "mirred"):
            given.next()
        if given.peek() == "mirred":
            _action(new, given)
    elif kind in ("drop", "shot"):
        raise Refused("packets that a filter drops are not modelled", kind)
    else:
        raise Refused(f"the action `{kind}` is not modelled", kind)


def _mirred(new: Filter, given: Words) -> None:
    words: list[str] = []
    while (word := given.next()) is not None and word != "dev":
        words.append(word)
    device = given.value("dev")
    if "redirect" not in words:
        raise Refused("a copy of a packet (mirror) is not modelled", "mirror")
    if new.parent.major != INGRESS:
        raise Refused("redirection of outgoing packets to another device is not modelled", device)
    new.redirect = device


def police(new: Filter) -> None:
    """Raises `Refused`, because a policer is not modelled."""
    where = "incoming packets" if new.parent.major == INGRESS else "packets"
    raise Refused(f"`police`: a limit that drops {where} without a queue is not modelled", "police")


# u32


def _u32(new: Filter, word: str, given: Words) -> None:
    if word == "match":
        new.matches.append(_selector(given))
    elif word in ("ht", "link", "hashkey", "divisor", "sample", "offset"):
        if word == "ht" and given.peek() in ("800:", "800::"):
            given.next()
            return
        raise Refused("hash tables of `u32` are not supported: write the filters one by one", word)
    elif word in ("order", "handle"):
        given.value(word)
    else:
        raise Refused(f"unknown word `{word}` for `u32`", word)


def _selector(given: Words) -> Match:
    kind = given.value("match")
    if kind in ("u8", "u16", "u32"):
        width = int(kind[1:])
        value, mask = read_number(given.value(kind)), read_number(given.value(kind), 16)
        place = given.value("at") if given.peek() == "at" and given.next() else "0"
        return _at(place, width, value, mask)
    if kind == "mark":
        return Match("mark", read_number(given.value(kind)), read_number(given.value(kind), 16))
    if kind in ("ip6", "ether"):
        given.next()
        given.next()
        if (rest := given.peek()) is not None and re.fullmatch(r"(0x)?[0-9a-fA-F]+", rest):
            given.next()
        return Match(kind, "")
    if kind in ("tcp", "udp"):
        end = given.value(kind)
        if end not in ("src", "dst"):
            raise Refused(f"`match {kind} {end}` is not modelled", end)
        return _port("sport" if end == "src" else "dport", given)
    if kind != "ip":
        raise Refused(f"`match {kind}` is not supported", kind)
    key = given.value("ip")
    if key in ("src", "dst"):
        address = read_network(given.value(key))
        offset = 12 if key == "src" else 16
        return Match("ip", int(address.network_address), int(address.netmask), offset)
    if key in ("sport", "dport"):
        return _port(key, given)
    if key in ("tos", "dsfield", "precedence"):
        return _byte(given, key, 0, 16)
    if key == "protocol":
        return _byte(given, key, 8, 16)
    raise Refused(f"`match ip {key}` is not modelled", key)


def _byte(given: Words, key: str, offset: int, shift: int) -> Match:
    text = given.value(key)
    value = PROTOCOLS.get(text) if key == "protocol" else None
    value = read_number(text) if value is None else value
    mask = read_number(given.value(key), 16)
    return Match("ip", value << shift, mask << shift, offset)


def _port(key: str, given: Words) -> Match:
    value, mask = read_number(given.value(key)), read_number(given.value(key), 16)
    shift = 16 if key == "sport" else 0
    return Match("next", value << shift, mask << shift, 0)


def _at(place: str, width: int, value: int, mask: int) -> Match:
    """Returns a comparison of bytes as a comparison of a 32-bit word of the header."""
    text, where = (place[8:] or "0", "next") if place.startswith("nexthdr+") else (place, "ip")
    offset = read_number(text)
    shift = 32 - width - 8 * (offset % 4)
    if offset < 0 or shift < 0:
        raise Refused(
            "a comparison of bytes in two 32-bit words of the header is not supported", place
        )
    return header_word(where, value << shift, mask << shift, offset - offset % 4)


def header_word(where: str, value: int, mask: int, offset: int) -> Match:
    """Returns a comparison of a 32-bit word of the IP header, or of the header that follows it."""
    # IP headers here have no options and therefore 20 bytes.
    if where == "ip" and offset >= 20:
        where, offset = "next", offset - 20
    return Match(where, value, mask, offset)


def read_shown(new: Filter, text: str) -> None:
    """Reads a test or an action from a line of `tc filter show` into the filter `new`."""
    found = re.findall(r"match ([0-9a-f]+)/([0-9a-f]+) at (nexthdr\+)?(-?\d+)", text)
    for value, mask, behind, offset in found:
        where = "next" if behind else "ip"
        new.matches.append(header_word(where, int(value, 16), int(mask, 16), int(offset)))
    for value, mask in re.findall(r"\bmark 0x([0-9a-f]+) 0x([0-9a-f]+)", text):
        new.matches.append(Match("mark", int(value, 16), int(mask, 16)))
    for pretty in re.finditer(
        r"match (IP |IP6 )?(protocol|dsfield|tos|[sd]port|src|dst) (\S+)", text
    ):
        if pretty[1] == "IP6 ":
            new.matches.append(Match("ip6", ""))
            continue
        mask = {"protocol": "ff", "dsfield": "ff", "tos": "ff"}.get(pretty[2], "ffff")
        words = ["ip", pretty[2], pretty[3]] + ([mask] if pretty[2] not in ("src", "dst") else [])
        new.matches.append(_selector(Words(words)))
    if match := re.search(r"mirred \(Egress (Redirect|Mirror) to device (\S+?)\)", text):
        if match[1] == "Mirror":
            raise Refused("a copy of a packet (mirror) is not modelled")
        new.redirect = match[2]
    if re.match(r"\s*(action order \d+: +)?police\b", text):
        police(new)


def _flower(new: Filter, key: str, given: Words) -> None:
    value = given.value(key)
    flower_key(new, key, value)


def flower_key(new: Filter, key: str, value: str) -> None:
    """Adds a test of the filter `flower` to `new`; raises `Refused` for an unsupported test."""
    if key == "eth_type":
        new.protocol = value
    elif key == "ip_proto":
        new.matches.append(_proto(value))
    elif key in ("src_ip", "dst_ip"):
        if ":" in value:
            new.matches.append(Match("ip6", ""))
            return
        address = read_network(value)
        offset = 12 if key == "src_ip" else 16
        new.matches.append(Match("ip", int(address.network_address), int(address.netmask), offset))
    elif key in ("src_port", "dst_port"):
        new.matches.append(_flower_port(key, value))
    elif key == "ip_tos":
        tos, _, mask = value.partition("/")
        bits = read_number(mask, 16) if mask else 0xFF
        new.matches.append(Match("ip", read_number(tos) << 16, bits << 16, 0))
    elif key in ("chain", "hw_tc", "handle"):
        return
    else:
        raise Refused(f"`flower` by `{key}` is not modelled", key)


def _flower_port(key: str, value: str) -> Match:
    """Returns the test of a port in `flower`: a port, a port with a mask, or a range."""
    first, dash, last = value.partition("-")
    if dash:
        low, high = max(read_number(first), 1), read_number(last)
        if not low <= high <= PORT:
            raise Refused(f"`{value}` is not a range of ports", value)
        return Match("sport" if key == "src_port" else "dport", port_range(low, high))
    text, _, mask = value.partition("/")
    shift = 16 if key == "src_port" else 0
    number, bits = read_number(text), read_number(mask) if mask else PORT
    if max(number, bits) > PORT:
        raise Refused(f"`{value}` is not a port", value)
    return Match("next", number << shift, bits << shift, 0)


def _proto(value: str) -> Match:
    protocol = PROTOCOLS.get(value)
    protocol = read_number(value) if protocol is None else protocol
    return Match("ip", protocol << 16, 0xFF << 16, 8)


_CMP = re.compile(
    r"cmp\(\s*(u8|u16|u32)\s+at\s+(\d+)\s+(?:layer\s+(\w+)\s+)?(?:mask\s+(\w+)\s+)?eq\s+(\w+)\s*\)"
)
_PORTS = re.compile(r"cmp\(\s*u16\s+at\s+([02])\s+layer\s+(?:2|transport)\s+(gt|lt)\s+(\w+)\s*\)")
_META = re.compile(r"meta\(\s*(?:nf_mark|fwmark)(?:\s+mask\s+(\w+))?\s+eq\s+(\w+)\s*\)")


def _basic(new: Filter, word: str, given: Words) -> None:
    if word != "match":
        raise Refused(f"unknown word `{word}` for `basic`", word)
    _expression(new, given)


def _expression(new: Filter, given: Words) -> None:
    text = ""
    while given.peek() not in (None, "flowid", "classid", "action", "police", *FLOW_KEYS):
        text += f" {given.next()}"
    basic_match(new, text)


def basic_match(new: Filter, text: str) -> None:
    """Adds the tests of an expression of `basic` or `flow`; raises `Refused` if unsupported."""
    whole = text.strip()
    if whole.startswith("(") and whole.endswith(")"):
        whole = whole[1:-1]
    for part in map(str.strip, re.split(r"\band\b", whole)):
        if match := _CMP.fullmatch(part):
            width, offset, layer, mask, value = match.groups()
            bits = int(width[1:])
            place = offset if layer in (None, "1", "network") else f"nexthdr+{offset}"
            if layer in ("0", "link"):
                raise Refused("a test of the link header is not modelled", part)
            full = (1 << bits) - 1
            new.matches.append(
                _at(place, bits, read_number(value), read_number(mask) if mask else full)
            )
        elif match := _PORTS.fullmatch(part):
            number = read_number(match[3])
            low, high = (number + 1, PORT) if match[2] == "gt" else (1, number - 1)
            if not low <= high <= PORT:
                raise Refused(f"`{part}` matches no port", part)
            new.matches.append(
                Match("sport" if match[1] == "0" else "dport", port_range(low, high))
            )
        elif match := _META.fullmatch(part):
            mask = match[1]
            new.matches.append(
                Match("mark", read_number(match[2]), read_number(mask) if mask else WORD)
            )
        else:
            raise Refused(f"the expression `{part[:40]}` is not supported", part)


def _flow(new: Filter, word: str, given: Words) -> None:
    if word in ("hash", "map"):
        new.flow["mode"] = word
    elif word in FLOW_KEYS:
        new.flow["keys" if word == "key" else word] = given.value(word)
    elif word in ("and", "or", "xor"):
        given.value(word)
    elif word == "match":
        _expression(new, given)
    else:
        raise Refused(f"unknown word `{word}` for `flow`", word)


def meaning(one: Filter, hosts: Mapping[IPv4Address, int]) -> Meaning:
    """Returns the meaning of a filter; `hosts` maps addresses to node numbers.

    Raises `Refused` if a test has no equivalent.
    """
    if one.protocol not in IPV4:
        return Meaning(notes=[f"packets here are IPv4: a filter for `{one.protocol}` matches none"])
    choices: list[list[list[Condition]]] = []
    notes: list[str] = []
    strangers: list[str] = []
    if one.kind == "flow" and not set(one.flow.get("keys", "").split(",")) >= WHOLE:
        notes.append("flows are distributed by a hash of all addresses and ports, not by `keys`")
    for match in _merged(one.matches):
        found = _choices(match, hosts, notes, strangers)
        if found is None:
            return Meaning(notes=notes, strangers=strangers)
        if found:
            choices.append(found)
    total = 1
    for found in choices:
        total *= len(found)
    if total > ALTERNATIVES:
        raise Refused(
            f"the filter would become {total} filters of the scenario, but at most "
            f"{ALTERNATIVES} are allowed"
        )
    alternatives = [[c for part in parts for c in part] for parts in product(*choices)]
    return Meaning(alternatives, notes)


def _merged(matches: list[Match]) -> Iterator[Match]:
    """Yields the tests in their order; tests of one header word or of one port are merged."""
    found: dict[tuple[str, int], Match] = {}
    for number, match in enumerate(matches):
        is_range = match.field in ("sport", "dport")
        is_word = match.field in ("ip", "next") and match.mask is not None
        key = (match.field, match.offset if is_range or is_word else number)
        old = found.get(key)
        if old is None:
            found[key] = match
        elif is_range:
            found[key] = Match(match.field, _overlap(old, match))
        else:
            value = int(old.value) | int(match.value)
            found[key] = Match(
                match.field, value, (old.mask or 0) | (match.mask or 0), match.offset
            )
    yield from found.values()


def _overlap(one: Match, other: Match) -> str:
    """Returns the range of ports that both tests allow; raises `Refused` if it is empty."""
    ends = [[int(end) for end in str(match.value).split("-")] for match in (one, other)]
    low, high = max(end[0] for end in ends), min(end[-1] for end in ends)
    if low > high:
        raise Refused(f"no port matches both {one.value} and {other.value}")
    return port_range(low, high)


def _choices(
    match: Match, hosts: Mapping[IPv4Address, int], notes: list[str], strangers: list[str]
) -> list[list[Condition]] | None:
    """Returns the alternatives of one test: empty if it always holds, None if it never holds."""
    mask = match.mask if match.mask is not None else WORD
    if match.field == "ip6":
        notes.append("packets here are IPv4: a test of IPv6 matches none")
        return None
    if match.field == "ether":
        raise Refused("a test of link addresses is not modelled")
    if match.field in ("sport", "dport"):
        return [[(match.field, str(match.value))]]
    value = int(match.value) & mask
    if mask == 0:
        return []
    if match.field == "mark":
        text = f"{value:#x}" if mask == WORD else f"{value:#x}/{mask:#x}"
        return [[("mark", text)]]
    if match.field == "ip" and match.offset in (12, 16):
        return _address("src" if match.offset == 12 else "dst", value, mask, hosts, strangers)
    if match.field == "ip" and match.offset == 0:
        return _first_word(value, mask, notes)
    if match.field == "ip" and match.offset == 8 and mask == 0xFF_0000:
        return [[("protocol", str(value >> 16))]]
    if match.field == "next" and match.offset == 0:
        return _ports(value, mask, notes)
    raise Refused("a test of this part of the header is not modelled")


def _first_word(value: int, mask: int, notes: list[str]) -> list[list[Condition]] | None:
    if mask & 0xFFFF:
        raise Refused("a test of the packet's length is not modelled")
    # IP version 4 and a header of five 32-bit words
    if (0x45 << 24) & mask != value & 0xFF00_0000:
        notes.append("packets here have no IP options: the test of the header length matches none")
        return None
    tos, bits = value >> 16 & 0xFF, mask >> 16 & 0xFF
    if bits & 3:
        notes.append("the ECN field is ignored in the comparison of the DS field")
    points = [dscp for dscp in range(64) if (dscp << 2 ^ tos) & bits & 0xFC == 0]
    return [] if len(points) == 64 else [[("dscp", str(dscp))] for dscp in points]


def _ports(value: int, mask: int, notes: list[str]) -> list[list[Condition]] | None:
    found: list[Condition] = []
    for key, shift in (("sport", 16), ("dport", 0)):
        first, bits = value >> shift & PORT, mask >> shift & PORT
        # Bits that are not compared allow a range only if they are the lowest bits.
        rest = bits ^ PORT
        if rest & (rest + 1):
            raise Refused(
                "a mask that does not give a range of ports is not supported: write "
                "the ports one by one"
            )
        if first + rest == 0:
            notes.append("no packet here has port 0: the filter matches none")
            return None
        if bits:
            found.append((key, port_range(max(first, 1), first + rest)))
    return [found]


def port_range(first: int, last: int) -> str:
    """Returns a range of ports as text; a single port if both ends are equal."""
    return str(first) if first == last else f"{first}-{last}"


def _address(
    key: str, value: int, mask: int, hosts: Mapping[IPv4Address, int], strangers: list[str]
) -> list[list[Condition]] | None:
    fit = [host for address, host in hosts.items() if int(address) & mask == value]
    if not fit:
        bits = mask.bit_count()
        strangers.append(str(IPv4Address(value)) + ("" if bits == 32 else f"/{bits}"))
        return None
    return [] if len(fit) == len(hosts) else [[(key, str(host))] for host in sorted(set(fit))]


def read_number(text: str, base: int = 0) -> int:
    """Returns a number of at most 32 bits as `tc` reads it; raises `Refused` for other texts.

    `base` 0 means hexadecimal after `0x`, otherwise decimal; masks have base 16.
    """
    base = base or (16 if text.lower().startswith("0x") else 10)
    digits = text.lower().removeprefix("0x") if base == 16 else text
    if not re.fullmatch(r"[0-9a-f]{1,20}" if base == 16 else r"[0-9]{1,20}", digits):
        raise Refused(f"`{text}` is not a number", text)
    value = int(digits, base)
    if value > WORD:
        raise Refused(f"`{text}` has more than 32 bits", text)
    return value


def read_network(text: str) -> IPv4Network:
    """Returns an IPv4 network as `tc` reads it; an address is a network with one address.

    Raises `Refused`.
    """
    if short := re.fullmatch(r"(\d+(?:\.\d+){0,2})((?:/.*)?)", text):
        # `tc` reads missing parts of an address as 0.
        text = short[1] + ".0" * (3 - short[1].count(".")) + short[2]
    try:
        return IPv4Network("0.0.0.0/0" if text in ("any", "all", "default") else text, strict=False)
    except ValueError:
        raise Refused(f"`{text}` is not an IPv4 address", text) from None


def spread(found: Filter, major: int) -> tuple[Name, int]:
    """Returns the first class over which a filter distributes flows, and the number of classes.

    `major` is the number of the filter's discipline. Raises `Refused` for options that are not
    supported.
    """
    if found.flow.get("mode") == "map":
        message = "`flow map` selects the class by a field of the packet, which is not modelled"
        raise Refused(message, "map")
    base = found.flow.get("baseclass") or found.target or f"{major:x}:1"
    name = name_of(base if ":" in base else f":{base}")
    if name is None:
        raise Refused(f"`{base}` is not the name of a class, such as 1:10", base)
    divisor = found.flow.get("divisor", "")
    if not divisor.isdecimal() or not 0 < int(divisor) <= PORT:
        raise Refused(
            "`flow` needs a `divisor`: the number of classes over which it distributes flows"
        )
    return Name(major, name.minor or 1), int(divisor)


def target_of(found: Filter) -> Name:
    """Returns the class to which a filter leads; raises `Refused` if it names none."""
    text = found.target or ""
    name = name_of(text)
    if name is None:
        raise Refused(f"`{text}` is not the name of a class, such as 1:10", text)
    return name
