"""Linux's own network code in virtual time: kernels, guests, and an engine."""
