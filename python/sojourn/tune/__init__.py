"""Settings found by a model and verified by simulation."""
