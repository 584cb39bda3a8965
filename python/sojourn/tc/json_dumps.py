"""Reads the output of `tc -j`: lists of disciplines, classes and filters, one after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from sojourn import _core
from sojourn.tc import filters
from sojourn.tc.dumps import Dumps, class_words
from sojourn.tc.model import ROOT, Class, Filter, Match, Name, Place, Refused, handle_of, name_of

Pairs = list[tuple[str, Any]]
"""Keys and values of a JSON object: `tc` repeats the key `match` for each test of `u32`."""

_RENAMED = {
    "tbf": {"lat": "latency", "minburst": ""},
    "dualpi2": {
        "memory-limit": "memlimit", "step-thresh-us": "step_thresh", "coupling": "coupling_factor",
        "min-qlen-step": "min_qlen_step", "c-protection": "classic_protection",
    },
    "htb": {"direct_packets_stat": "", "ver": ""},
    "prio": {"multiqueue": ""},
    "sfq": {"ewma": "", "adaptive": "", "nodrop": ""},
    "red": {"ewma": "", "Scell_log": "", "Plog": ""},
    "choke": {"adaptive": "", "nodrop": "", "ewma": "", "Scell_log": ""},
    "fq": {"bands": ""},
}  # fmt: skip
"""By discipline: the word for a key of the JSON output; a key with an empty word is ignored."""
_MICROSECONDS = {"latency", "step_thresh"}
_SPOKEN = {
    ("dualpi2", "drop-overload"): {"drop": "drop_on_overload", "overflow": "overflow"},
    ("dualpi2", "drop-early"): {"drop-dequeue": "drop_dequeue", "drop-enqueue": "drop_enqueue"},
    ("dualpi2", "ecn-mask"): {"l4s-ect": "l4s_ect", "any-ect": "any_ect"},
    ("dualpi2", "split-gso"): {"None": "split_gso"},
}
"""By discipline and key: the word for each value of the JSON output."""
_HTB_CLASS = ("prio", "quantum", "overhead", "linklayer")


def values_of(text: str) -> Iterator[tuple[Any, int]]:
    """Yields the JSON values in a text, each with the line where it begins."""
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        value, at = decoder.raw_decode(text, at)
        yield value, line


class _Object(dict[str, Any]):
    """A JSON object that also has all its pairs, including those with equal keys."""

    pairs: Pairs


def _object(pairs: Pairs) -> _Object:
    found = _Object(pairs)
    found.pairs = pairs
    return found


def is_json(text: str) -> bool:
    """Returns whether a text begins like the output of `tc -j`."""
    start = "".join(text[:200].split())
    return start[:2] in ("[{", "[]") or start.startswith('{"')


class JsonDumps:
    """Reads the JSON output of `tc` into the devices of a reading."""

    def __init__(self, dumps: Dumps) -> None:
        self._dumps = dumps
        self._reading = dumps.reading

    def read(self, file: str, text: str) -> None:
        """Reads the JSON output in one file; adds problems for entries that cannot be read."""
        lines = text.splitlines()
        device: str | None = None
        try:
            for value, line in values_of(text):
                for entry in value if isinstance(value, list) else [value]:
                    shown = lines[line - 1] if line <= len(lines) else ""
                    place = Place(
                        file, line, shown if len(shown) <= 200 else json.dumps(entry)[:160]
                    )
                    device = self._entry(entry, place, device, file)
        except json.JSONDecodeError as fault:
            where = Place(file, fault.lineno, lines[fault.lineno - 1] if lines else "")
            self._reading.problems.append(
                where.problem(
                    f"this is not JSON: {fault.msg}; older versions of `tc` print filters as "
                    "invalid JSON: give the text form (`tc filter show`)"
                )
            )
        except RecursionError:
            self._reading.problems.append(
                Place(file, 1, "").problem("the JSON text is nested too deeply")
            )

    def _entry(self, entry: Any, place: Place, device: str | None, file: str) -> str | None:
        if not isinstance(entry, _Object):
            self._reading.problems.append(place.problem("an entry of the list is not an object"))
            return device
        try:
            if "class" in entry:
                self._class(entry, place, device)
            elif "protocol" in entry or "pref" in entry:
                self._filter(entry, place, device)
            elif "handle" in entry and "kind" in entry:
                return self._qdisc(entry, place, device, file)
            else:
                raise Refused("this is not a discipline, class or filter as `tc -j` prints it")
        except Refused as why:
            self._reading.problems.append(place.problem(str(why)))
        except KeyError as missing:
            self._reading.problems.append(place.problem(f"this entry lacks `{missing.args[0]}`"))
        except (TypeError, ValueError, AttributeError, OverflowError):
            self._reading.problems.append(place.problem("a value of this entry has the wrong type"))
        return device

    def _qdisc(self, entry: _Object, place: Place, device: str | None, file: str) -> str | None:
        name = entry.get("dev")
        if name is None:
            name = device or file.rpartition("/")[2]
            device = name
        kind, options = str(entry["kind"]), entry.get("options")
        parent = ROOT if entry.get("root") else name_of(str(entry.get("parent", "")))
        handle = handle_of(str(entry["handle"]))
        if handle is None:
            raise Refused(f"`{entry['handle']}` is not the handle of a discipline")
        words = words_of(kind, options if isinstance(options, _Object) else _object([]))
        if kind == "tbf" and isinstance(options, dict) and "minburst" in options:
            self._reading.notices.append(
                place.note(
                    "`tc -j` does not print `peakrate`, so it is ignored; the text output of "
                    "`tc` has it"
                )
            )
        self._dumps.add_qdisc(str(name), kind, handle, parent, words, [], place)
        return device

    def _class(self, entry: _Object, place: Place, device: str | None) -> None:
        name = name_of(str(entry["handle"]))
        if name is None:
            raise Refused(f"`{entry['handle']}` is not the name of a class")
        parent = name_of(str(entry["parent"])) if "parent" in entry else Name(name.major)
        kind = str(entry["class"])
        words = self._class_words(kind, entry, place)
        found = Class(kind, name, parent or Name(name.major), class_words(kind, words), place)
        self._dumps.add_class(found, device)

    def _class_words(self, kind: str, entry: _Object, place: Place) -> list[str]:
        words: list[str] = []
        if kind == "htb":
            for key in ("rate", "ceil"):
                if key in entry:
                    words += [key, f"{int(entry[key]) * 8}bit"]
            for key in ("burst", "cburst"):
                if key in entry:
                    words += [key, f"{int(entry[key])}b"]
            for key in _HTB_CLASS:
                if key in entry:
                    words += [key, str(entry[key])]
            if entry.get("mpu_rate"):
                words += ["mpu", f"{int(entry['mpu_rate'])}b"]
        elif kind == "hfsc":
            for key in ("sc", "rt", "ls", "ul"):
                if key in entry:
                    m1, d, m2 = (int(entry[key][part]) for part in ("m1", "d", "m2"))
                    words += [key, "m1", f"{m1 * 8}bit", "d", f"{d}us", "m2", f"{m2 * 8}bit"]
        elif "quantum" in entry:
            words += ["quantum", f"{int(entry['quantum'])}b"]
        elif kind == "drr":
            self._reading.notices.append(
                place.note(
                    "`tc -j` does not print the quantum of drr; the text output of `tc` has it"
                )
            )
        return words

    def _filter(self, entry: _Object, place: Place, device: str | None) -> None:
        options = entry.get("options")
        if not isinstance(options, _Object) or "ht_divisor" in options:
            return
        found = Filter(
            str(entry.get("kind", "")),
            name_of(str(entry.get("parent", ""))) or ROOT,
            place,
            int(entry.get("pref", 0)) or None,
            str(entry.get("protocol", "all")),
        )
        keys = options.get("keys")
        for key, value in [*options.pairs, *(keys.pairs if isinstance(keys, _Object) else [])]:
            self._option(found, key, value)
        mask = keys.get("ip_tos_mask") if isinstance(keys, dict) else None
        if mask is not None:
            for match in found.matches:
                if match.field == "ip" and match.offset == 0:
                    match.mask = int(str(mask), 16) << 16
        self._dumps.add_filter(found, [""] if found.kind == "flow" else [], device)

    def _option(self, found: Filter, key: str, value: Any) -> None:
        if key in ("flowid", "classid"):
            found.target = str(value)
        elif key == "match" and isinstance(value, dict):
            where = "next" if str(value.get("offmask")) not in ("", "0") else "ip"
            offset = int(value["off"])
            number, bits = int(str(value["value"]), 16), int(str(value["mask"]), 16)
            found.matches.append(filters.header_word(where, number, bits, offset))
        elif key == "mark" and isinstance(value, dict):
            found.matches.append(
                Match("mark", int(str(value["value"]), 0), int(str(value["mask"]), 0))
            )
        elif key == "fwmark_value":
            found.matches.append(Match("mark", int(str(value), 0)))
        elif key == "fwmark_mask" and found.matches:
            found.matches[-1].mask = int(str(value), 0)
        elif key == "fw" and isinstance(value, dict):
            found.handle = f"{value['mark']}/{value['mask']}"
        elif key == "fw" or (key == "handle" and found.kind == "fw"):
            found.handle = str(value)
        elif key == "actions" and isinstance(value, list):
            for action in value:
                self._action(found, action)
        elif found.kind == "flow" and key in ("mode", "keys", "divisor", "baseclass"):
            found.flow[key] = ",".join(value) if isinstance(value, list) else str(value)
        elif key == "kind":
            self._action(found, {"kind": value})
        elif found.kind == "flower" and key not in (
            "handle", "keys", "not_in_hw", "in_hw", "ip_tos_mask", "skip_hw", "skip_sw", "chain",
        ):  # fmt: skip
            if isinstance(value, dict):
                value = f"{value.get('start')}-{value.get('end')}"
            filters.flower_key(found, key, str(value))

    def _action(self, found: Filter, action: Any) -> None:
        if action.get("kind") == "mirred":
            if action.get("mirred_action") != "redirect":
                raise Refused("a copy of a packet (mirror) is not modelled")
            found.redirect = str(action["to_dev"])
        elif action.get("kind") == "police":
            filters.police(found)


def words_of(kind: str, options: _Object) -> list[str]:
    """Returns the options of a discipline in JSON as words of `tc`."""
    if kind == "cake":
        return _cake(options)
    if kind == "netem":
        return _netem(options)
    renamed = _RENAMED.get(kind, {})
    kinds = _kinds().get(kind, {})
    words: list[str] = []
    for raw, value in options.pairs:
        if (kind, raw) in _SPOKEN:
            words += [word for text, word in _SPOKEN[kind, raw].items() if text == str(value)]
            continue
        key = renamed.get(raw.strip(), raw.strip())
        if not key or value is False:
            continue
        if value is True or value is None:
            words.append(key)
        elif isinstance(value, list):
            words += [key, *map(str, value)]
        else:
            words += [key, _written(kinds.get(key, ""), key, value)]
    return words


def _written(kind: str, key: str, value: Any) -> str:
    if isinstance(value, int):
        if key in ("rehash", "db"):
            return str(value // 1000)
        if key == "classic_protection":
            return f"{value}%"
        if kind == "time" or key in _MICROSECONDS:
            return f"{value}us"
        if kind == "rate":
            return f"{value * 8}bit"
        if kind == "size":
            return f"{value}b"
    return f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _cake(options: _Object) -> list[str]:
    words: list[str] = []
    for key, value in options.pairs:
        match key:
            case "bandwidth":
                words += ["bandwidth", value if isinstance(value, str) else f"{value * 8}bit"]
            case "diffserv" | "flowmode":
                words.append(str(value))
            case "nat" | "wash" | "split_gso":
                word = key.replace("_", "-")
                words.append(word if value else f"no{'-' if key == 'split_gso' else ''}{word}")
            case "ingress" | "autorate" if value:
                words.append("ingress" if key == "ingress" else "autorate-ingress")
            case "ack-filter":
                known = {"enabled": "ack-filter", "aggressive": "ack-filter-aggressive"}
                words.append(known.get(str(value), "no-ack-filter"))
            case "rtt" | "memlimit":
                words += [key, f"{value}us" if key == "rtt" else f"{value}b"]
            case "atm":
                words.append(str(value))
            case "overhead" | "mpu" if not options.get("raw"):
                words += [key, str(value)]
            case "fwmark" if str(value) != "0":
                words += [key, str(value)]
            case _:
                continue
    return words


def _netem(options: _Object) -> list[str]:
    words: list[str] = []
    for key, value in options.pairs:
        if key == "limit":
            words += ["limit", str(value)]
        elif key == "delay" and isinstance(value, dict):
            words += ["delay", f"{round(value['delay'] * 1e6)}us"]
            if value.get("jitter"):
                words += [f"{round(value['jitter'] * 1e6)}us", *_correlation(value)]
        elif key in ("loss-random", "duplicate", "corrupt") and isinstance(value, dict):
            share: float = value["loss"] if "loss" in value else value[key]
            words += [key.partition("-")[0], f"{share * 100}%", *_correlation(value)]
        elif key == "reorder" and isinstance(value, dict):
            words += ["reorder", f"{value['reorder'] * 100}%", *_correlation(value)]
        elif key == "rate" and isinstance(value, dict):
            words += ["rate", f"{int(value['rate']) * 8}bit"]
        elif key == "gap" and value:
            words += ["gap", str(value)]
        elif key not in ("seed", "ecn", "gap") and value:
            raise Refused(f"netem's `{key}` cannot be read from JSON: give the text output of `tc`")
    return words


def _correlation(value: dict[str, Any]) -> list[str]:
    share = value.get("correlation", 0)
    return [f"{share * 100}%"] if share else []


@cache
def _kinds() -> dict[str, dict[str, str]]:
    tables = json.loads(_core.describe())["queue"]
    return {table["name"]: {w["name"]: w["kind"] for w in table["words"]} for table in tables}
