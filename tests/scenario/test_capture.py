"""Captures as traffic: read beside the scenario, complete in the plan, replayed as they were."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from sojourn.scenario import Scenario, ScenarioError
from tests.scenario.texts import HOME

REPLAY = HOME.replace('app = "voip"', "app = 'replay file calls/a.pcap'")


def pcap(*packets: tuple[float, int]) -> bytes:
    """A capture of packets with a time in seconds and a frame's length, nothing kept of them."""
    header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return header + b"".join(
        struct.pack("<IIII", int(time), round(time % 1 * 1e6), 0, length)
        for time, length in packets
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "a.pcap").write_bytes(pcap((7, 142), (7.5, 1514), (9.25, 60)))
    (tmp_path / "home.toml").write_text(REPLAY)
    return tmp_path


def app(scenario: Scenario) -> dict[str, Any]:
    (_, group) = json.loads(scenario.plan_json)["groups"]
    return dict(group["app"])


def test_a_capture_is_found_beside_the_scenario(folder: Path) -> None:
    scenario = Scenario.load(folder / "home.toml")
    packets = "0:100 500000000:1472 1750000000:18"
    expected = {"name": "replay", "speed": 1.0, "repeat": 1, "packets": packets}
    assert app(scenario) == expected
    assert json.loads(scenario.plan_json)["groups"][1]["transport"] == {"protocol": "udp"}
    # A text without a file is read from the current folder.
    with pytest.raises(ScenarioError, match=r"a\.pcap"):
        Scenario.from_toml(REPLAY)


def test_the_plan_depends_on_the_packets_alone(folder: Path) -> None:
    first = Scenario.load(folder / "home.toml")
    (folder / "calls" / "a.pcap").rename(folder / "my trace.pcap")
    changed = REPLAY.replace("calls/a.pcap", '"my trace.pcap"')
    (folder / "home.toml").write_text(changed)
    second = Scenario.load(folder / "home.toml")
    assert first.digest() == second.digest()
    (folder / "my trace.pcap").write_bytes(pcap((7, 142), (7.5, 1513), (9.25, 60)))
    assert Scenario.load(folder / "home.toml").digest() != first.digest()


@pytest.mark.parametrize("name", ["near", "else where"])
def test_plain_data_finds_the_capture_from_any_folder(
    folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder.rename(tmp_path.with_name(f"{tmp_path.name} {name}"))
    monkeypatch.chdir(inner)
    scenario = Scenario.load("home.toml")
    written: Any = scenario.as_dict()
    monkeypatch.chdir(inner / "calls")
    again = Scenario.from_dict(written)
    assert again.plan_json == scenario.plan_json
    faster = again.replace({"flows.1.app": f"{written['flows'][1]['app']} speed 2"})
    assert app(faster)["speed"] == 2


def test_words_choose_and_change(folder: Path) -> None:
    scenario = Scenario.load(folder / "home.toml")
    slow = scenario.replace({"flows.1.app": "replay file calls/a.pcap speed 0.5 repeat 3"})
    assert (app(slow)["speed"], app(slow)["repeat"]) == (0.5, 3)
    over_tcp = scenario.replace({"flows.1.tcp": "cubic"})
    assert json.loads(over_tcp.plan_json)["groups"][1]["transport"]["protocol"] == "tcp"


@pytest.mark.parametrize(
    ("data", "words", "message"),
    [
        (None, "file b.pcap", "`b.pcap` cannot be read: No such file or directory"),
        (
            b"# text",
            "file b.pcap",
            "`b.pcap`: the file is neither a pcap nor a pcapng file (byte 0 of the file)",
        ),
        (pcap(), "file b.pcap", "`b.pcap`: no packet of the capture is selected"),
        (pcap((0, 60)), "file b.pcap to :53", "`b.pcap`: no packet of the capture is selected"),
        (pcap((0, 60)), "file b.pcap forever", "cannot be repeated"),
        (pcap((0, 60), (1, 65226)), "file b.pcap", "selected packet 2 has 65226 bytes"),
        (pcap((0, 60))[:-1], "file b.pcap", "the file ends within a packet (byte 24 of the file)"),
        (None, "file calls", "`calls`: not a regular file"),
        (None, "speed 2", "`replay` needs `file`"),
    ],
)
def test_a_capture_that_cannot_be_replayed_is_refused(
    folder: Path, data: bytes | None, words: str, message: str
) -> None:
    if data is not None:
        (folder / "b.pcap").write_bytes(data)
    text = HOME.replace('app = "voip"', f"app = 'replay {words}'")
    (folder / "home.toml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(folder / "home.toml")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert (problem.key, problem.line) == ("flows.1.app", 23)


def test_a_large_file_is_no_capture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sojourn.scenario.limits.CAPTURE_BYTES", 10)
    with pytest.raises(ScenarioError, match="larger than 0 MiB"):
        Scenario.load(folder / "home.toml")


def test_a_run_can_be_replayed(tmp_path: Path) -> None:
    """A run sends the packets that another run captured, at the same moments."""
    link = {"from": "a", "to": "b", "rate": "10mbit", "queue": "pfifo limit 50p"}
    flow = {"from": "a", "to": "b", "app": "packets interval exp(20ms) size uniform(60,1514)"}
    scenario = Scenario(
        duration="5s",
        links={"up": link},
        flows=[flow],
        observe={"capture": ["up"]},
    )
    first = scenario.run(seed=3)
    (tmp_path / "first.pcap").write_bytes(first.captures["up"])
    again = scenario.replace({"flows.0.app": f"replay file {tmp_path / 'first.pcap'}"})
    second = again.run(seed=4)

    def records(capture: bytes) -> list[tuple[int, int]]:
        times, at = [], 24
        while at < len(capture):
            seconds, fraction, kept, length = struct.unpack_from("<IIII", capture, at)
            times.append((seconds * 10**9 + fraction, length))
            at += 16 + kept
        return [(time - times[0][0], length) for time, length in times]

    sent = records(first.captures["up"])
    assert len(sent) > 200
    assert records(second.captures["up"]) == sent
    payload = sum(length - 42 for _, length in sent)
    longer = again.replace({"duration": "7s"})
    assert longer.run().flows["bytes"].sum() == payload
    (over_tcp,) = longer.replace({"flows.0.tcp": "reno"}).run().flows.to_dict("records")
    assert (over_tcp["bytes"], over_tcp["finished"]) == (payload, 1)
