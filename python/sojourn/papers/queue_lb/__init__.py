"""The study of load balancing by queue length: `sojourn paper queue-lb`."""
