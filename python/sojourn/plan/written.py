"""Plans and their texts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sojourn.plan.frozen import Frozen

if TYPE_CHECKING:
    from typing import ClassVar, Self


class Written(Frozen):
    """Data that have a text in JSON: decoded when a field is first read, or encoded if new."""

    if TYPE_CHECKING:
        _text: ClassVar[str]  # a slot, but not a field
    else:
        _text: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Returns the data in a JSON text, which the engine has checked and which they keep."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_text", text)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Decodes the text when a field is first read."""
            from sojourn.plan import decoding

            if name not in type(self).__slots__:
                raise AttributeError(f"a {type(self).__name__} has no field `{name}`")
            whole = decoding.of_text(type(self), self._text)
            for field in type(self).__slots__:
                object.__setattr__(self, field, getattr(whole, field))
            return getattr(self, name)

    @property
    def text(self) -> str:
        """The data as canonical JSON; of decoded data, the text from which they were decoded."""
        try:
            return object.__getattribute__(self, "_text")  # type: ignore[no-any-return]
        except AttributeError:
            from sojourn.plan import decoding

            object.__setattr__(self, "_text", decoding.text_of(self))
        return self._text

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return type(self).of, (self.text,)

    @property
    def digest(self) -> str:
        """SHA-256 hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()
