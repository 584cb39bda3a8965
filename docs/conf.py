"""How the documentation is built: `make site`, or `sphinx-build -W docs docs/_build/site`."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Sojourn"
author = "The Sojourn authors"
copyright = author
try:
    release = metadata.version("sojourn")
except metadata.PackageNotFoundError:
    release = ""
version = release

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "api",
    "component",
    "live",
    "marks",
    "mathml",
    "peers",
    "terms",
    "verdicts",
    "words",
]

source_suffix = {".md": "markdown", ".ipynb": "myst-nb"}
exclude_patterns = ["_build"]
# Docstrings write `code` in single backquotes.
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
# Notebooks are stored with their outputs; the tests execute them.
nb_execution_mode = "off"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"

# Make quotation marks curly, but keep two hyphens, with which options begin.
smartquotes_action = "q"

html_theme = "furo"
html_title = "Sojourn"
html_static_path = ["_static"]
html_css_files = ["sojourn.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_logo = html_favicon = "../python/sojourn/play/static/icon.svg"
# The typeface of the live figures.
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "font-stack": 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
        "font-stack--monospace": 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", '
        "monospace",
    },
}
pygments_style = "tango"
pygments_dark_style = "github-dark"

# `make links` does not check the anchors of these pages, since scripts create them.
linkcheck_anchors_ignore_for_url = [r"https://github\.com/"]
linkcheck_timeout = 20


def add_search(app, page, *_):
    if page == "search":
        app.add_js_file("search.js", loading_method="defer")


def setup(app):
    # Pages are plain MyST; only notebooks go through myst-nb.
    from myst_parser.parsers.sphinx_ import MystParser

    app.add_source_parser(MystParser)
    app.connect("html-page-context", add_search)


# Several classes have an attribute `bytes`, so references to the type `bytes` are ambiguous.
suppress_warnings = ["ref.python"]
