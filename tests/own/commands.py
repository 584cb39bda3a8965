"""Commands as users type them."""

from __future__ import annotations

from typer.testing import CliRunner

from sojourn.cli.app import app


def invoke(*arguments: str, status: int = 0) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == status, result.output
    return str(result.stdout)
