"""The engine whose links are the kernel's queue disciplines and `netem`."""
