"""The page on lines has the table of the recorded calibration."""

from pathlib import Path

from bench.line.run import record, table

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/line.md"


def test_the_page_has_the_table_of_the_record() -> None:
    assert table(record()) in PAGE.read_text(encoding="utf-8")
