"""qlog traces: they follow the published schema, agree with the run, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from sojourn import Scenario, ScenarioError
from sojourn.lab.programs import NotPossible
from sojourn.lab.programs.plan import drawn
from sojourn.study import Results, Study

Schema = Mapping[str, object]

TEXT = """
duration = "3s"
links.l = { from = "a", to = "b", rate = "10mbit", netem = "delay 20ms", queue = "pfifo limit 20p" }
flows = [
    { name = "one", from = "a", to = "b", app = "bulk", tcp = "cubic" },
    { name = "udp", from = "a", to = "b", app = "cbr rate 1mbit payload 500" },
]
observe.qlog = ["one"]
"""
SCENARIO = Scenario.from_toml(TEXT)

NUMBER: Schema = {"type": "number"}
TEXT_OF: Schema = {"type": "string"}
BYTES: Schema = {"type": "integer", "minimum": 0}


def closed(*required: str, **parts: Schema) -> Schema:
    """Returns the schema of an object with these parts and no others."""
    wanted = {"required": list(required), "additionalProperties": False}
    return {"type": "object", "properties": parts, **wanted}


def packet(frame: Schema, *triggers: str) -> Schema:
    """Returns the schema of an event of a packet with one kind of frames."""
    header = closed(
        "packet_type", "packet_number", packet_type={"const": "1RTT"}, packet_number=BYTES
    )
    raw = closed(length=BYTES, payload_length=BYTES)
    frames: Schema = {"type": "array", "items": frame}
    return closed("header", header=header, raw=raw, frames=frames, trigger={"enum": [*triggers]})


STREAM = closed(
    *("frame_type", "stream_id", "offset", "length"),
    frame_type={"const": "stream"},
    **dict.fromkeys(("stream_id", "offset", "length"), BYTES),
)
RANGES: Schema = {"type": "array", "minItems": 1, "items": {"type": "array", "items": BYTES}}
ACK = closed("frame_type", frame_type={"const": "ack"}, acked_ranges=RANGES)
METRICS = closed(
    control={"type": "object"},
    **dict.fromkeys(("min_rtt", "smoothed_rtt", "latest_rtt"), NUMBER),
    **dict.fromkeys(("congestion_window", "bytes_in_flight", "ssthresh", "pacing_rate"), BYTES),
    **dict.fromkeys(("recoveries", "timeouts", "taken_back"), BYTES),
)
EVENTS = {
    "transport:packet_sent": packet(STREAM, "retransmit_reordered", "retransmit_timeout"),
    "transport:packet_received": packet(ACK),
    "recovery:packet_lost": packet(STREAM),
    "recovery:metrics_updated": {**METRICS, "minProperties": 1},
    "recovery:congestion_state_updated": closed("new", old=TEXT_OF, new=TEXT_OF),
}
"""The events' data in qlog 0.3 (draft-ietf-quic-qlog-quic-events-03), with our own metrics."""
COMMON = closed(
    time_format={"const": "relative"}, reference_time=NUMBER, protocol_type={"type": "array"}
)
HEAD = closed(
    *("qlog_format", "qlog_version", "trace"),
    qlog_format={"const": "JSON-SEQ"},
    qlog_version={"const": "0.3"},
    title=TEXT_OF,
    trace=closed(
        "vantage_point",
        vantage_point=closed("type", name=TEXT_OF, type={"const": "server"}),
        common_fields=COMMON,
    ),
)
"""`QlogFileSeq` of draft-ietf-quic-qlog-main-schema-04."""


def test_a_trace_follows_the_published_schema_and_agrees_with_the_runs_counts() -> None:
    """Every record is valid; times rise; packets sent, repeated and acknowledged are the flow's."""
    run = SCENARIO.run(seed=1)
    data = run.record.files["one.0.sqlog"]
    assert data.startswith(b"\x1e")
    assert b"qlog_version" in data[:256], "qvis looks for the version at the beginning"
    head, *events = [json.loads(record) for record in data.split(b"\x1e")[1:]]
    Draft202012Validator(HEAD).validate(head)
    validators = {name: Draft202012Validator(schema) for name, schema in EVENTS.items()}
    for event in events:
        assert set(event) == {"time", "name", "data"}
        validators[event["name"]].validate(event["data"])
    assert [e["time"] for e in events] == sorted(e["time"] for e in events)

    by_name = {name: [e["data"] for e in events if e["name"] == name] for name in EVENTS}
    sent = [data["header"]["packet_number"] for data in by_name["transport:packet_sent"]]
    assert sent == list(range(len(sent)))
    repeated = sum("trigger" in data for data in by_name["transport:packet_sent"])
    flow = run.flows.iloc[0]
    assert repeated == flow["retransmissions"] > 0
    lost = {data["header"]["packet_number"] for data in by_name["recovery:packet_lost"]}
    assert len(lost) >= repeated
    ranges = [
        span
        for data in by_name["transport:packet_received"]
        for span in data["frames"][0].get("acked_ranges", ())
    ]
    acked = [number for first, last in ranges for number in range(first, last + 1)]
    assert len(acked) == len(set(acked))
    assert lost.isdisjoint(acked)
    states = [data["new"] for data in by_name["recovery:congestion_state_updated"]]
    assert states[0] == "slow_start"
    assert "recovery" in states


def test_a_trace_changes_nothing(tmp_path: Path) -> None:
    """The hash is that without a trace; a study stores the file with the run."""
    plain = SCENARIO.replace({"observe.qlog": None})
    assert plain.run(seed=1).trace_hash == SCENARIO.run(seed=1).trace_hash
    assert plain.run(seed=1).record.files == {}
    Study(SCENARIO, "traced").seeds(1).run(out=tmp_path / "out")
    (stored,) = Results.open(tmp_path / "out").runs()
    assert (
        stored.files["one.0.sqlog"].read_bytes() == SCENARIO.run(seed=1).record.files["one.0.sqlog"]
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["two"], r"unknown flow `two`"),
        (["udp"], "must be a group of TCP flows"),
        (["one", "one"], "must not be listed twice"),
    ],
)
def test_a_flow_that_cannot_be_traced_is_refused(names: list[str], message: str) -> None:
    """With the place in the file."""
    with pytest.raises(ScenarioError, match=message) as caught:
        SCENARIO.replace({"observe.qlog": names})
    assert "observe.qlog" in str(caught.value)


def test_only_the_simulator_traces() -> None:
    """Engines with real hosts refuse the scenario instead of leaving the file out."""
    with pytest.raises(NotPossible, match=r"observe\.qlog"):
        drawn(SCENARIO.plan, 1)
