"""The wheel's tag: programs of x86-64 Linux that need no library of the system."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAG = "py3-none-manylinux_2_17_x86_64"


class Tag(BuildHookInterface):  # type: ignore[type-arg]
    """Sets it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is written."""
        del version
        build_data["pure_python"] = False
        build_data["tag"] = TAG
