"""Replicated stores made real: a plan's store run, one that runs already measured."""
