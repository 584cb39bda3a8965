"""A page's files: what is written, what is generated, and that nothing is missing."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest

from sojourn import wasm
from sojourn.play import files
from sojourn.play.catalogue import Catalogue, catalogue
from sojourn.play.server import KINDS


def assigned(script: bytes) -> tuple[str, Any]:
    """The variable that a script sets, and its value."""
    match = re.fullmatch(r"globalThis\.(\w+) = (.*);\n", script.decode("ascii"))
    assert match is not None
    return match[1], json.loads(match[2])


def test_the_engine_is_the_one_that_is_installed(page: dict[str, bytes]) -> None:
    name, packed = assigned(page["module.js"])
    assert name == "SOJOURN_MODULE"
    module = gzip.decompress(base64.b64decode(packed))
    assert module.startswith(b"\0asm")
    assert module == wasm.module()
    assert page["engine.js"] == wasm.script()
    assert page == files.page(catalogue()), "made again they are the same"


def test_the_catalogue_is_a_script_of_letters_that_any_page_can_read(engine: None) -> None:
    told: Catalogue = {**catalogue(), "first": "</script>\u2028\U0001f600"}
    script = files.page(told)["catalogue.js"]
    assert assigned(script) == ("SOJOURN_CATALOGUE", json.loads(json.dumps(told)))
    assert script.isascii()


def test_the_page_loads_all_scripts_in_their_order(page: dict[str, bytes]) -> None:
    html = page[files.PAGE].decode()
    assert tuple(re.findall(r'<script src="([^"]*)"', html)) == files.SCRIPTS
    assert {*files.SCRIPTS, *files.FIGURES} == {name for name in page if name.endswith(".js")}
    assert set(re.findall(r'<link [^>]*href="([^"]*)"', html)) <= set(page)


def test_every_file_has_a_kind(page: dict[str, bytes]) -> None:
    assert {name.rpartition(".")[2] for name in page} <= set(KINDS)


def test_without_the_engine_the_error_states_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from sojourn.cli.app import app

    def missing() -> bytes:
        raise wasm.ModuleMissing

    monkeypatch.setattr(wasm, "module", missing)
    done = CliRunner().invoke(app, ["play", "--no-browser"])
    assert done.exit_code == 2
    assert "not installed: the engine" in done.output
    assert "make wasm" in done.output
