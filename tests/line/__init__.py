"""Tests of the fit of a line to measurements."""
