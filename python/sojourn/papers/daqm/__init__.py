"""The study of derivative-based queue management: `sojourn paper daqm`."""
