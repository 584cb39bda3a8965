"""Settings found by a model or a search, and verified by simulation."""
