"""The control socket: its paths, and what it answers to good requests and bad ones."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import LabError, Unavailable
from sojourn.lab.wire import control
from sojourn.lab.wire.control_server import BURST, CLIENTS, LINE, ControlServer, describe
from sojourn.lab.wire.join import Direction, Wanted, plan_of
from sojourn.lab.wire.settings import Wire

Ask = Callable[[bytes], dict[str, Any]]


OTHERS = {
    "queue": "codel", "backlog_packets": 0, "backlog_bytes": 0, "sojourn": 0.0, "sent": [0, 0],
    "offered": [0, 0], "delivered": [0, 0], "marked": 0, "lost": 0, "busy": 0,
}  # fmt: skip


class Links:
    """Replaces the loop that carries packets: answers requests, and keeps their settings."""

    def __init__(self) -> None:
        self.rates = {"up": 20_000_000, "up.reverse": 1_000_000}
        self.time = 0
        self.over = threading.Event()

    def counters(self) -> str | None:
        if self.over.is_set():
            return None
        self.time += 1
        links = [
            {"link": name, "rate": rate, "dropped": [["early", 1], ["forced", 0]], **OTHERS}
            for name, rate in self.rates.items()
        ]
        return json.dumps({"time": self.time, "monotonic": 0, "lateness": [0, 0], "links": links})

    def set(self, change_json: str, /) -> None:
        change = json.loads(change_json)
        if change["link"] not in self.rates:
            raise ValueError(f"there is no link `{change['link']}`")
        self.rates[change["link"]] = change["rate"]

    def stop(self) -> bool:
        self.over.set()
        return True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of sockets."""
    folder = tmp_path / "run"
    monkeypatch.setattr(control, "folder", lambda: folder)
    return folder


@pytest.fixture
def links(home: Path) -> Iterator[Links]:
    """A wire called `up` that answers."""
    made = Links()
    plan = plan_of(Wanted(("a", "b"), Direction("20mbit"), Direction("1mbit"), Wire("up")))
    with (
        control.listening("up") as listener,
        ControlServer(made, listener, describe(plan, "up")),
    ):
        yield made


@pytest.fixture
def ask(links: Links) -> Iterator[Ask]:
    """Says a line, and returns the answer."""
    del links
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(control.path_of("up")))
        lines = client.makefile("rb")

        def say(line: bytes) -> dict[str, Any]:
            client.sendall(line + b"\n")
            answer: dict[str, Any] = json.loads(lines.readline())
            return answer

        yield say
        lines.close()


def test_only_its_user_reaches_it(links: Links, home: Path) -> None:
    path = control.path_of("up")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_is_taken_once_and_free_again(home: Path) -> None:
    with control.listening("up"):
        with (
            pytest.raises(LabError, match="name `up` is"),
            control.listening("up"),
        ):
            pass
        with control.listening("down"):
            assert control.names() == ["down", "up"]
    assert not home.exists()


def test_sockets_of_a_killed_wire_are_removed(home: Path) -> None:
    home.mkdir(mode=0o700)
    for name in ("up", "down"):
        with socket.socket(socket.AF_UNIX) as killed:
            killed.bind(str(control.path_of(name)))
    with control.listening("up"):
        assert control.names() == ["up"]
    assert not home.exists()


def test_a_folder_of_others_is_not_trusted(home: Path) -> None:
    home.mkdir()
    home.chmod(0o755)
    with pytest.raises(Unavailable, match="not private to this"), control.listening("up"):
        pass
    assert not list(home.iterdir())


def test_a_file_in_the_way_stays(home: Path) -> None:
    home.mkdir(mode=0o700)
    control.path_of("up").write_text("mine")
    with pytest.raises(LabError, match="not a socket"), control.listening("up"):
        pass
    assert control.path_of("up").read_text() == "mine"


@pytest.mark.parametrize("name", ["", "../x", "a b", "-a", "x" * 49, "a.b"])
def test_names_that_no_wire_can_have(name: str) -> None:
    with pytest.raises(LabError, match="must be letters"):
        control.path_of(name)


def test_requests_describe_the_wire_and_set_its_rates(ask: Ask, links: Links) -> None:
    about = ask(b'{"do": "about", "id": 7}')
    assert (about["id"], about["wire"], about["pid"]) == (7, "up", os.getpid())
    assert [(o["link"], o["from"], o["to"]) for o in about["links"]] == [
        ("up", "a", "b"),
        ("up.reverse", "b", "a"),
    ]
    whole = ask(b'{"do": "counters"}')["counters"]
    assert [link["link"] for link in whole["links"]] == ["up", "up.reverse"]
    assert whole["links"][0]["dropped"] == {"early": 1, "forced": 0}
    one = ask(b'{"do": "counters", "links": ["up.reverse"]}')["counters"]
    assert [link["rate"] for link in one["links"]] == [1_000_000]
    assert ask(b'{"do": "set", "link": "up", "rate": "5mbit", "id": "x"}') == {
        "ok": True,
        "id": "x",
    }
    assert links.rates["up"] == 5_000_000
    assert ask(b'{"do": "set", "link": "up", "rate": 4096}')["ok"]
    assert links.rates["up"] == 4096


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "not JSON"),
        (b"[" * 40_000, "not JSON"),
        (b"[1]", "a request must be an object"),
        (b"{}", "about, counters, watch, set or stop"),
        (b'{"do": "sing"}', "'sing'"),
        (b'{"do": "counters", "link": "up"}', "`link` is not a key of counters"),
        (b'{"do": "counters", "links": "up"}', "a list of names"),
        (b'{"do": "counters", "links": ["upp"]}', "did you mean `up`?"),
        (b'{"do": "watch", "every": 0}', "0.05 to 3600 seconds"),
        (b'{"do": "watch", "every": NaN}', "0.05 to 3600 seconds"),
        (b'{"do": "set", "rate": "5mbit"}', "`link` must be the name of a link"),
        (b'{"do": "set", "link": "up"}', "nothing to set"),
        (b'{"do": "set", "link": "up", "rate": "5mbitt"}', "rate:"),
        (b'{"do": "set", "link": "up", "rate": 0}', "such as 5mbit"),
        (b'{"do": "set", "link": "up", "queue": 5}', "`queue` must be a text"),
        (b'{"do": "set", "link": "nobody", "rate": "5mbit"}', "no link `nobody`"),
    ],
)
def test_bad_requests_are_refused_with_a_reason_and_change_nothing(
    ask: Ask, links: Links, line: bytes, words: str
) -> None:
    answer = ask(line)
    assert not answer["ok"]
    assert words in answer["error"]
    assert links.rates["up"] == 20_000_000
    assert ask(b'{"do": "about"}')["ok"]


def test_a_line_without_end_ends_the_connection(ask: Ask) -> None:
    answer = ask(b"x" * (LINE + 1))
    assert not answer["ok"]
    assert str(LINE) in answer["error"]


def test_watched_until_it_ends(links: Links) -> None:
    with control.Client("up") as client:
        times = []
        for counters in client.watch(0.05):
            times.append(counters.time)
            if len(times) == 3:
                links.stop()
    assert times == sorted(set(times))
    assert len(times) == 3


def test_a_client_that_stops_reading_is_disconnected_when_the_server_ends(home: Path) -> None:
    made = Links()
    plan = plan_of(Wanted(("a", "b"), Direction("20mbit"), Direction("1mbit"), Wire("up")))
    with control.listening("up") as listener:
        with ControlServer(made, listener, describe(plan, "up")):
            client = control.Client("up")
            looks = client.watch(0.05)
            next(looks)
        # Its watch ends, and so does what is asked after it.
        assert all(look.time for look in looks)
        with client, pytest.raises(LabError, match="ended"):
            client.counters()


def test_a_client_above_the_limit_is_refused(links: Links) -> None:
    clients = [control.Client("up") for _ in range(CLIENTS)]
    try:
        for client in clients:
            client.about()
        with control.Client("up") as late, pytest.raises(LabError, match=str(CLIENTS)):
            late.next()
    finally:
        for client in clients:
            client.close()


def test_many_requests_at_once_are_all_answered_though_slowly(links: Links) -> None:
    count = int(BURST) + 20
    with control.Client("up") as client:
        for _ in range(count):
            assert client.counters().time
    assert links.time == count


def test_the_wire_that_holds_a_link(links: Links) -> None:
    del links
    assert control.holding("up") == "up"
    assert control.holding("up.reverse") == "up"
    with pytest.raises(LabError, match=r"did you mean `up\.reverse`"):
        control.holding("up.revers")


def test_no_wire_runs(home: Path) -> None:
    with pytest.raises(LabError, match="no wire is running"):
        control.holding("up")
    with pytest.raises(LabError, match="no wire listens"):
        control.Client("up")
    assert not home.exists()
