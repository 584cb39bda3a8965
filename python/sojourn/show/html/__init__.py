"""The report: one HTML file that works without a network."""
