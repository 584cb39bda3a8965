"""A store of real Cassandra nodes, whose links are the wire's."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import Host, LabError, Sandbox, Unavailable
from sojourn.lab.cassandra import VERSION, artefacts, java, node
from sojourn.lab.cassandra.client import _paced, load_driver, outcome_of
from sojourn.lab.cassandra.cluster import Cluster, Node
from sojourn.lab.engine import WireEngine
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.lab.programs.errors import NotPossible
from sojourn.lab.record import LabRecord
from sojourn.lab.sandbox.modules import environment
from sojourn.lab.store.findings import table_options
from sojourn.scenario import Scenario
from tests.cli.outputs import agreeing
from tests.lab.conftest import described, started

NODES = ["n1", "n2", "n3"]
STORE: dict[str, Any] = {
    "nodes": NODES, "clients": ["client"], "replication": 2, "requests": 150,
    "write_timeout": "60s", "client_timeout": "70s",
}  # fmt: skip


def scenario(between: str = "delay 10ms loss 2%", **store: Any) -> Scenario:
    """Three nodes that are all joined, and a client 5 ms from each."""
    links = {
        f"{a}-{b}": {"from": a, "to": b, "rate": "1gbit", "netem": between}
        for i, a in enumerate(NODES) for b in NODES[i + 1 :]
    } | {
        f"client-{a}": {"from": "client", "to": a, "rate": "1gbit", "netem": "delay 5ms"}
        for a in NODES
    }  # fmt: skip
    given = {"duration": "60s", "links": links, "store": {**STORE, **store}}
    return Scenario.from_dict(given)


@pytest.fixture(scope="module")
def _cassandra() -> None:
    installed()


def installed() -> None:
    """Java, the jars and the driver; the test is skipped without them."""
    try:
        java.find_java()
        artefacts.class_path()
        pytest.importorskip("cassandra", reason="not installed: cassandra-driver")
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")


def real(wanted: Scenario, seed: int = 1) -> tuple[dict[str, Any], LabRecord]:
    try:
        run = wanted.run(seed, engine=WireEngine())
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    record: Any = run.record
    return dict(run.metrics), record


@pytest.mark.alone
@pytest.mark.usefixtures("_cassandra")
@pytest.mark.slow
def test_a_real_store_is_as_the_simulated_one() -> None:
    wanted = scenario()
    found, record = real(wanted)
    assert record.complete
    assert found["store.requests"] == found["store.acknowledged"] == 150
    assert found["store.pending"] == found["store.timed_out"] == found["store.unconverged"] == 0
    # Round robin by the driver's own count.
    assert [found[f"store.n{i}.coordinated"] for i in (1, 2, 3)] == [50, 50, 50]
    (checked,) = described(record)["store"]["checked"]
    assert checked == {
        "keys": 150, "lost": 0, "violations": 0, "unconverged": 0, "unread": 0, "some": {},
    }  # fmt: skip
    # To the coordinator and back are 10 ms, and of two replicas one is always elsewhere: 20 ms.
    # A busy machine adds tens of milliseconds to any request, a lost packet more than 200 to few.
    simulated = wanted.run(1).metrics["store.latency_p50"]
    assert 0.030 < simulated < 0.032
    assert 0.030 < found["store.latency_p50"] < simulated + 0.1
    assert "n1.log" in _names(record)


def _names(record: LabRecord) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(record.files["programs.zip"])).namelist()


@pytest.mark.slow
@pytest.mark.usefixtures("_cassandra")
def test_a_node_that_is_killed_loses_nothing_that_was_acknowledged() -> None:
    wanted = scenario(
        "delay 2ms",
        replication=3,
        requests=400,
        think="10ms",
        faults=[{"crash": "n3", "at": "2s", "until": "6s"}],
        write_timeout="2s",
        client_timeout="3s",
        hints=False,
    )
    found, record = real(wanted)
    assert found["store.requests"] == 400
    outcomes = ("acknowledged", "unavailable", "errors", "timed_out", "pending")
    assert sum(found[f"store.{name}"] for name in outcomes) == 400
    # Two of three replicas are a quorum.
    assert found["store.acknowledged"] > 300
    (checked,) = described(record)["store"]["checked"]
    assert checked["keys"] == found["store.acknowledged"]
    assert checked["lost"] == checked["violations"] == checked["unread"] == 0
    # Without hints, n3 does not get the writes that it missed.
    assert found["store.unconverged"] > 0


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("_cassandra")
def test_a_store_runs_through_a_partition_a_change_of_delay_and_another_flow() -> None:
    wanted = scenario(
        "delay 2ms",
        replication=3,
        requests=None,
        think="20ms",
        # Twice as long as a client waits: others answer in between also where all is slow, and
        # what n3 gets late is older than a write may be.
        faults=[{"partition": ["n3"], "at": "1.5s", "until": "6.5s"}],
        write_timeout="2s",
        client_timeout="2500ms",
        hints=False,
    ).replace(
        {
            "duration": "12s",
            "links.client-n1.changes": [{"at": "4s", "netem": "delay 60ms"}],
            "flows": [{"from": "client", "to": "n2", "app": "cbr rate 80kbit payload 200"}],
        }
    )
    found, record = real(wanted)
    assert record.complete
    assert record.reached == 12_000_000_000
    outcomes = ("acknowledged", "unavailable", "errors", "timed_out", "pending")
    assert sum(found[f"store.{name}"] for name in outcomes) == found["store.requests"]
    # The client cannot reach n3 whose turn it is; the two others are a quorum, and n3 is behind.
    assert described(record)["health"]["cut"] > 0
    assert found["store.timed_out"] >= 1
    assert found["store.acknowledged"] > 5
    assert found["store.unconverged"] > 0
    (checked,) = described(record)["store"]["checked"]
    assert checked["lost"] == checked["violations"] == checked["unread"] == 0
    # Number, kind, key, intended, begun, ended, outcome, coordinator, error: see the client.
    rows = [json.loads(line) for line in _file(record, "client.jsonl").splitlines()]
    address = described(record)["store"]["nodes"]["n1"]
    first = [row for row in rows if row[7] == address and row[6] == "acknowledged"]
    before, after = (
        [row[5] - row[4] for row in first if row[5] < 4e9],
        [row[5] - row[4] for row in first if row[4] > 4e9],
    )
    assert min(before) < 120e6 <= min(after)
    assert found["cbr.received"] > 50
    # Distributions are those that simulated runs have, of the same requests.
    spread = record.table("distributions")
    columns: dict[str, Any] = {name: data for name, _, _, data in spread}
    counts = struct.unpack(f"<{len(columns['place'])}q", columns["count"])
    latencies = zip(columns["place"], columns["metric"], counts, strict=True)
    counted = [
        n for place, metric, n in latencies if (place, metric) == ("store.writes", "latency")
    ]
    assert sum(counted) == found["store.acknowledged"]


def _file(record: LabRecord, name: str) -> str:
    return zipfile.ZipFile(io.BytesIO(record.files["programs.zip"])).read(name).decode()


@pytest.mark.slow
@pytest.mark.usefixtures("_cassandra")
def test_a_client_asks_its_own_data_centre_only_and_all_nodes_are_looked_at() -> None:
    between = {"from": "e1", "to": "w1", "rate": "1gbit", "netem": "delay 5ms"}
    links = {"between": between} | {
        f"client-{node}": {"from": "client", "to": node, "rate": "1gbit"} for node in ("e1", "w1")
    }
    store = {
        **STORE,
        "nodes": ["e1", "w1"],
        "data_centres": {"east": ["e1", "client"], "west": ["w1"]},
        "replication": {"east": 1, "west": 1},
        "consistency": "local_one",
        "coordinator": "token-dc-aware",
        "workload": "ycsb-a",
        "records": 20,
        "requests": 60,
        "speculative": "30ms",
        "read_repair": False,
    }
    wanted = Scenario.from_dict({"duration": "60s", "links": links, "store": store})
    found, record = real(wanted)
    assert found["store.acknowledged"] == 60
    assert (found["store.e1.coordinated"], found["store.w1.coordinated"]) == (60, 0)
    (checked,) = described(record)["store"]["checked"]
    assert checked["keys"] > 0
    assert checked["lost"] == checked["violations"] == checked["unread"] == 0


def test_a_tables_options_are_the_plans_not_cassandras() -> None:
    def options(**store: Any) -> dict[str, str]:
        return table_options(scenario(**store).plan.apps[0])

    assert options() == {"speculative_retry": "NONE"}
    given = options(speculative="2500us", read_repair=False)
    assert given == {"speculative_retry": "2.5ms", "read_repair": "NONE"}


def test_a_rate_is_kept_and_nothing_left_out() -> None:
    begin = time.monotonic()
    assert [list(batch) for batch in _paced(range(5), 20)] == [[0, 1], [2, 3], [4]]
    assert time.monotonic() - begin >= 0.25
    assert [list(batch) for batch in _paced(range(5), None)] == [[0, 1, 2, 3, 4]]
    assert list(_paced([], 20)) == list(_paced([], None)) == []


def test_a_store_on_the_kernel_engine_is_refused() -> None:
    with pytest.raises(NotPossible, match="store needs the wire's"):
        scenario().run(1, engine=KernelEngine())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sojourn" / f"cassandra-{VERSION}"


def _pin(monkeypatch: pytest.MonkeyPatch, *jars: artefacts.Jar) -> None:
    monkeypatch.setattr(artefacts, "pinned", lambda _version=VERSION: list(jars))


def test_jars_are_fetched_once_and_checked(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven = tmp_path / "maven" / "org" / "a"
    maven.mkdir(parents=True)
    (maven / "a.jar").write_bytes(b"a jar")
    good = artefacts.Jar("org/a/a.jar", hashlib.sha256(b"a jar").hexdigest())
    _pin(monkeypatch, good)
    repository = (tmp_path / "maven").as_uri()
    with pytest.raises(Unavailable, match="sojourn store fetch"):
        artefacts.class_path()
    assert artefacts.fetch(repository=repository) == 1
    assert artefacts.fetch(repository="https://nowhere.invalid") == 0
    assert artefacts.class_path() == str(cache / "a.jar")
    # One that has been altered is fetched again.
    (cache / "a.jar").write_bytes(b"another")
    assert artefacts.fetch(repository=repository) == 1
    assert [path.name for path in cache.iterdir()] == ["a.jar"]


def test_a_jar_that_is_another_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b.jar").write_bytes(b"evil")
    _pin(monkeypatch, artefacts.Jar("b.jar", "0" * 64))
    with pytest.raises(LabError, match="not the pinned file"):
        artefacts.fetch(repository=tmp_path.as_uri())
    assert list(cache.iterdir()) == []
    with pytest.raises(LabError, match="cannot be fetched"):
        artefacts.fetch(repository=(tmp_path / "none").as_uri())
    with pytest.raises(LabError, match="a repository must"):
        artefacts.fetch(repository="ftp://x")


def test_the_pinned_list_is_whole() -> None:
    jars = artefacts.pinned()
    assert len({jar.name for jar in jars}) == len(jars) > 80
    assert any(jar.name == f"cassandra-all-{VERSION}.jar" for jar in jars)


def test_java_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\" 2025' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=r"requires Java 11 or 17; .* is Java 25"):
        java.find_java()
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="Java 17 is missing"):
        java.find_java()


def test_outcomes_are_what_the_drivers_errors_mean() -> None:
    driver = pytest.importorskip("cassandra", reason="not installed: cassandra-driver")
    load_driver()
    from cassandra.cluster import NoHostAvailable

    assert outcome_of(None) == "acknowledged"
    assert outcome_of(driver.Unavailable("x")) == "unavailable"
    assert outcome_of(driver.WriteTimeout("x", write_type=0)) == "timed_out"
    assert outcome_of(driver.OperationTimedOut()) == "timed_out"
    assert outcome_of(driver.WriteFailure("x", write_type=0)) == "error"
    assert outcome_of(NoHostAvailable("x", {})) == "error"


KEYSPACES = """
import os
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
auth = PlainTextAuthProvider("cassandra", "cassandra")
with Cluster(["127.0.0.1"], auth_provider=auth) as cluster:
    cluster.connect()
    print(sorted(cluster.metadata.keyspaces))
"""
KEY = ("-newkey", "rsa:2048", "-nodes", "-keyout")


def certificates(folder: Path) -> None:
    """An authority's certificate, and a node's and a client's with their keys, that it signs."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *KEY, "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
    for name in ("node", "client"):
        openssl("req", *KEY, f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
        parts = [(folder / f"{name}.{kind}").read_text() for kind in ("key", "crt")]
        (folder / f"{name}.pem").write_text("".join(parts))
    openssl("req", "-x509", *KEY, "x.key", "-out", "stranger.pem", "-days", "2", "-subj", "/CN=x")


@pytest.mark.slow
@pytest.mark.usefixtures("_cassandra")
@pytest.mark.needs("openssl")
def test_a_store_that_runs_already_is_measured_and_left_as_it_was(tmp_path: Path) -> None:
    certificates(tmp_path)
    file = tmp_path / "store.toml"
    file.write_text(
        'duration = "30s"\n'
        'links.wire = {from = "n", to = "client", rate = "1gbit"}\n'
        '[store]\nnodes = "n"\nclients = "client"\nreplication = 1\nrequests = 100\n'
    )
    (tmp_path / "password").write_text("cassandra\n")
    member = node.Member("n", "127.0.0.1", [0], "dc1", "rack0")
    encryption = {
        "enabled": True,
        "optional": True,  # on the same port
        "require_client_auth": True,
        "ssl_context_factory": {
            "class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"
        },
        "keystore": str(tmp_path / "node.pem"),
        "truststore": str(tmp_path / "ca.pem"),
    }
    settings = node.Settings(
        ["127.0.0.1"], 2000, 5000,
        more={"authenticator": "PasswordAuthenticator", "client_encryption_options": encryption},
        properties={"cassandra.superuser_setup_delay_ms": "0"},
    )  # fmt: skip
    user = ["--user", "cassandra"]
    tls = ["--tls", str(tmp_path / "ca.pem"), "--tls-certificate", str(tmp_path / "client.pem")]
    with closing(started(Sandbox(memory=2 << 30))) as sandbox:
        host = sandbox.host("n")
        host.set_link("lo", up=True)

        def measure(*more: str, password: str = "", status: int = 0) -> tuple[dict[str, Any], str]:
            words = [sys.executable, "-m", "sojourn.cli", "store", "measure", str(file), "--json"]
            words += ["--contact-points", "127.0.0.1", *more]
            asked = host.spawn(words, env=environment() | {"SOJOURN_STORE_PASSWORD": password})
            assert (asked.wait(180) == 0) == (status == 0), asked.complaint()
            found = agreeing("store measure", json.loads(asked.output()))
            return found, asked.errors().decode()

        _, said = measure(status=2)
        assert "no store answers at 127.0.0.1" in said
        with Cluster([Node(host, member)], settings) as cluster:
            cluster.start()
            keyspaces(host)  # the first user is made a moment later
            _, said = measure(*user, password="wrong", status=2)
            assert "no store answers" in said
            assert "wrong" not in said
            _, said = measure(*user, status=2)
            assert "--user needs a password" in said
            other = ["--tls", str(tmp_path / "stranger.pem")]
            _, said = measure(*user, *other, password="cassandra", status=2)
            assert "no store answers" in said
            plain, _ = measure(*user, "--rate", "50", password="cassandra")
            secret, said = measure(*user, *tls, "--password-file", str(tmp_path / "password"))
            assert "creates the keyspace sojourn_" in said
            assert "sojourn" not in keyspaces(host)
    for found in (plain, secret):
        metrics = found["metrics"]
        assert metrics["store.acknowledged"] == metrics["store.requests"] == 100
        assert found["store"]["checked"][0]["lost"] == 0
    # 50 a second at most.
    assert plain["metrics"]["store.elapsed"] > 1.9


def keyspaces(host: Host) -> str:
    """Returns the existing keyspaces, once the store accepts its first user."""
    deadline = time.monotonic() + 120
    while True:
        listed = host.spawn([sys.executable, "-c", KEYSPACES])
        if listed.wait(60) == 0:
            return listed.output().decode()
        assert time.monotonic() < deadline, listed.complaint()
