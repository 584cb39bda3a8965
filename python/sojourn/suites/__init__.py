"""Published sets of scenarios, each run through every queue discipline by one command."""

from sojourn.suites.suite import NAMES, Outcome, Suite, SuiteError, load

__all__ = ["NAMES", "Outcome", "Suite", "SuiteError", "load"]
