"""L4S, judged: the statements of RFC 9332, and later findings."""
