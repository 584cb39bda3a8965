"""Errors name file, line, key, what was found, what is allowed and the nearest word."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.scenario import Problem, Scenario, ScenarioError, limits
from tests.scenario.texts import DUMBBELL, HOME, LAN, SWITCH


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(text, file="a.toml")
    assert str(caught.value)
    return caught.value.problems


CASES = [
    ("codel limit", "codle limit", "links.uplink.queue", 10, "codle", "codel"),
    ("target 5ms", "traget 5ms", "links.uplink.queue", 10, "traget", "target"),
    ("target 5ms", "target 5m", "links.uplink.queue", 10, "5m", None),
    ('rate = "20mbit"', "rate = 20", "links.uplink.rate", 8, "20", None),
    ('rate = "20mbit"', 'rate = "20"', "links.uplink.rate", 8, "20", None),
    ('rate = "20mbit"', 'rat = "20mbit"', "links.uplink.rat", 8, "rat", "rate"),
    ("delay 15ms", "dealy 15ms", "links.uplink.netem", 9, "dealy", "delay"),
    ('"60s"', "60", "duration", 2, "60", None),
    ('"60s"', '"60"', "duration", 2, "60", None),
    ('"10s"', '"10parsec"', "warmup", 3, "10parsec", None),
    ("warmup", "wramup", "wramup", 3, "wramup", "warmup"),
    ('"cubic"', '"cubik"', "flows.0.tcp", 16, "cubik", "cubic"),
    ('"voip"', '"viop"', "flows.1.app", 23, "viop", "voip"),
    ('to = "isp"\napp = "voip"', 'to = "ips"\napp = "voip"', "flows.1.to", 22, "ips", "isp"),
    ("count = 4", "count = 0", "flows.0.count", 17, "0", None),
    ("count = 4", 'count = "4"', "flows.0.count", 17, '"4"', None),
    ("count = 4", "count = 4.0", "flows.0.count", 17, "4.0", None),
    ("count = 4", "cuont = 4", "flows.0.cuont", 17, "cuont", "count"),
    ("uniform 0s", "unifrom 0s", "flows.0.start", 18, "unifrom 0s 1s", "uniform"),
    ("uniform 0s 1s", "evry 1s", "flows.0.start", 18, "evry 1s", "every"),
    ("count = 4", 'dscp = "eff"', "flows.0.dscp", 17, "eff", "ef"),
    ("warmup", 'bottleneck = "uplnk"\nwarmup', "bottleneck", 3, "uplnk", "uplink"),
    (
        "[[flows]]",
        '[observe]\ncapture = ["uplink", "uplik"]\n[[flows]]',
        "observe.capture.1",
        13,
        "uplik",
        "uplink",
    ),
]


@pytest.mark.parametrize(("old", "new", "key", "line", "found", "nearest"), CASES)
def test_one_mistake(
    old: str, new: str, key: str, line: int, found: str | None, nearest: str | None
) -> None:
    (problem,) = problems(HOME.replace(old, new, 1))
    assert (problem.file, problem.key, problem.line) == ("a.toml", key, line)
    assert problem.nearest == nearest
    if found is not None:
        assert problem.found == found
    # The wrong text is underlined, or the key that gives it.
    assert problem.source is not None
    assert problem.column is not None
    assert problem.end_column is not None
    underlined = problem.source[problem.column - 1 : problem.end_column - 1]
    assert underlined in {found, key.rpartition(".")[2], key.split(".")[-2:][0], None}


def test_messages_are_for_people() -> None:
    (problem,) = problems(HOME.replace("codel limit", "codle limit"))
    assert str(problem) == (
        "a.toml:10: links.uplink.queue: unknown queue `codle`: did you mean `codel`?\n"
        '   10 | queue = "codle limit 1000p target 5ms"\n'
        "      |          ^^^^^"
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "key", "words"),
    [
        (LAN, '"lan"', '"lann"', "topology.template", "did you mean `lan`?"),
        (LAN, "queue =", 'access = "cmsa"\nqueue =', "topology.access", "did you mean `csma`?"),
        (LAN, "queue =", 'access = "csma slot 0s"\nqueue =', "topology.access", "above 0"),
        (LAN, "queue =", "ring = -1\nqueue =", "topology.ring", "whole number of packets"),
        (LAN, "queue =", 'reverse.queue = "pie"\nqueue =', "topology.reverse", "unknown key"),
        (LAN, '"up"', '"lan"', "flows.0.name", "already the name of a medium"),
        (LAN, "warmup", 'bottleneck = "cleints"\nwarmup', "bottleneck", "mean `clients`?"),
        (LAN, "warmup", 'bottleneck = "lan.reverse"\nwarmup', "bottleneck", "unknown link"),
        (LAN, 'to = "servers"', 'to = "lan"', "flows.0.to", "unknown host `lan`"),
        (SWITCH, "hosts = 2", "hosst = 2", "topology.servers.hosst", "did you mean `hosts`?"),
        (SWITCH, "hosts = 2", 'queue2 = "pie"', "topology.servers.queue2", "mean `queue`?"),
        (SWITCH, '"up"', '"servers"', "flows.0.name", "already the name of the bottleneck"),
        (
            SWITCH,
            "warmup",
            'bottleneck = ["servers", "server1"]\nwarmup',
            "bottleneck.1",
            "`server1` must not be listed twice",
        ),
        (
            SWITCH,
            "warmup",
            'bottleneck = "ports"\nwarmup',
            "bottleneck",
            "have the same queue, but these have `pfifo limit 1000p` (client10) and `codel`",
        ),
        (
            SWITCH,
            "[[flows]]",
            '[links.servers]\nfrom = "switch"\nto = "isp"\nrate = "1gbit"\n[[flows]]',
            "links.servers",
            "the template's name for several links",
        ),
    ],
)
def test_shared_media_and_sides(text: str, old: str, new: str, key: str, words: str) -> None:
    found = problems(text.replace(old, new, 1))
    assert [problem.key for problem in found] == [key], found
    assert words in str(found[0])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('from = "home"\nto = "isp"\nrate', "rate", "`from` is missing"),
        ('app = "voip"\n', "", "`app` is missing"),
        ('duration = "60s"\n', "", "`duration` is missing"),
        ('"10s"', '"60s"', "must be shorter than the duration (60s)"),
        ('"60s"', '"0s"', "must be above zero"),
        ('"60s"', '"300000s"', "must be at most 72 hours"),
        ('"uniform 0s 1s"', '"60s"', "must be before the end of the run (60s)"),
        ('"uniform 0s 1s"', '"uniform 2s 1s"', "is before the first"),
        ('"uniform 0s 1s"', '"uniform 2s"', "needs two times"),
        ("count = 4", 'stop = "0s"', "must be after the start"),
        ('"uniform 0s 1s"', '"every 1s from"', "needs a time"),
        ('"uniform 0s 1s"', '"every 1"', "needs its unit, such as 5ms; found `1`"),
        ('"uniform 0s 1s"', '"every 1s from 60s"', "must be before the end of the run (60s)"),
        ('tcp = "cubic"', "udp = true", "`bulk` needs TCP"),
        ('app = "voip"', 'app = "voip"\ntcp = "reno"\nudp = true', "cannot use both TCP and UDP"),
        ('app = "voip"', 'app = "voip"\nname = "bulk"', ""),
        ('app = "voip"', 'app = "voip"\nname = "uplink"', "already the name of a link"),
        ('to = "isp"\nrate', 'to = "home"\nrate', "to itself"),
        ("[links.uplink]", "[links.'up link']", "a name consists of letters"),
        ('to = "isp"\napp = "voip"', 'to = "home"\napp = "voip"', "to itself"),
        ('to = "isp"\napp = "voip"', 'to = []\napp = "voip"', "the list is empty"),
    ],
)
def test_contradicting_keys_are_refused(old: str, new: str, words: str) -> None:
    found = problems(HOME.replace(old, new, 1)) if words else ()
    if words:
        assert any(words in problem.message for problem in found)
    else:
        Scenario.from_toml(HOME.replace(old, new, 1))


def test_two_flows_of_one_name() -> None:
    text = HOME.replace('app = "bulk"', 'app = "bulk"\nname = "x"')
    text = text.replace('app = "voip"', 'app = "voip"\nname = "x"')
    (problem,) = problems(text)
    assert "name `x` is" in problem.message


def test_all_errors_are_reported_at_once() -> None:
    text = HOME
    for old, new in (
        ("codel limit", "codle limit"),
        ("delay 15ms", "delay 15h"),
        ("warmup", "wramup"),
        ('"cubic"', '"cubik"'),
        ('to = "isp"\napp = "voip"', 'to = "ips"\napp = "voip"'),
    ):
        text = text.replace(old, new, 1)
    found = problems(text)
    assert [problem.line for problem in found] == [3, 9, 10, 16, 22]
    assert len(str(ScenarioError(found)).splitlines()) == 15


STAGES = """\
name = 3
duration = "0s"
warmup = "2s"
bottleneck = "uplnk"

[links.uplink]
from = "home"
to = "isp"
rate = "20mbit"
netem = "dealy 15ms"
ring = 5

[links.loop]
from = "a"
to = "a"
rate = "1mbit"
changes = [{ at = "1s" }]

[[flows]]
from = "home"
to = "ips"
app = "bulk"
stop = "0s"

[[flows]]
from = "home"
to = "a"
app = "bulk"
udp = true

[[flows]]
name = "uplink"
from = "home"
to = "home"
app = "replay file lost.pcap"

[observe]
snaplen = "100kb"
"""


def test_errors_of_all_stages_are_reported_at_once() -> None:
    """Of the keys' form, of names, of files, and of what only the engine knows."""
    expected = [
        (1, "name", "needs a text"),
        (2, "duration", "must be above zero"),
        (4, "bottleneck", "unknown link `uplnk`"),
        (10, "links.uplink.netem", "dealy"),
        (13, "links.loop", "must not join `a` to itself"),
        (17, "links.loop.changes.0", "must set a rate"),
        (21, "flows.0.to", "unknown host `ips`: no link has this end"),
        (23, "flows.0.stop", "must be after the start"),
        (27, "flows.1.to", "no links lead from `home` to `a`"),
        (29, "flows.1.udp", "`bulk` needs TCP"),
        (32, "flows.2.name", "the name `uplink` is already the name of a link"),
        (34, "flows.2.to", "a flow must not go from `home` to itself"),
        (35, "flows.2.app", "`lost.pcap` cannot be read"),
        (38, "observe.snaplen", "must be from 1 to 65535"),
    ]
    found = problems(STAGES)
    assert [(problem.line, problem.key) for problem in found] == [case[:2] for case in expected]
    for problem, (_, key, words) in zip(found, expected, strict=True):
        assert words in problem.message, key


def test_a_length_that_cannot_be_read_hides_nothing() -> None:
    for duration in ('duration = "6o"', "duration = 60", ""):
        text = STAGES.replace('duration = "0s"', duration)
        others = {problem.key for problem in problems(STAGES)} - {"duration"}
        found = problems(text)
        assert {problem.key for problem in found} - {"duration", ""} == others
        assert "duration" in str(ScenarioError(found))


def test_islands() -> None:
    text = HOME + '[links.far]\nfrom = "x"\nto = "y"\nrate = "1mbit"\n'
    text = text.replace('to = "isp"\napp = "voip"', 'to = "x"\napp = "voip"')
    (problem,) = problems(text)
    assert "`home` to `x`" in problem.message


@pytest.mark.parametrize(
    ("old", "new", "key", "nearest"),
    [
        ('"dumbbell"', '"dumbell"', "topology.template", "dumbbell"),
        ("hosts = 4", "hsots = 4", "topology.left.hsots", "hosts"),
        ("forward.netem = [", "forwrad.netem = [", "topology.left.forwrad", "forward"),
        ("delay 40ms", "dealy 40ms", "topology.left.forward.netem.1", "delay"),
        ("pfifo", "pfifi", "topology.queue", "pfifo"),
        ('from = "left"', 'from = "lfet"', "flows.0.from", "left"),
    ],
)
def test_templates(old: str, new: str, key: str, nearest: str) -> None:
    (problem,) = problems(DUMBBELL.replace(old, new))
    assert (problem.key, problem.nearest) == (key, nearest)
    assert problem.line is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "not valid TOML"),
        ("a = 1\na = 2", "not valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
        (f"a = {'9' * 5000}", "not valid TOML"),
        ("a" * (limits.FILE_BYTES + 1), "larger than"),
        ("a." * limits.LINE_CHARACTERS + "b = 1", "is longer than"),
        ("a = inf", "not a finite number"),
        ("a = 99999999999999999999", "the number must be below 2^63 in magnitude"),
        ("a = 1979-05-27", "dates and times of day are not allowed"),
        ("", "`duration` is missing"),
    ],
)
def test_texts_that_are_no_scenario(text: str, words: str) -> None:
    assert any(words in problem.message for problem in problems(text))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "home.toml"
    with pytest.raises(ScenarioError, match="cannot be read"):
        Scenario.load(path)
    with pytest.raises(ScenarioError, match="cannot be read"):
        Scenario.load(tmp_path)
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        Scenario.load(path)
    path.write_bytes(b"\xef\xbb\xbf" + HOME.replace("\n", "\r\n").encode())
    assert Scenario.load(path).plan_json == Scenario.from_toml(HOME).plan_json
    path.write_bytes(b"#" * (limits.FILE_BYTES + 1))
    with pytest.raises(ScenarioError, match="larger than"):
        Scenario.load(path)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"duration": object()},
        {"duration": b"60s"},
        {"flows": 3},
        {"links": [], "duration": "1s", "flows": [{}]},
        {"links": {"\ud800": {}}, "duration": "1s"},
        {"name": "\ud800", "duration": "1s"},
        {"duration": float("nan")},
        {"topology": 3, "duration": "1s"},
        {"topology": {"template": 3}, "duration": "1s"},
        {"topology": {"template": "star", "hosts": 10**9, "rate": "1mbit"}, "duration": "1s"},
    ],
)
def test_python_values_that_are_no_scenario(keys: dict[str, object]) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario(**keys)
    assert str(caught.value)


def test_machines_get_the_same() -> None:
    (problem,) = problems(HOME.replace("codel limit", "codle limit"))
    data = problem.as_dict()
    assert data["found"] == "codle"
    assert data["nearest"] == "codel"
    assert isinstance(data["allowed"], list)
    assert "pfifo" in data["allowed"]
    assert (data["line"], data["column"], data["end_column"]) == (10, 10, 15)
