"""Reads shell scripts, in POSIX syntax with extensions of bash, without executing anything."""
