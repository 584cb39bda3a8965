"""Directives for the recorded findings of published studies and their verdicts.

`{verdicts} NAME`   a table of all findings, from the study's record, which
                    `docs/studies/record.py` writes from a study's results
`{answer} NAME`     the answer to the study's question, which follows from the same record
`{how-near} NAME`   a table of how near the study's numbers are to the paper's, by quantity
`{recorded-tables} NAME`  tables of the same results: each line of the content is `TITLE`, or
                    `TITLE: CAPTION`
`{recorded} NAME`   figures of the same results: each line of the content is `FIGURE: CAPTION`;
                    a figure that does not exist is omitted
`{standings}`       the number of findings of each study by verdict
"""

from html import escape
from pathlib import Path

import imagesize
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from words import inline, link_first, table

from sojourn.papers import NAMES as STUDIES
from sojourn.papers.records import (
    COLUMNS,
    GROUPS,
    Claim,
    Record,
    answer,
    commands,
    grouped,
    judged,
    path,
    record,
    ruling,
)  # fmt: skip
from sojourn.papers.rule import RULINGS
from sojourn.papers.side_by_side import WallClock
from sojourn.show.terminal import counted
from sojourn.stats import NOT_SUPPORTED, SUPPORTED

FOLDER = "studies"


def columns(claims: list[Claim]) -> tuple[tuple[str, ...], list[tuple[str, ...]], tuple[int, ...]]:
    """Returns heads, rows and column widths; engines without a recorded verdict have no column."""
    there = {k: head for k, head in COLUMNS.items() if any(k in claim for claim in claims)}
    rows = [
        (
            claim["finding"],
            *(ruling(claim) if k == "verdict" else claim.get(k, "not judged") for k in there),
            {NOT_SUPPORTED: "no", SUPPORTED: "yes"}.get(claim.get("own_table", ""), "no numbers"),
        )
        for claim in claims
    ]
    heads = ("finding", *there.values(), "supported by the paper's numbers")
    return heads, rows, (52, *(16 for _ in there), 14)


def below(claim: Claim) -> list[nodes.Node]:
    """Returns what unfolds below a finding: the paper's words, readings, and all comparisons."""
    said = [("The paper", claim["paper"]), ("Here", claim["here"])]
    texts = [f"{name}: {text}." for name, text in said if text]
    texts += [*claim.get("labels", ()), *claim.get("asides", ())]
    listed = [one.split("\t") for one in claim.get("comparisons", ())]
    heads = ("quantity", "measured, with interval", "predicted", "interval is")
    return [
        *(nodes.paragraph("", "", *inline(text)) for text in texts),
        *([table(heads, listed, (40, 30, 18, 12))] if listed else []),
    ]


def marked(built: nodes.table, claims: list[Claim]) -> nodes.table:
    """Returns the table with labels for verdicts, and details that unfold below a finding."""
    body = next(built.findall(nodes.tbody))
    for row, claim in zip(list(body.findall(nodes.row)), claims, strict=True):
        first, *others = list(row.findall(nodes.entry))
        for cell in others:
            if (word := cell.astext()) in RULINGS:
                classes = ["verdict", f"verdict-{nodes.make_id(word)}"]
                cell[0].children = [nodes.inline("", word, classes=classes)]
        begin = f"<details><summary>{escape(claim['finding'])}</summary>"
        first.clear()
        first += nodes.raw("", begin, format="html")
        first += below(claim)
        first += nodes.raw("", "</details>", format="html")
    return built


class Recorded(SphinxDirective):
    """A directive whose content comes from recorded verdicts."""

    def recorded(self, name: str) -> Record | None:
        self.env.note_dependency(str(path(name)))
        return record(name)


class Verdicts(Recorded):
    required_arguments = 1
    has_content = True  # text of a page without a record

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        found = self.recorded(name)
        if found is None and self.content:
            return self.parse_content_to_nodes()
        if found is None:
            text = f"No verdicts are recorded here. `sojourn paper {name} --quick` gives them."
            return [nodes.paragraph("", "", *inline(text))]
        claims = found["claims"]
        open_ = " The runs are exploratory: their seeds do not follow from the claims."
        made = "" if judged(found) else open_
        each = [f"{COLUMNS[key]} `{command}`" for key, command in commands(name).items()]
        summary = (
            f"{counted([ruling(claim) for claim in claims])} {found['how']}{made} The commands of "
            f"the columns: {', '.join(each)}."
        )
        built = [nodes.paragraph("", "", *inline(summary)), marked(table(*columns(claims)), claims)]
        if "wall_clock" in found:
            text = f"The verdicts on real runs rest on the {WallClock(**found['wall_clock'])}."
            built.append(nodes.paragraph("", "", *inline(text)))
        withdrawn = [
            (gone["text"], gone["verdict"], gone["date"], gone["reason"])
            for gone in found.get("withdrawn", ())
        ]
        if withdrawn:
            heads = ("withdrawn claim", "last verdict", "withdrawn on", "because")
            built.append(table(heads, withdrawn, (36, 14, 14, 36)))
        return built


class HowNear(Recorded):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        found = self.recorded(self.arguments[0])
        rows = found.get("near", []) if found else []
        if not rows:
            return []
        heads = tuple(str(head) for head in rows[0])
        built = table(heads, [tuple(map(str, row.values())) for row in rows], (50, 12, 18, 20))
        text = (
            "Our numbers divided by the paper's: their median, and the share within a quarter (0.8 "
            "to 1.25)"
        )
        return [nodes.paragraph("", "", *inline(f"{text}.")), built]


class Answer(Recorded):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        found = self.recorded(self.arguments[0])
        return [nodes.paragraph("", "", nodes.strong("", answer(found)))] if found else []


class Tables(Recorded):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        found = self.recorded(self.arguments[0])
        kept = {one["title"]: one["rows"] for one in found.get("tables", ())} if found else {}
        built: list[nodes.Node] = []
        for line in self.content:
            title, _, caption = line.partition(": ")
            if kept and title not in kept:
                raise self.error(f"no table {title!r}; there are {', '.join(kept)}")
            if title in kept:
                heads, *rows = [row.split("\t") for row in kept[title]]
                built.append(nodes.paragraph("", "", *inline(f"{caption or title}:")))
                built.append(table(heads, rows, [1] * len(heads)))
        return built


class Figures(Recorded):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        figures = []
        for line in self.content:
            figure, separator, caption = line.partition(": ")
            if not separator:
                raise self.error(f"expected FIGURE: CAPTION, found {line!r}")
            uri = f"/images/studies/{self.arguments[0]}-{figure}.png"
            drawn = Path(self.env.srcdir) / uri.lstrip("/")
            if not drawn.exists():
                continue
            # The image has twice the resolution at which it is shown.
            width = f"{imagesize.get(drawn)[0] // 2}px"
            image = nodes.image(uri=uri, alt=caption.replace("`", ""), width=width)
            figures.append(nodes.figure("", image, nodes.caption("", "", *inline(caption))))
        return figures


class Standings(Recorded):
    def run(self) -> list[nodes.Node]:
        rows = []
        for name in STUDIES:
            found = self.recorded(name)
            numbers = [str(n) for n in grouped(found["claims"]).values()] if found else ["–"] * 5
            rows.append((f"`{name}`", *numbers, found["how"] if found else "not recorded here"))
        heads = ("study", *GROUPS, "from")
        built = table(heads, rows, (12, 8, 10, 12, 10, 10, 38))
        link_first(built, {name: f"{FOLDER}/{name}" for name in STUDIES}, self.env.docname)
        return [built]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("verdicts", Verdicts)
    app.add_directive("answer", Answer)
    app.add_directive("how-near", HowNear)
    app.add_directive("recorded-tables", Tables)
    app.add_directive("recorded", Figures)
    app.add_directive("standings", Standings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
