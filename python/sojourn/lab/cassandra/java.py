"""Finds a Java that Cassandra supports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from sojourn.lab.errors import Unavailable
from sojourn.lab.machine import packages

MAJOR = (11, 17)
"""Java versions that Cassandra 5.0 supports."""

SECONDS = 20.0
"""Time limit for Java's output of its version, in seconds."""

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
"""Packages that Cassandra accesses by reflection."""
EXPORTED = (
    "java.base/java.lang.ref", "java.base/jdk.internal.misc", "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch", "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.sql/java.sql",
)  # fmt: skip
"""Packages that Cassandra uses."""


def find_java() -> str:
    """Returns the path of the `java` in use; see `found_java`."""
    return found_java()[0]


def found_java() -> tuple[str, int]:
    """Returns the path and the version of `java`: from `JAVA_HOME`, otherwise from the path.

    Raises `Unavailable` without Java, or with a version that Cassandra does not support.
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
    """Returns the command that installs a supported Java."""
    return packages.install(["java"], packages.family() or packages.DEBIAN)


def module_options() -> list[str]:
    """Returns Java's options that give Cassandra access to hidden parts of modules."""
    return [
        *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENED),
        *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTED),
    ]
