"""Apache Cassandra, the real store of a plan: its download, nodes and clients."""

VERSION = "5.0.9"
"""Version of Cassandra; this folder has the hashes of its jars."""
