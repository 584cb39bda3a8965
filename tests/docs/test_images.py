"""Pictures that take long to draw have the words of their present code."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from PIL import Image

from sojourn.show.coexistence import THEMES, title
from tests.docs.test_docs import DOCS


@pytest.mark.parametrize("theme", THEMES)
def test_the_matrix_of_coexistence_has_the_words_of_its_code(theme: str) -> None:
    with Image.open(DOCS / "images" / "studies" / f"coexistence-{theme}.png") as picture:
        words = picture.info["Description"]
    figure = Figure(figsize=(12.17, 8.33))
    title(figure, 10, "cubic", THEMES[theme])
    assert max(text.get_window_extent().x1 for text in figure.texts) < figure.bbox.x1
    assert words.splitlines() == [text.get_text() for text in figure.texts]
