"""Settings of the build of a kernel for virtual time."""

from __future__ import annotations

import re
from typing import Annotated

from sojourn.linux.patches import NAMES
from sojourn.settings import Option, SettingError, settings

CHOICES = (100, 250, 1000)
"""Allowed values of HZ: those of distributions, and 100, which User-Mode Linux has."""
MIRROR = "https://deb.debian.org/debian"
"""Default mirror of Debian."""


@settings
class Build:
    """A requested build of a kernel."""

    source: Annotated[str | None, Option("[SOURCE]", positional=True)] = None
    """Source of the kernel: a folder (read only), an archive (.tar.xz, .tar.gz, .tar.zst, .deb) or
    a pinned release (7.3, 6.12). By default Debian's 7.3.
    """
    hz: Annotated[int, Option("100|250|1000")] = 100
    """Frequency of the kernel's timer ticks in Hz, which sets the granularity of timers and of
    PIE's update interval. Distributions use 250 or 1000.
    """
    no_patches: bool = False
    """Build without patches. Repetitions of a run then give different results, and HZ is 100."""
    without: Annotated[list[str] | None, Option("PATCH")] = None
    """Patch to omit: seeded-random-numbers, choice-of-hz. Repeat for more."""
    name: Annotated[str | None, Option("NAME")] = None
    """Name of the kernel. By default release and HZ."""
    mirror: Annotated[str, Option("URL")] = MIRROR
    """URL of a Debian mirror for the download."""
    keep: bool = False
    """Keep source and object files, so that the next build of the same folder compiles only
    changes.
    """
    jobs: Annotated[int | None, Option(min=1)] = None
    """Number of parallel compiler processes. By default the number of cores."""

    def __post_init__(self) -> None:
        if self.hz not in CHOICES:
            raise SettingError("hz", f"must be 100, 250 or 1000; found {self.hz}")
        if self.name is not None and not re.fullmatch(r"\w[\w.+-]{0,79}", self.name):
            raise SettingError(
                "name",
                "may contain only letters, digits and `._+-`, must begin with a letter, digit or "
                "`_`, and has at most 80 characters",
            )

    @property
    def omitted(self) -> tuple[str, ...]:
        """Returns the names of the patches that are not applied."""
        return NAMES if self.no_patches else tuple(self.without or ())
