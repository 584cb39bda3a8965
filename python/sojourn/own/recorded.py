"""A user's own queue with the parameters of recorded scenarios."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sojourn import _core
from sojourn.own.errors import OwnError
from sojourn.own.text import own, queue_params


class Recorded:
    """A policy for the replay of recordings, each of which sets its parameters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.own = own("queue", text)
        self.sources = self.own.sources_json

    def maker(self) -> Callable[[str, int], tuple[str, str]]:
        """Returns a function from `tc`'s words to parameters; others keep their values."""
        values: dict[str, Any] = dict(self.own.values)

        def make(words: str, mtu: int) -> tuple[str, str]:
            name = self.text.split()[0]
            try:
                given = _core.parse_own(name, self.own.declaration.words_json, f"{name} {words}")
            except _core.WordError as error:
                raise OwnError(f"the recording is of `{words}`: {error}") from None
            values.update(json.loads(given))
            found = replace(self.own, values=dict(values))
            return json.dumps(queue_params(found, mtu)), self.sources

        return make
