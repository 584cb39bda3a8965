"""Scenarios: the user's description, its check, its plan, and the result of a run."""

from __future__ import annotations

from sojourn._core import NoKernelEquivalent
from sojourn.scenario.deploy import Deployment
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.scenario import Run, Scenario

__all__ = ["Deployment", "NoKernelEquivalent", "Problem", "Run", "Scenario", "ScenarioError"]
