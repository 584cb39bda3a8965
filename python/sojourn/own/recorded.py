"""A user's own queue discipline in replays of recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from sojourn import _core
from sojourn.data import Object
from sojourn.own.errors import OwnError
from sojourn.own.text import own, queue_params


class Recorded:
    """A user's own queue discipline, whose parameters each recording sets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.own = own("queue", text)
        self.sources = self.own.sources_json

    def maker(self) -> Callable[[str, int], tuple[str, str]]:
        """Returns a function that converts words of `tc` into a plan's queue and its source code.

        Parameters that the words do not contain have the values of the previous call.
        """
        values: Object = dict(self.own.values)

        def make(words: str, mtu: int) -> tuple[str, str]:
            name = self.text.split()[0]
            try:
                given = _core.parse_own(name, self.own.declaration.words_json, f"{name} {words}")
            except _core.WordError as error:
                raise OwnError(f"the recording has the parameters `{words}`: {error}") from None
            values.update(json.loads(given))
            found = replace(self.own, values=dict(values))
            return json.dumps(queue_params(found, mtu)), self.sources

        return make
