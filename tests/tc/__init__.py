"""The scenario language and what it becomes."""
