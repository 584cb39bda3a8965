"""Tries an installed wheel, from an environment that has nothing but it: `.ci/wheel` runs this.

python -I installed.py FILES EXAMPLES base|kernel|report

FILES lists the package's files in the repository; EXAMPLES is its folder of examples. `base` tries
what needs no extra, `kernel` what needs the wheel with a kernel, and `report` what needs the extra
of that name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HOME = """
name = "wheel"
duration = "4s"
warmup = "1s"

[links.uplink]
from = "home"
to = "isp"
rate = "20mbit"
netem = "delay 15ms"
queue = "codel"

[[flows]]
from = "home"
to = "isp"
app = "bulk"
count = 2

[[flows]]
from = "home"
to = "isp"
app = "voip"
"""
MINE = """
import sojourn


@sojourn.queue("mine", limit="300p", target="5ms")
class Mine:
    def __init__(self, params, draws):
        self.target, self.draws = params.target, draws

    def enqueue(self, now, packet, queue):
        oldest = queue.head()
        late = oldest and now - oldest.at > self.target
        return sojourn.DROP if late and self.draws.uniform() < 0.1 else sojourn.ACCEPT

    def dequeue(self, now, queue):
        return queue.pop()
"""
SCRIPT = Path(sys.executable).with_name("sojourn")


def sojourn(*arguments: str) -> str:
    """The output of the command."""
    done = subprocess.run(
        [str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise SystemExit(f"sojourn {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def own_policies(examples: Path) -> None:
    """Check an example of each family, and run those of a scenario in one run."""
    places = [
        f"{path.name}:{name}"
        for path in sorted((examples / "policies").glob("*.py"))
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    for place in places:
        shutil.copy(examples / "policies" / place.partition(":")[0], ".")
        assert "keeps its contract" in sojourn("check", place, "--schedules", "20")
    Path("servers.toml").write_bytes((examples / "servers.toml").read_bytes())
    words = ["--policies", "jsq", "balancer.py:Peak", "--seeds", "2", "--json"]
    short = ["--set", "duration=2s", "--set", "warmup=1s"]
    assert len(json.loads(sojourn("compare", "servers.toml", *words, *short))["choices"]) == 2
    mixed = HOME.replace('"codel"', '"codel.py:Codel"').replace('"voip"', '"source.py:Video"')
    mixed = mixed.replace('app = "bulk"', 'app = "bulk"\ntcp = "aimd.py:Aimd"')
    Path("mixed.toml").write_text(mixed, encoding="utf-8")
    assert json.loads(sojourn("run", "mixed.toml", "--json"))["metrics"]["goodput"] > 1e6
    transfer(Path("message"), bytes(range(256)) * 4000)


def transfer(message: Path, data: bytes) -> None:
    """Send a file through real sockets with a control and a buffer policy of one's own."""
    message.write_bytes(data)
    received = Path("received")
    received.mkdir()
    words = ["--dir", str(received), "--bind", "127.0.0.1:0", "--files", "1", "--json"]
    serve = [str(SCRIPT), "udp", "serve", *words, "--buffer", "buffer.py:Doubling"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["listening"]
        sojourn("udp", "send", str(message), address, "--congestion", "aimd.py:Aimd")
        server.communicate(timeout=60)
    assert server.returncode == 0
    assert (received / message.name).read_bytes() == data


def base(listed: list[str], examples: Path) -> None:
    """Try functions without extras, and the error of a command that needs one."""
    import sojourn as package

    here = Path(package.__file__).parent
    assert here.is_relative_to(sys.prefix), here
    missing = [n for n in listed if not (here.parent / Path(n).relative_to("python")).exists()]
    assert not missing, f"not in the wheel: {missing}"
    assert len(listed) > 200

    assert "compare" in sojourn("--help")
    assert "fq_codel" in sojourn("list")
    words = ["--queues", "codel", "pfifo limit 300p", "--seeds", "2", "--json"]
    told = json.loads(sojourn("compare", "home.toml", *words))
    assert len(told["queues"]) == 2
    assert "tc qdisc replace" in sojourn("tc", "home.toml", "--machine", "home")
    # A policy of one's own needs no compiler.
    Path("mine.py").write_text(MINE, encoding="utf-8")
    assert "keeps its contract" in sojourn("check", "mine.py:Mine", "--schedules", "50")
    words = ["--queues", "codel", "mine.py:Mine", "--seeds", "2", "--json"]
    ranked = {q["queue"] for q in json.loads(sojourn("compare", "home.toml", *words))["queues"]}
    assert ranked == {"codel", "mine.py:Mine"}
    own_policies(examples)
    # Files of the package: the page of `play` with its engine, the unit, pinned sums.
    from sojourn.lab.cassandra import artefacts
    from sojourn.play import catalogue, files

    assert len(files.page(catalogue.catalogue())["module.js"]) > 500_000
    assert "ExecStart=" in sojourn("rcvbuf", "unit")
    assert len(artefacts.pinned()) > 50
    words = [str(SCRIPT), "run", "home.toml", "--out", "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert "pip install 'sojourn[analysis]'" in done.stderr


def kernel() -> None:
    """Confirm a comparison on the kernel of the other wheel, without a compiler."""
    words = ["--queues", "codel", "pfifo limit 300p", "--seeds", "2", "--by", "sojourn_mean"]
    assert "\nConfirmed on Linux " in sojourn("compare", "home.toml", *words, "--confirm")


def report() -> None:
    """Try what the extra of that name brings: results on disk, pages, suites."""
    words = ["--queues", "codel", "pfifo limit 300p", "--seeds", "2", "--out", "out", "--json"]
    sojourn("compare", "home.toml", *words)
    pages = json.loads(sojourn("report", "out", "--json"))["written"]
    assert any(name.endswith(".html") and Path(name).stat().st_size > 100_000 for name in pages)
    from sojourn.suites import NAMES, load

    for name in NAMES:
        suite = load(name)
        assert all(suite.text(entry) for entry in suite.entries)


def main() -> None:
    listed = Path(sys.argv[1]).read_text(encoding="utf-8").split()
    Path("home.toml").write_text(HOME, encoding="utf-8")
    if sys.argv[3] == "base":
        base(listed, Path(sys.argv[2]))
    elif sys.argv[3] == "kernel":
        kernel()
    else:
        report()
    print(f"the wheel works, {sys.argv[3]}: {len(listed)} files, {sojourn('--version').strip()}")


if __name__ == "__main__":
    main()
