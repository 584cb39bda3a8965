"""The study of balancing by queue length: `sojourn paper queue-lb`."""
