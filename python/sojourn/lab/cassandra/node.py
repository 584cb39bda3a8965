"""A node of a real store: its configuration, and the program that starts it.

The program writes Cassandra's configuration into its working directory, which is in memory and
private to the sandbox. Then it executes Java.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sojourn.lab.cassandra.java import module_options

HEAP_START, HEAP_MOST = "64m", "256m"
"""Initial and maximum size of Java's heap."""
NATIVE_PORT = 9042
"""TCP port for clients."""
CLUSTER = "sojourn"
"""Name of the cluster in Cassandra's configuration."""

LOGBACK = """\
<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="STDOUT"/></root>
  <logger name="org.apache.cassandra.service" level="INFO"/>
  <logger name="org.apache.cassandra.gms" level="INFO"/>
</configuration>
"""
"""Configuration of Cassandra's log, which goes to the standard output."""


@dataclass(frozen=True)
class Settings:
    """Settings that all nodes of a store share."""

    seeds: Sequence[str]
    """Addresses at which a node looks for the cluster: those of all nodes, so that nodes can start
    in any order.
    """
    write_ms: int
    """Timeout of writes at the coordinator, in milliseconds."""
    read_ms: int
    """Timeout of reads and scans at the coordinator, in milliseconds."""
    hints: bool = False
    """Whether a coordinator stores writes for nodes that are down (hinted handoff)."""
    commit_log: Literal["periodic", "batch"] = "periodic"
    """When the commit log is flushed to disk: every ten seconds (`periodic`), or before writes are
    acknowledged (`batch`).
    """
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of `cassandra.yaml`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further system properties of Java, by name."""


@dataclass(frozen=True)
class Member:
    """Settings of one node."""

    name: str
    address: str
    """IPv4 address."""
    tokens: Sequence[int]
    """The node's positions on the ring."""
    data_centre: str
    rack: str


def configuration(member: Member, settings: Settings, home: Path) -> str:
    """Returns the `cassandra.yaml` of a node with files in `home`, as JSON, which is valid YAML."""
    given = {
        "cluster_name": CLUSTER,
        "num_tokens": len(member.tokens),
        "initial_token": ",".join(str(token) for token in member.tokens),
        "auto_bootstrap": False,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "GossipingPropertyFileSnitch",
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": ",".join(settings.seeds)}],
            }
        ],
        "listen_address": member.address,
        "rpc_address": member.address,
        "native_transport_port": NATIVE_PORT,
        "storage_port": 7000,
        "start_native_transport": True,
        "data_file_directories": [str(home / "data")],
        "commitlog_directory": str(home / "commitlog"),
        "saved_caches_directory": str(home / "caches"),
        "hints_directory": str(home / "hints"),
        "cdc_raw_directory": str(home / "cdc"),
        "hinted_handoff_enabled": settings.hints,
        "commitlog_sync": settings.commit_log,
        **({"commitlog_sync_period": "10000ms"} if settings.commit_log == "periodic" else {}),
        "commitlog_segment_size": "8MiB",
        "memtable_heap_space": "32MiB",
        "memtable_offheap_space": "32MiB",
        "key_cache_size": "4MiB",
        "file_cache_size": "32MiB",
        "networking_cache_size": "16MiB",
        "concurrent_reads": 8,
        "concurrent_writes": 8,
        "disk_access_mode": "standard",
        "write_request_timeout": f"{settings.write_ms}ms",
        "read_request_timeout": f"{settings.read_ms}ms",
        "range_request_timeout": f"{settings.read_ms}ms",
        "request_timeout": f"{max(settings.read_ms, settings.write_ms)}ms",
        "internode_tcp_connect_timeout": "10000ms",
        "auto_snapshot": False,
        **settings.more,
    }
    return json.dumps(given, indent=1)


def write_files(member: Member, settings: Settings, home: Path) -> None:
    """Writes the configuration files of a node into the folder `home`."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "cassandra.yaml").write_text(configuration(member, settings, home), "utf-8")
    (home / "cassandra-rackdc.properties").write_text(
        f"dc={member.data_centre}\nrack={member.rack}\n", "utf-8"
    )
    (home / "logback.xml").write_text(LOGBACK, "utf-8")


def command(java: str, class_path: str, home: Path, settings: Settings) -> list[str]:
    """Returns the command line of a node, with a small heap and short waits at the start."""
    options = {
        "cassandra.config": f"file://{home}/cassandra.yaml",
        "cassandra-rackdc.properties": f"file://{home}/cassandra-rackdc.properties",
        "cassandra.storagedir": str(home),
        "cassandra.logdir": str(home),
        "logback.configurationFile": f"file://{home}/logback.xml",
        "cassandra-foreground": "yes",
        # The tokens are configured, so a node need not wait for gossip.
        "cassandra.skip_wait_for_gossip_to_settle": "0",
        "cassandra.ring_delay_ms": "5000",
        # Otherwise Cassandra measures the overhead of a row at the start, which takes seconds.
        "cassandra.memtable.row_overhead_size": "180",
        # The check of acknowledged writes uses these queries to read each replica separately.
        "cassandra.enable_nodelocal_queries": "true",
        "java.io.tmpdir": str(home),
        "jdk.attach.allowAttachSelf": "true",
        "file.encoding": "UTF-8",
        **settings.properties,
    }
    # Cassandra locks all its memory if it has the capability IPC_LOCK.
    unpinned = ["setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock", "--"]
    return [
        *(unpinned if shutil.which("setpriv") else []),
        java,
        f"-Xms{HEAP_START}",
        f"-Xmx{HEAP_MOST}",
        "-Xss256k",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        *module_options(),
        *(f"-D{key}={value}" for key, value in options.items()),
        "-cp",
        f"{home}:{class_path}",
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def given(member: Member, settings: Settings, java: str, class_path: str) -> str:
    """Returns the input of the program as JSON."""
    return json.dumps(
        {
            "member": asdict(member),
            "settings": asdict(settings),
            "java": java,
            "class_path": class_path,
        }
    )


def main(argv: Sequence[str]) -> int:
    """Writes the files of a node and executes Java; `argv` is the input's descriptor."""
    with os.fdopen(int(argv[0]), "r") as file:
        settings_of = json.load(file)
    home = Path.cwd()
    member, settings = Member(**settings_of["member"]), Settings(**settings_of["settings"])
    write_files(member, settings, home)
    words = command(settings_of["java"], settings_of["class_path"], home, settings)
    os.execvp(words[0], words)  # noqa: S606 - must replace this process without a shell


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
