"""Links of the kernel's own: its queue disciplines and `netem`, as an engine."""
