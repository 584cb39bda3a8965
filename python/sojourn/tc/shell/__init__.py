"""Reads shell scripts in a subset of the POSIX language, without executing anything."""
