"""Published sets of scenarios, each run with every queue discipline by one command."""

from sojourn.suites.suite import NAMES, Outcome, Suite, SuiteError, load

__all__ = ["NAMES", "Outcome", "Suite", "SuiteError", "load"]
