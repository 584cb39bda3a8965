"""The rooms of the house and who imports whom, read from the code; and their picture.

python -m tests.docs.house      draws docs/images/architecture.svg anew
"""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

_ROW = re.compile(r"^\| (\d+) \| `([\w/]+)` \|", re.MULTILINE)


def floors() -> dict[str, int]:
    """The floor of each room, as the page's table says."""
    return {room: int(floor) for floor, room in _ROW.findall(PAGE.read_text(encoding="utf-8"))}


def rooms() -> dict[str, set[str]]:
    """Each room with the rooms that it imports, other than for annotations and tests."""
    found: dict[str, set[str]] = {}
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        text = tomllib.loads(manifest.read_text(encoding="utf-8"))
        tables = [text, *text.get("target", {}).values()]
        wanted = [name for table in tables for name in table.get("dependencies", ())]
        ours = {name.removeprefix("sojourn-") for name in wanted if name.startswith("sojourn-")}
        ours.discard("data")  # a part of `units`
        found[f"crates/{manifest.parent.name}"] = {f"crates/{name}" for name in ours}
    package = ROOT / "python" / "sojourn"
    for init in sorted(package.glob("*/__init__.py")):
        room = init.parent.name
        names = {name for file in init.parent.rglob("*.py") for name in imported(file)}
        found[f"python/sojourn/{room}"] = {
            "crates/py" if name == "_core" else f"python/sojourn/{name}"
            for name in names
            if name != room and (name == "_core" or (package / name).is_dir())
        }
    return found


def clock(room: str) -> bool:
    """Whether a crate may look at clocks and files: the pure ones have the whole tree's bans."""
    return (ROOT / room / "clippy.toml").exists()


def imported(file: Path) -> set[str]:
    """Returns the names after `sojourn.` in a file's imports, without those for annotations."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "sojourn":
            names |= {HOME.get(alias.name, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sojourn."):
            names.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("sojourn.")}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            late = re.match(r"f?'sojourn\.(\w+)", ast.unparse(node.args[0]))
            names |= {late[1]} if late else set()
    return names


# Names that the package itself offers, and the packages that define them.
HOME = {"Run": "scenario", "Scenario": "scenario", "ScenarioError": "scenario", "Study": "study"}


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The edges without those that follow from others."""

    def below(room: str) -> set[str]:
        return {deep for inner in edges[room] for deep in ({inner} | below(inner))}

    return {
        room: {inner for inner in ones if not any(inner in below(o) for o in ones)}
        for room, ones in edges.items()
    }


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" \
font-size="14">
<title>The packages, and which package imports which</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0 8 4 0 8z" fill="#666"/></marker></defs>
<rect width="{width}" height="{height}" fill="#fff"/>"""


def drawing() -> str:
    """The picture: a row a floor, arrows from who imports to what is imported."""
    level, edges = floors(), reduced(rooms())
    rows = [sorted(r for r in edges if level[r] == f) for f in sorted(set(level.values()))]
    wide, high, gap, step, left = 112, 34, 20, 78, 46
    width = left + max(len(row) for row in rows) * (wide + gap) + gap
    at: dict[str, float] = {}

    def place(row: list[str]) -> None:
        space = (width - left) / len(row)
        for number, room in enumerate(row):
            at[room] = left + space * (number + 0.5)

    for row in rows:
        place(row)
    joined = {
        room: sorted({*ones, *(other for other in edges if room in edges[other])})
        for room, ones in edges.items()
    }
    for _ in range(8):  # each room near those that it is joined to
        for row in (*rows, *reversed(rows)):
            wanted = {room: fmean([at[r] for r in joined[room]] or [at[room]]) for room in row}
            row.sort(key=lambda room: (round(wanted[room], 6), room))
            place(row)
    height = len(rows) * step + 10
    floor_at = {room: number for number, row in enumerate(rows) for room in row}
    top = {room: height - (number + 1) * step + 20 for room, number in floor_at.items()}

    lines = [HEAD.format(width=width, height=height)]
    for number, row in enumerate(rows):
        y = height - (number + 1) * step + 20
        if number % 2:
            lines.append(f'<rect y="{y - 22}" width="{width}" height="{step}" fill="#f4f4f4"/>')
        lines.append(f'<text x="14" y="{y + 22}" fill="#777">{level[row[0]]}</text>')
    for room in sorted(edges):
        for inner in sorted(edges[room]):
            x, y = at[room], top[room] + high
            to, end = at[inner], top[inner] - 2
            bend = (end - y) / 2
            lines.append(
                f'<path d="M{x:.0f} {y} C{x:.0f} {y + bend:.0f} {to:.0f} {end - bend:.0f}'
                f' {to:.0f} {end}" fill="none" stroke="#888" marker-end="url(#tip)"/>'
            )
    for room in sorted(edges):
        kind = "#fdebd0" if room.startswith("python/") else "#fff" if clock(room) else "#dbe9f6"
        x = at[room] - wide / 2
        lines.append(
            f'<rect x="{x:.0f}" y="{top[room]}" width="{wide}" height="{high}" rx="5"'
            f' fill="{kind}" stroke="#555"/>'
        )
        name = escape(room.removeprefix("crates/").removeprefix("python/sojourn/"))
        lines.append(
            f'<text x="{at[room]:.0f}" y="{top[room] + 22}" text-anchor="middle">{name}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(f"written to {PICTURE.relative_to(ROOT)}")
