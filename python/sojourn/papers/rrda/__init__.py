"""The study of adaptive receive buffers: `sojourn paper rrda`."""
