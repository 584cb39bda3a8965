"""The notebooks, executed from their first cell to their last.

    python -m tests.docs.notebooks      stores what they show anew; look at the difference

They are stored with what they show, so that a reader needs to run nothing; what changes from call
to call (counts, times) is left out.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
SECONDS = 240


def notebooks() -> list[Path]:
    """All of them."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook, checked against the format's schema."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def execute(path: Path, folder: Path) -> Any:
    """Returns the notebook with the present results of its cells; raises a cell's exception."""
    from nbclient import NotebookClient

    notebook = read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the kernel's own libraries
        NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=SECONDS,
            startup_timeout=SECONDS,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if "execution_count" in output:
                    output["execution_count"] = None
    return notebook


def kinds(notebook: Any) -> list[list[str]]:
    """Returns the kinds of each code cell's outputs: sorted MIME types or streams."""
    return [
        sorted(
            {kind for output in cell.outputs for kind in output.get("data", [output.get("name")])}
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main() -> None:
    """Stores them all anew."""
    import nbformat

    for path in notebooks():
        with tempfile.TemporaryDirectory() as folder:
            done = execute(path, Path(folder))
        done.metadata = read(path).metadata
        text = nbformat.writes(done, indent=1)  # type: ignore[no-untyped-call]
        path.write_text(text.rstrip() + "\n", encoding="utf-8")
        print(f"executed {path.name}")


if __name__ == "__main__":
    main()
