"""Comparison of two programs by pairs of runs.

`trial` decides on measured values alone, `alone` runs the programs on this machine, `over` over an
emulated link, and `report` shows the result.
"""
