"""Requirements of laboratories on this machine, and temporary changes of its settings."""
