"""A line from measurements: reads their files, fits a line by simulation, and advises a queue."""

RUNS = 520
"""Number of simulated measurements of a fit."""
