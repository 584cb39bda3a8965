"""Figures, reports and terminal tables."""
