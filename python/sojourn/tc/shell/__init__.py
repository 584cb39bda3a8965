"""A reader of shell scripts that executes nothing; it reads a subset of the POSIX language."""
