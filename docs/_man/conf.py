"""How the manual page `sojourn(1)` is made, from the reference page of the commands: `make man`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "_ext"))

project = "Sojourn"
extensions = ["myst_parser", "words"]
include_patterns = ["commands.md"]
root_doc = "commands"
man_pages = [("commands", "sojourn", "a laboratory for queues", "The Sojourn authors", 1)]
# The page's links lead to pages that the manual does not contain.
suppress_warnings = ["myst.xref_missing"]
