# SPDX-License-Identifier: Apache-2.0
"""The test of partitioned data is that of all data in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from partitioned_data import in_parts

from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.absolute import GoodnessOfFit, goodness_of_fit
from pyro_ksd.fit_tests.localization import localize
from pyro_ksd.fit_tests.partitioned import localize_parts, partitioned_goodness_of_fit
from pyro_ksd.kernels import HammingKernel
from pyro_ksd.models.part_survey import Survey, surveyed
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View, default_views

WALK = random_walk(3, hold=0.1)
DATA = random_walk(3, hold=0.3).draw(120, torch.Generator().manual_seed(0))
VIEWS = default_views()


def found(*cuts: int) -> tuple[GoodnessOfFit, Survey]:
    survey = surveyed(WALK, in_parts(DATA, cuts))
    return partitioned_goodness_of_fit(WALK, survey, VIEWS, DATA, num_bootstrap=49, seed=2), survey


@pytest.mark.parametrize("cuts", [(), (30, 31)])
def test_statistics_draws_and_places(cuts: tuple[int, ...]) -> None:
    result, survey = found(*cuts)
    whole = goodness_of_fit(WALK, DATA, VIEWS, bootstrap="wild", num_bootstrap=49, seed=2)
    torch.testing.assert_close(result.statistic, whole.statistic)
    torch.testing.assert_close(result.null.statistic, whole.null.statistic)
    assert result.p_value.equal(whole.p_value)
    assert result.p_value_overall == whole.p_value_overall
    assert list(result.seconds) == ["kernels", "bootstrap"]
    assert all(0 < seconds < 60 for seconds in result.seconds.values())
    places, totals = localize_parts(result, survey)
    assert [len(own.total) for own in totals][:3] == [len(own.rows) for own in _outstanding(whole)][:3]
    for place, other in zip(places, localize(whole), strict=True):
        assert other.contribution is not None
        torch.testing.assert_close(place.shown.share, other.shown.share, atol=1e-12, rtol=1e-8)
        torch.testing.assert_close(place.shown.share, other.contribution[place.shown.sequence], atol=1e-12, rtol=1e-8)
        torch.testing.assert_close(place.edits.share, other.edits.share, atol=1e-12, rtol=1e-8)
        assert (place.pushes is None) == (other.pushes is None)
        if place.pushes is not None and other.pushes is not None:
            assert place.pushes.count == other.pushes.count == 120
            torch.testing.assert_close(place.pushes.number.cumsum(1), other.pushes.number.cumsum(1))
            torch.testing.assert_close(place.pushes.largest, other.pushes.largest)


def _outstanding(result: GoodnessOfFit) -> list:  # type: ignore[type-arg]
    from pyro_ksd.fit_tests.fault_sizes import outstanding

    return outstanding(result, [place.features for place in localize(result)], 0.05)


def test_a_test_of_partitioned_data_has_no_visits_of_all() -> None:
    result, _ = found(60)
    with pytest.raises(ValueError, match="localize: expected a test of data in memory, found one of partitioned data"):
        localize(result)


def test_two_sequences_are_needed() -> None:
    survey = surveyed(WALK, in_parts(DATA[:1], ()))
    with pytest.raises(ValueError, match="expected at least 2 sequences, found 1"):
        partitioned_goodness_of_fit(WALK, survey, VIEWS, DATA[:1])


def test_work_on_other_data_draws_or_seeds_is_not_gone_on_with(tmp_path: Path) -> None:
    survey, kept = surveyed(WALK, in_parts(DATA, (30,))), Checkpoint(tmp_path / "kept")
    options: dict[str, Any] = {"num_bootstrap": 9, "seed": 2, "checkpoint": kept}
    first = partitioned_goodness_of_fit(WALK, survey, VIEWS, DATA, **options)
    again = partitioned_goodness_of_fit(WALK, survey, VIEWS, DATA, **options)
    assert again.null.statistic.equal(first.null.statistic)
    other = random_walk(3, hold=0.2)
    cut = surveyed(WALK, in_parts(DATA, (31,)))
    changed = [
        (
            "data",
            lambda: partitioned_goodness_of_fit(
                WALK, surveyed(WALK, in_parts(DATA[1:], (29,))), VIEWS, DATA, **options
            ),
        ),
        ("parts", lambda: partitioned_goodness_of_fit(WALK, cut, VIEWS, DATA, **options)),
        ("views", lambda: partitioned_goodness_of_fit(WALK, survey, VIEWS[:2], DATA, **options)),
        ("model or views", lambda: partitioned_goodness_of_fit(other, survey, VIEWS, DATA, **options)),
        (
            "num_bootstrap",
            lambda: partitioned_goodness_of_fit(WALK, survey, VIEWS, DATA, **(options | {"num_bootstrap": 8})),
        ),
        ("seed", lambda: partitioned_goodness_of_fit(WALK, survey, VIEWS, DATA, **(options | {"seed": 3}))),
    ]
    for name, call in changed:
        with pytest.raises(ValueError, match=f"which differs in: .*{name}"):
            call()


def test_a_kernel_without_features_is_named() -> None:
    survey = surveyed(WALK, in_parts(DATA, (30,)))
    view = View("pairs", ZanellaOperator(), HammingKernel())
    with pytest.raises(ValueError, match="view 'pairs': expected a kernel with features for partitioned data"):
        partitioned_goodness_of_fit(WALK, survey, [*VIEWS, view], DATA)
