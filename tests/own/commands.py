"""Commands as users type them."""

from __future__ import annotations

from typer.testing import CliRunner

from sojourn.cli.app import app


def invoke(*arguments: str, status: int = 0) -> str:
    """The output of a command."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == status, result.output
    return str(result.stdout)
