"""Writes LICENSES-RUST.txt: the licences of all crates that are compiled into a wheel.

The texts are those of the crates' own files, each once. `make wheel` runs this before it packs.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("sojourn-py", "sojourn-guest", "sojourn-wasm")
"""Crates whose binaries a wheel contains."""
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
HEAD = """\
Sojourn's engine contains the crates below, and Rust's standard library (Apache-2.0 OR MIT).
sojourn/linux/init also contains the GNU C Library (LGPL-2.1-or-later): `make` in Sojourn's sources
links it with another version of that library.
"""


def output(*command: str) -> str:
    """Runs a program and returns its output."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates() -> list[dict[str, str]]:
    """Returns the crates of others that are linked into a wheel, by name and version."""
    host = re.search(r"^host: (.*)$", output("rustc", "-vV"), re.MULTILINE)
    assert host is not None
    words = ("metadata", "--format-version", "1", "--locked", "--filter-platform", host[1])
    found = json.loads(output("cargo", *words))
    packages = {package["id"]: package for package in found["packages"]}
    edges = {node["id"]: node["deps"] for node in found["resolve"]["nodes"]}
    pending = [key for key, package in packages.items() if package["name"] in PARTS]
    seen: set[str] = set()
    while pending:
        if (key := pending.pop()) not in seen:
            seen.add(key)
            kinds = (
                (one["pkg"], [kind["kind"] for kind in one["dep_kinds"]]) for one in edges[key]
            )
            pending += [crate for crate, found_kinds in kinds if None in found_kinds]
    others = (packages[key] for key in seen if packages[key]["source"])
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def text() -> str:
    """Returns the licences with the names of their crates; fails if a crate has no text."""
    of: defaultdict[str, list[str]] = defaultdict(list)
    for crate in crates():
        folder = Path(crate["manifest_path"]).parent
        files = sorted(path for path in folder.iterdir() if path.name.upper().startswith(NAMES))
        files = [path for path in files if path.is_file()]
        if not files:
            raise SystemExit(f"{crate['name']} {crate['version']} has no text of its licence")
        for path in files:
            content = path.read_text("utf-8", "replace").replace("\r\n", "\n").strip()
            of[content].append(f"{crate['name']} {crate['version']} ({crate['license']})")
    line = "=" * 78
    parts = ("\n".join([line, *names, "", content, ""]) for content, names in of.items())
    return "\n".join([HEAD, *parts])


if __name__ == "__main__":
    (ROOT / "LICENSES-RUST.txt").write_text(text(), "utf-8")
