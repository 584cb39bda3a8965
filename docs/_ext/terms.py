"""Terms of the glossary: each is an entry of the search and of the index.

A term is the first cell of a row in a table whose first head is `term`. A row may have several
terms, divided by commas: each leads to the row, whose target is `term-NAME` of its first term.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def mark(_app: Sphinx, document: nodes.document) -> None:
    """Adds targets and entries of the index to the rows of terms."""
    for table in document.findall(nodes.table):
        head = next(table.findall(nodes.thead), None)
        if head is None or next(head.findall(nodes.entry)).astext() != "term":
            continue
        for row in next(table.findall(nodes.tbody)).findall(nodes.row):
            cell = next(row.findall(nodes.entry))
            terms = [term.strip() for term in cell.astext().partition(" (")[0].split(",")]
            if short := cell.astext().partition(" (")[2].rstrip(")"):
                terms.append(short)
            target = f"term-{nodes.make_id(terms[0])}"
            row["ids"].append(target)
            entries = [("single", term, target, "main", None) for term in terms]
            cell.insert(0, addnodes.index(entries=entries))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects the pass over each page."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
