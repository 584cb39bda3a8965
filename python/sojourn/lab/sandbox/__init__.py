"""The sandbox: its namespaces, the hosts in them, and the programs that run there."""
