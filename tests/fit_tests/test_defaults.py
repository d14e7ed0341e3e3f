# SPDX-License-Identifier: Apache-2.0
"""What users who leave out an option of these functions rely on: levels, numbers of draws, seeds, no progress bar."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from types import ModuleType
from typing import Any

import pytest

from pyro_ksd.fit_tests import (
    absolute,
    factor_tolerance,
    fault_sizes,
    largest_shares,
    localization,
    lookahead,
    tilt_selection,
    tilting,
)
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.count_rates import mean_counts, mean_rates
from pyro_ksd.fit_tests.discrepancy_bounds import closeness
from pyro_ksd.fit_tests.foreign_sequences import foreign_share
from pyro_ksd.fit_tests.held_out import compare_held_out
from pyro_ksd.fit_tests.localization import localize, localize_views
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.fit_tests.null_draws import parametric_bootstrap, refitted_bootstrap, signed_draws
from pyro_ksd.fit_tests.partitioned import localize_parts, partitioned_goodness_of_fit
from pyro_ksd.fit_tests.predictive import posterior_predictive
from pyro_ksd.fit_tests.replicates import Replicates, draw_replicates
from pyro_ksd.fit_tests.tilting import tilts


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (goodness_of_fit, {"num_bootstrap": 500, "verified_stand_in": False, "seed": 0, "progress": False}),
        (partitioned_goodness_of_fit, {"num_bootstrap": 500, "seed": 0, "progress": False}),
        (posterior_predictive, {"tokens": False, "seed": 0, "progress": False}),
        (extent, {"level": 0.05, "num_impossible": 0, "seed": 0}),
        (closeness, {"level": 0.05}),
        (foreign_share, {"level": 0.05}),
        (localize_parts, {"level": 0.05, "progress": False}),
        (mean_counts, {"coverage": 0.95}),
        (mean_rates, {"coverage": 0.95}),
        (tilts, {"coverage": 0.95}),
        (localize, {"attribution": False, "progress": False}),
        (localize_views, {"progress": False}),
        (compare_held_out, {"localize": True, "progress": False}),
        (parametric_bootstrap, {"progress": False}),
        (refitted_bootstrap, {"progress": False}),
        (signed_draws, {"progress": False}),
        (Replicates.of, {"tokens": False}),
        (draw_replicates, {"tokens": False}),
    ],
)
def test_options_that_are_left_out(function: Callable[..., Any], expected: dict[str, Any]) -> None:
    options = signature(function).parameters
    assert {name: options[name].default for name in expected} == expected


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (absolute, {"SMALL_SAMPLE": 100, "FEW_EDITS": 20_000, "SAMPLED_CHUNKS": 100}),
        (fault_sizes, {"MOST_SIZED": 10, "COVERAGE": 0.95}),
        (factor_tolerance, {"FACTOR": 1.25, "MOST_NGRAMS": 100}),
        (largest_shares, {"MOST_EDITS": 100, "MOST_SHOWN": 1000}),
        (localization, {"MOST_FEATURES": 1000}),
        (tilt_selection, {"MOST_FACTORS": 20}),
        (tilting, {"LEAST_EVENTS": 5.0}),
        (lookahead, {"FEW_CHUNKS": 8}),
    ],
)
def test_how_much_is_reported_and_from_what_on(module: ModuleType, expected: dict[str, float]) -> None:
    assert {name: getattr(module, name) for name in expected} == expected
