"""Suites: published sets of scenarios, which one command runs with all queue disciplines."""

from sojourn.suites.suite import NAMES, Outcome, Suite, SuiteError, load

__all__ = ["NAMES", "Outcome", "Suite", "SuiteError", "load"]
