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
"""Time limit for `java -version`, in seconds."""

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
"""Packages of Java that Cassandra accesses by reflection (`--add-opens`)."""
EXPORTED = (
    "java.base/java.lang.ref", "java.base/jdk.internal.misc", "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch", "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.sql/java.sql",
)  # fmt: skip
"""Hidden packages of Java that Cassandra uses (`--add-exports`)."""


def find_java() -> str:
    """Returns the path of a supported `java`; raises `Unavailable` without one."""
    return found_java()[0]


def found_java() -> tuple[str, int]:
    """Returns the path and the major version of `java` in `JAVA_HOME`, or else in `PATH`.

    Raises `Unavailable` if there is no Java, or if Cassandra does not support its version.
    """
    home = os.environ.get("JAVA_HOME", "")
    own = Path(home) / "bin" / "java"
    found = str(own) if home and own.is_file() else shutil.which("java")
    if found is None:
        raise Unavailable("Java 17 is missing", advice())
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [found, "-version"], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"`{found} -version` failed: {error}", advice()) from None
    match = _VERSION.search(answer.stderr)
    major = int(match[1]) if match else 0
    if major not in MAJOR:
        allowed = " or ".join(str(version) for version in MAJOR)
        raise Unavailable(
            f"Cassandra requires Java {allowed}; {found} is Java {major or 'of unknown version'}",
            f"{advice()}, or set JAVA_HOME",
        )
    return found, major


def advice() -> str:
    """Returns the command that installs a supported Java."""
    return packages.install(["java"], packages.family() or packages.DEBIAN)


def module_options() -> list[str]:
    """Returns the options that give Cassandra access to hidden packages of Java."""
    return [
        *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENED),
        *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTED),
    ]
