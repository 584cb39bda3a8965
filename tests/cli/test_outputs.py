"""Every command with `--json` has a schema, and a test checks its output against it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from sojourn.lab.cassandra import artefacts
from sojourn.lab.machine import cpu, settings
from sojourn.lab.machine.settings import Outcome
from sojourn.lab.wire.selftest import Report, Trial
from tests.cli.outputs import agreeing, commands
from tests.cli.test_commands import sojourn
from tests.cli.test_shared import leaves
from tests.conftest import ROOT

HERE = {
    "advise store": ["examples/edge-store.toml", "--seeds", "2", "--set", "store.requests=60"],
    "compare": ["examples/home.toml", "--queues", "codel", "pie", "--seeds", "2"],
    "doctor": ["simulate"],
    "explain": ["codel"],
    "linux list": [],
    "list": [],
    "new": ["--list"],
    "paper": ["list"],
    "run": ["examples/home.toml"],
    "schema": ["study", "run"],
    "tc": ["examples/home.toml", "--set", "links.uplink.queue=codel"],
    "tune redopt": ["--rate", "10mbit", "--rtt", "140ms", "--flows", "32", "--model-only"],
    "verify": ["crates/vectors/data"],
}
"""Arguments of commands that this test runs; `agreeing` in other tests checks the others."""
SHORT = ["--set", "duration=2s", "--set", "warmup=1s"]


def test_every_command_with_json_has_a_schema() -> None:
    given = {n for n, command in leaves() if any("--json" in p.opts for p in command.params)}
    assert set(commands()) == given | {"rcvbuf"}


@pytest.mark.filterwarnings("ignore::sojourn.former.FormerWarning")
@pytest.mark.parametrize("name", commands())
def test_schemas_are_valid_and_every_command_agrees_with_its_own(name: str) -> None:
    schema = json.loads(sojourn("schema", *name.split()).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    if name in HERE:
        arguments = [str(ROOT / a) if (ROOT / a).exists() else a for a in HERE[name]]
        short = SHORT if name in ("compare", "run") else []
        words = ["paper", "list"] if name == "paper" else [*name.split(), *arguments]
        found = sojourn(*words, *short, "--json")
        agreeing(name, json.loads(found.out))
        return
    called = ", ".join(f'"{word}"' for word in name.split())
    checks = rf'agreeing\(\s*"{name}"|sojourn\(\s*{called}'
    tests = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert any(re.search(checks, text) for text in tests), f"no test checks `{name} --json`"


def test_a_key_without_a_schema_is_noticed(tmp_path: Path) -> None:
    found = sojourn("run", ROOT / "examples/home.toml", *SHORT, "--json").json()
    with pytest.raises(AssertionError, match="secret"):
        agreeing("run", {**found, "secret": 1})
    found.pop("trace_hash")
    with pytest.raises(AssertionError, match="trace_hash"):
        agreeing("run", found)
    missing = sojourn("run", tmp_path / "nowhere.toml", "--json")
    assert missing.status == 2
    assert agreeing("run", missing.json()).keys() == {"error", "problems"}


def test_a_command_without_json_output_is_named() -> None:
    assert "did you mean `study run`?" in sojourn("schema", "stduy", "run").err
    assert "existing: ab, advise check" in sojourn("schema", "xyzzy").err


def test_commands_that_act_on_the_machine_agree_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    left = Outcome("net.core.rmem_max", "left", "another program has changed it")
    monkeypatch.setattr(settings, "recover", lambda force: [left])
    monkeypatch.setattr(cpu, "sweep", lambda group: [])
    monkeypatch.setattr(artefacts, "fetch", lambda **options: 0)
    assert agreeing("lab clean", sojourn("lab", "clean", "--json").json())
    assert agreeing("store fetch", sojourn("store", "fetch", "--json").json())
    trial = Trial("TCP", None, 1e9, 9e4, 1e-5, 1e-4, 1e-3, 0.5, [])
    report = Report([trial], 1e9, 9e4, (1e-5, 1e-4, 1e-3), 10**8)
    agreeing("wire selftest", json.loads(json.dumps(report.as_dict())))
