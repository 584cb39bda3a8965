"""L4S, judged: what RFC 9332 states, and what was found since."""
