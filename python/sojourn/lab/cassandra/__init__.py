"""Apache Cassandra as the real part of a replicated store: fetched, started, asked."""

VERSION = "5.0.9"
"""The version whose jars are pinned beside this file."""
