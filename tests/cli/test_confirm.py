"""`compare --confirm`: the two best choices on Linux in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.lab import downloads
from sojourn.linux import kernels
from tests.cli.test_commands import sojourn

LINE = """
duration = "4s"
warmup = "2s"

[links.line]
from = "home"
to = "server"
rate = "10mbit"
netem = "delay 10ms"
queue = "pfifo limit 200p"

[[flows]]
from = "home"
to = "server"
app = "bulk"
tcp = "cubic"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "line.toml"
    path.write_text(LINE, encoding="utf-8")
    return path


def compared(file: Path, *more: str) -> list[str | Path]:
    queues = ["--queues", "pfifo limit 200p", "codel"]
    return ["compare", file, *queues, "--seeds", "2", "--by", "sojourn_p95", "--confirm", *more]


def test_linux_confirms_the_order_of_two_queues(kernel: kernels.Kernel, file: Path) -> None:
    found = sojourn(*compared(file, "--subject-to", "", "--json")).json()
    said = found["confirmation"]
    assert said.startswith(f"Confirmed on Linux {kernel.release} ")
    assert "codel is better" in said
    varied = ["--vary", "flows.bulk.count=1,2", "--queues", "codel"]
    found = sojourn(*compared(file)[:2], *varied, *compared(file)[5:], "--subject-to", "")
    assert "on Linux" in found.out


def test_without_a_kernel_it_says_how_to_get_one(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "cache", lambda: tmp_path)
    monkeypatch.setattr(kernels, "PACKAGE", "no_such_package")
    found = sojourn(*compared(file, "--subject-to", ""))
    assert "Not confirmed" in found.out
    assert "sojourn linux build" in found.out
    refused = sojourn(*compared(file, "--engine", "linux"))
    assert refused.status == 2
