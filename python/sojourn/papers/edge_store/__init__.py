"""Replicated stores at the edge: `sojourn paper edge-store`."""
