"""Statistics: intervals, paired differences, analysis of variance, claims.

Pure functions on arrays and data frames. What is here is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.stats._arrays import StatisticsError
    from sojourn.stats.anova import Anova, blocks, one_way, welch
    from sojourn.stats.assumptions import (
        Check,
        bartlett,
        levene,
        normal_residuals,
        shapiro_wilk,
    )
    from sojourn.stats.batch import BatchMeans, WarmUp, batch_means, mser, welch_plot
    from sojourn.stats.cells import Cell, ClaimError, by_seed
    from sojourn.stats.claim_data import claim_from_dict, claim_to_dict
    from sojourn.stats.claims import (
        AllIn,
        Claim,
        Difference,
        Every,
        Least,
        LeastVariation,
        MeanIn,
        Monotone,
        PracticallyEqual,
        Ratio,
    )
    from sojourn.stats.effect import cliffs_delta, cohens_d, paired_d, standardised_mean
    from sojourn.stats.estimate import Region
    from sojourn.stats.fairness import jain
    from sojourn.stats.interval import (
        Interval,
        TTest,
        mean_interval,
        median_interval,
        one_sample,
        paired_difference,
        paired_ratio,
        tost,
        welch_difference,
    )
    from sojourn.stats.multiple import bonferroni, holm, holm_alphas
    from sojourn.stats.posthoc import (
        KruskalWallis,
        Pair,
        PostHoc,
        dunn,
        games_howell,
        kruskal_wallis,
        lsd,
        tukey,
    )
    from sojourn.stats.ranks import Friedman, friedman, paired_tests
    from sojourn.stats.sample_size import power, seeds_for_power, seeds_for_width
    from sojourn.stats.verdict import Finding, Judgement, Verdict, judge, judge_components

_MODULES = {
    "_arrays": ("StatisticsError",),
    "anova": ("Anova", "blocks", "one_way", "welch"),
    "assumptions": ("Check", "bartlett", "levene", "normal_residuals", "shapiro_wilk"),
    "batch": ("BatchMeans", "WarmUp", "batch_means", "mser", "welch_plot"),
    "cells": ("Cell", "ClaimError", "by_seed"),
    "claim_data": ("claim_from_dict", "claim_to_dict"),
    "claims": (
        "AllIn",
        "Claim",
        "Difference",
        "Every",
        "Least",
        "LeastVariation",
        "MeanIn",
        "Monotone",
        "PracticallyEqual",
        "Ratio",
    ),
    "effect": ("cliffs_delta", "cohens_d", "paired_d", "standardised_mean"),
    "estimate": ("Region",),
    "fairness": ("jain",),
    "ranks": ("Friedman", "friedman", "paired_tests"),
    "interval": (
        "Interval",
        "TTest",
        "mean_interval",
        "median_interval",
        "one_sample",
        "paired_difference",
        "paired_ratio",
        "tost",
        "welch_difference",
    ),
    "multiple": ("bonferroni", "holm", "holm_alphas"),
    "posthoc": (
        "KruskalWallis",
        "Pair",
        "PostHoc",
        "dunn",
        "games_howell",
        "kruskal_wallis",
        "lsd",
        "tukey",
    ),
    "sample_size": ("power", "seeds_for_power", "seeds_for_width"),
    "verdict": ("Finding", "Judgement", "Verdict", "judge", "judge_components"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AllIn",
    "Anova",
    "BatchMeans",
    "Cell",
    "Check",
    "Claim",
    "ClaimError",
    "Difference",
    "Every",
    "Finding",
    "Friedman",
    "Interval",
    "Judgement",
    "KruskalWallis",
    "Least",
    "LeastVariation",
    "MeanIn",
    "Monotone",
    "Pair",
    "PostHoc",
    "PracticallyEqual",
    "Ratio",
    "Region",
    "StatisticsError",
    "TTest",
    "Verdict",
    "WarmUp",
    "bartlett",
    "batch_means",
    "blocks",
    "bonferroni",
    "by_seed",
    "claim_from_dict",
    "claim_to_dict",
    "cliffs_delta",
    "cohens_d",
    "dunn",
    "friedman",
    "games_howell",
    "holm",
    "holm_alphas",
    "jain",
    "judge",
    "judge_components",
    "kruskal_wallis",
    "levene",
    "lsd",
    "mean_interval",
    "median_interval",
    "mser",
    "normal_residuals",
    "one_sample",
    "one_way",
    "paired_d",
    "paired_difference",
    "paired_ratio",
    "paired_tests",
    "power",
    "seeds_for_power",
    "seeds_for_width",
    "shapiro_wilk",
    "standardised_mean",
    "tost",
    "tukey",
    "welch",
    "welch_difference",
    "welch_plot",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
