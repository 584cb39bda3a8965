"""A line from measurements: reads their files, fits a line by simulation, and advises a queue."""

RUNS = 520
"""Simulated measurements of a fit; up to thrice as many if delays are sums of both directions."""
