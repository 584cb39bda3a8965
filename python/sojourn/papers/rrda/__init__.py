"""The study of receive buffers that adapt: `sojourn paper rrda`."""
