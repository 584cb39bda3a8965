"""Apache Cassandra as the real store of a plan: downloads, starts and queries it."""

VERSION = "5.0.9"
"""Version whose jars are pinned in this folder."""
