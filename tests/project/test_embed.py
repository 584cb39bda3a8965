"""`examples/embed`: stacks of others over the crate `sojourn-link`, built outside the workspace."""

from __future__ import annotations

import csv
import io
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Three programs are compiled.
pytestmark = pytest.mark.timeout(1200)

FOLDER = ROOT / "examples/embed"
SECONDS = 60


@pytest.fixture(scope="module")
def program() -> Path:
    """The built program."""
    cargo = shutil.which("cargo")
    assert cargo
    target = ROOT / "build/embed"
    command = [cargo, "build", "--quiet", "--release", "--locked", "--target-dir", str(target)]
    subprocess.run(command, cwd=FOLDER, check=True, stdin=subprocess.DEVNULL)
    return target / "release/embed"


def run(program: Path, seconds: int) -> tuple[list[dict[str, str]], str]:
    """Returns the rows of the table, and the program's remarks."""
    done = subprocess.run(
        [program, str(seconds)],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return list(csv.DictReader(io.StringIO(done.stdout))), done.stderr


def test_the_glue_of_each_stack_has_at_most_fifty_lines() -> None:
    for name in ("quic.rs", "tcp.rs"):
        lines = (FOLDER / "src" / name).read_text(encoding="utf-8").splitlines()
        code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
        assert len(code) <= 50, name


def test_the_vendored_file_is_short_and_has_no_dependency() -> None:
    text = (ROOT / "examples/vendor/codel_link.rs").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    uses = [line for line in text.splitlines() if line.startswith("use ")]
    assert uses == ["use std::collections::VecDeque;"]


@pytest.mark.slow
def test_transports_run_over_links_a_hundred_times_faster_than_real_time(program: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows, remarks = run(program, SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    queues = {row["queue"] for row in rows}
    assert len(queues) == 3
    assert 2 * len(queues) * SECONDS / spent > 100, spent
    assert ", 0 marked" not in next(
        line for line in remarks.splitlines() if line.startswith("quinn behind fq_codel")
    )
    for stack in ("quinn", "smoltcp"):
        for queue in sorted(queues):
            goodput = [
                float(row["goodput"])
                for row in rows
                if (row["stack"], row["queue"]) == (stack, queue) and int(row["second"]) > 10
            ]
            # Both flows together fill the link of 10 Mbit/s, headers excluded.
            assert 8.5 < 2 * sum(goodput) / len(goodput) < 10, (stack, queue)


@pytest.mark.slow
def test_a_run_repeats_bit_for_bit_if_the_stack_does(program: Path) -> None:
    def smoltcp() -> list[dict[str, str]]:
        return [row for row in run(program, 20)[0] if row["stack"] == "smoltcp"]

    assert smoltcp() == smoltcp()


@pytest.mark.slow
def test_the_first_page_of_the_crate_runs_in_an_empty_project(tmp_path: Path) -> None:
    page = (ROOT / "crates/link/README.md").read_text(encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(page.split("```rust\n")[1].split("```")[0])
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "first"\nedition = "2024"\n\n[workspace]\n\n'
        f'[dependencies]\nsojourn-link = {{ path = "{ROOT / "crates/link"}" }}\n'
    )
    done = subprocess.run(
        ["cargo", "run", "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert done.stdout.startswith("sent 10000, arrived "), done.stdout
