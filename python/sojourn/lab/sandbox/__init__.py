"""The sandbox: namespaces of our own, the hosts in them, and the programs that run there."""
