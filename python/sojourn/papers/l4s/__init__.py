"""The study of L4S: sentences of RFC 9332 and of later findings, judged on simulated runs."""
