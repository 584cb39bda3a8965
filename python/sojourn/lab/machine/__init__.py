"""The machine of a laboratory: its programs and limits, and changes that are undone."""
