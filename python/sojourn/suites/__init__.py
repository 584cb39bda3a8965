"""Suites: published sets of scenarios, which one command runs with all queue disciplines.

`bbr` has the test cases for implementations of BBR instead.
"""

from sojourn.suites.suite import BBR, NAMES, Outcome, Suite, SuiteError, load

__all__ = ["BBR", "NAMES", "Outcome", "Suite", "SuiteError", "load"]
