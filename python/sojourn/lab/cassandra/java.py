"""The Java that Cassandra runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from sojourn.lab.errors import Unavailable
from sojourn.lab.machine import packages

MAJOR = (11, 17)
"""Versions that Cassandra 5.0 runs on."""

SECONDS = 20.0
"""For its version."""

_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')

OPENED = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.module",
    "java.base/java.lang.reflect", "java.base/java.math", "java.base/java.net",
    "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math", "java.base/jdk.internal.misc", "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref", "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar", "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)  # fmt: skip
"""Packages that it reaches into by reflection."""
EXPORTED = (
    "java.base/java.lang.ref", "java.base/jdk.internal.misc", "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch", "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.sql/java.sql",
)  # fmt: skip
"""Packages that it uses."""


def find_java() -> str:
    """The `java` that is used; see `found_java`."""
    return found_java()[0]


def found_java() -> tuple[str, int]:
    """The `java` that is used, and its version: `JAVA_HOME`'s, else the one on the path.

    Raises `Unavailable` if there is none, or one that Cassandra does not run on.
    """
    home = os.environ.get("JAVA_HOME", "")
    own = Path(home) / "bin" / "java"
    found = str(own) if home and own.is_file() else shutil.which("java")
    if found is None:
        raise Unavailable("Java 17 is missing", advice())
    try:
        told = subprocess.run(  # noqa: S603 - the user's own Java
            [found, "-version"], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{found} does not tell its version: {error}", advice()) from None
    match = _VERSION.search(told.stderr)
    major = int(match[1]) if match else 0
    if major not in MAJOR:
        allowed = " or ".join(str(version) for version in MAJOR)
        raise Unavailable(
            f"{found} is Java {major or '(of no version that it tells)'}; Cassandra runs on "
            f"{allowed}",
            f"{advice()}, or set JAVA_HOME",
        )
    return found, major


def advice() -> str:
    """The command that adds a Java that Cassandra runs on."""
    return packages.install(["java"], packages.family() or packages.DEBIAN)


def module_options() -> list[str]:
    """Java's options that let Cassandra reach what modules hide."""
    return [
        *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENED),
        *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTED),
    ]
