"""Reports: a report is one HTML file that needs no network."""
