"""Sets the platform tag of the wheel: static programs for x86-64 Linux."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAG = "py3-none-manylinux_2_17_x86_64"


class Tag(BuildHookInterface):  # type: ignore[type-arg]
    """Build hook that sets the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Sets the tag; hatchling calls this before it writes the wheel."""
        del version
        build_data["pure_python"] = False
        build_data["tag"] = TAG
