"""Real replicated stores: runs a plan's store, or measures a running store."""
