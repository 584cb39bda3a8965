"""Parameters of queues and stores, found by a model or a search and verified by simulation."""
