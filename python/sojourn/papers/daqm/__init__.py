"""The study of derivative-based active queue management (dAQM): `sojourn paper daqm`."""
