# SPDX-License-Identifier: Apache-2.0
"""Tests of fit: statistics, null draws, p-values, and where the misfit sits; functions of tensors."""

from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.betting import Bets, log_mean_evidence
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.discrepancy_bounds import closeness
from pyro_ksd.fit_tests.foreign_sequences import foreign_share, tolerance_p_value
from pyro_ksd.fit_tests.localization import edit_shares, localize, mean_localization
from pyro_ksd.fit_tests.logged_probabilities import uniform_ranks
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.fit_tests.null_draws import (
    multinomial,
    parametric_bootstrap,
    rademacher,
    refitted_bootstrap,
    wild_bootstrap,
)
from pyro_ksd.fit_tests.predictive import posterior_predictive, predictive_p_value
from pyro_ksd.fit_tests.relative import relative_fit
from pyro_ksd.fit_tests.statistics import p_value, u_statistic, v_statistic, weighted_u_statistics
from pyro_ksd.fit_tests.stream_evidence import StreamEvidence
from pyro_ksd.fit_tests.tilting import tilts

__all__ = [
    "Bets",
    "StreamEvidence",
    "closeness",
    "edit_shares",
    "extent",
    "foreign_share",
    "goodness_of_fit",
    "harmonic_p",
    "localize",
    "log_mean_evidence",
    "mean_localization",
    "multinomial",
    "p_value",
    "parametric_bootstrap",
    "posterior_predictive",
    "predictive_p_value",
    "rademacher",
    "refitted_bootstrap",
    "relative_fit",
    "tilts",
    "tolerance_p_value",
    "u_statistic",
    "uniform_ranks",
    "v_statistic",
    "weighted_u_statistics",
    "wild_bootstrap",
]
