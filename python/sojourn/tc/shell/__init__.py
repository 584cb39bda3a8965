"""A reader of shell scripts that executes nothing: a subset of POSIX's shell language."""
