"""The study of replicated stores at the edge: `sojourn paper edge-store`."""
