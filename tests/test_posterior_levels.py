# SPDX-License-Identifier: Apache-2.0
"""Checks of held-out data and of folds keep their level."""

from __future__ import annotations

import pytest

from benchmarks.posterior_cases import cases
from benchmarks.posterior_levels import Settings, measure_all, page, rates
from benchmarks.rejections import WHOLE, band


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_calibrated_checks_reject_true_models_as_often_as_the_level_says(name: str) -> None:
    settings = Settings(runs=400)
    found = measure_all(settings, [(name, "prior")])
    lowest, highest = band(settings.runs)
    for kind in ("split predictive", "divided predictive"):
        for view, rate in rates(found[name, "prior"], kind).items():
            assert lowest <= rate <= highest, (kind, view)
    plain = rates(found[name, "prior"], "posterior predictive")
    assert plain[WHOLE] <= highest
    assert "divided predictive" in page(found, settings, "python")
