"""Links of built pages and of Markdown files: whether those inside lead somewhere.

Links to elsewhere are only read: a whole address, without spaces or marks of punctuation at its
end. Whether they answer is asked by `make links`, which needs a network.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        """Addresses that a browser loads with the page."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value)
            elif name in ("href", "src", "srcset", "data", "poster", "action"):
                if name in ("href", "src"):
                    self.links.append(value)
                if tag not in ("a", "area"):
                    self.loaded.append(value)
            elif name == "style":
                self.loaded += _loaded_by_css(value)


_CSS = re.compile(r"""@import\s+["']([^"']+)|url\(\s*(?:"([^"]*)"|'([^']*)'|([^)\s]+))\s*\)""")


def _loaded_by_css(text: str) -> list[str]:
    return ["".join(found) for found in _CSS.findall(text)]


def elsewhere(folder: Path) -> list[str]:
    """Returns the loads of a folder's pages and style sheets from outside, or by absolute paths.

    A folder with such loads does not open from a disk, or not at every address of a host.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".html":
            page = _Page()
            page.feed(path.read_text(encoding="utf-8"))
            loaded = page.loaded
        elif path.suffix == ".css":
            loaded = _loaded_by_css(path.read_text(encoding="utf-8"))
        else:
            continue
        found += [
            f"{path.relative_to(folder)}: {what[:80]}"
            for what in dict.fromkeys(loaded)
            if re.match(r"(?!data:)[a-z]+:|/", what)
        ]
    return found


def malformed(link: str) -> str | None:
    """Returns the fault of a link to another site; `None` for a good link."""
    if re.search(r"[\s<>\"{}|\\^`]", link):
        return "has characters that an address cannot have"
    parts = urlsplit(link)
    if parts.scheme == "mailto":
        return None if "@" in parts.path else "no address"
    if parts.scheme not in ("https", "http"):
        return f"what is {parts.scheme}?"
    host = parts.hostname or ""
    local = host in ("localhost", "127.0.0.1")
    if parts.scheme == "http" and not local:
        return "http, not https"
    if not local and not re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", host):
        return f"{host!r} is no host"
    if link[-1] in ".,;:!?'":
        return "ends with punctuation"
    return None


def of_pages(folder: Path) -> list[str]:
    """Returns the faults of the links of all pages of a folder."""
    pages: dict[Path, _Page] = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    wrong = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            if link.startswith(("data:", "javascript:")):
                continue
            where = f"{path.relative_to(folder)}: {link}"
            if re.match(r"[a-z]+:", link) or link.startswith("//"):
                if problem := malformed(link):
                    wrong.append(f"{where}: {problem}")
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name.partition("?")[0])).resolve() if name else path
            if not target.exists():
                wrong.append(f"{where}: no such file")
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                wrong.append(f"{where}: no such place on that page")
    return wrong


_MARKDOWN = re.compile(r"\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)|\bsrc(?:set)?=\"([^\"\s]+)\"")


def of_markdown(path: Path) -> list[str]:
    """Returns the faults of the links of a Markdown file; anchors are not followed."""
    wrong = []
    text = re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for link in dict.fromkeys("".join(found) for found in _MARKDOWN.findall(text)):
        if re.match(r"[a-z]+:", link):
            if problem := malformed(link):
                wrong.append(f"{path.name}: {link}: {problem}")
        elif (name := link.partition("#")[0]) and not (path.parent / unquote(name)).exists():
            wrong.append(f"{path.name}: {link}: no such file")
    return wrong
