# SPDX-License-Identifier: Apache-2.0
"""One decision from several folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import combine_pvalues

from pyro_ksd import Sequences
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.held_out import HeldOut
from pyro_ksd.fit_tests.held_out_decision import split_predictive
from pyro_ksd.fit_tests.localization import Localization, TopEdits, joined_localization, localize
from pyro_ksd.fit_tests.null_draws import NullDraws
from pyro_ksd.stein.views import View, default_views

DATA = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa", "cba"])
ROWS = [torch.tensor([0, 3, 6]), torch.tensor([1, 4]), torch.tensor([2, 5])]
VIEWS = [view for view in default_views() if view.name in ("content-1", "content-2", "start")]
RATES = {view.operator: torch.tensor([9.0, 5.0]) for view in VIEWS}


def part(draws: int, seed: int, places: list[Localization] | None = None) -> HeldOut:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(draws + 1, len(VIEWS), dtype=torch.double, generator=generator)
    extreme = torch.rand(draws, len(VIEWS), dtype=torch.double, generator=generator)
    return HeldOut(values[0], NullDraws(values[1:], extreme), RATES, places or [])


def test_statistics_are_means_weighted_by_the_sizes_of_the_folds() -> None:
    parts = [part(50, seed) for seed in range(3)]
    found = split_predictive(parts, ROWS, VIEWS)
    shares = np.array([3, 2, 2]) / 7
    expected = np.tensordot(shares, np.stack([own.statistic for own in parts]), 1)
    np.testing.assert_allclose(found.statistic, expected)
    null = np.tensordot(shares, np.stack([own.null.statistic for own in parts]), 1)
    np.testing.assert_allclose(found.null.statistic, null)
    np.testing.assert_allclose(found.p_value, (1 + (null >= expected).sum(0)) / 51)
    weights = torch.tensor([view.weight for view in VIEWS], dtype=torch.double)
    _, overall = harmonic_p(torch.as_tensor(expected), torch.as_tensor(null), weights)
    assert found.p_value_overall == float(overall)


def test_folds_are_tested_one_by_one_as_well() -> None:
    parts = [part(50, seed) for seed in range(3)]
    found = split_predictive(parts, ROWS, VIEWS)
    assert len(found.folds) == 3
    weights = torch.tensor([view.weight for view in VIEWS], dtype=torch.double)
    for own, fold, rows in zip(parts, found.folds, ROWS, strict=True):
        each, overall = harmonic_p(own.statistic, own.null.statistic, weights)
        assert fold.rows.equal(rows)
        assert fold.statistic.equal(own.statistic)
        assert fold.p_value.equal(each)
        assert fold.p_value_overall == float(overall)


def test_extremes_come_from_each_fold_in_turn() -> None:
    parts = [part(50, seed) for seed in range(3)]
    found = split_predictive(parts, ROWS, VIEWS)
    for draw in range(50):
        assert found.null.extreme[draw].equal(parts[draw % 3].null.extreme[draw])


def test_the_fold_with_the_fewest_draws_decides_about_their_number() -> None:
    parts = [part(50, 0), part(20, 1), part(50, 2)]
    found = split_predictive(parts, ROWS, VIEWS)
    assert found.null.statistic.shape == (20, len(VIEWS))
    assert found.null.extreme.shape == (20, len(VIEWS))


def test_views_are_left_out_whose_edits_no_fold_allows() -> None:
    own = View("rare", replace(VIEWS[0].operator), VIEWS[0].kernel)
    views = [*VIEWS[1:], own]
    rates = {**RATES, own.operator: torch.tensor([1e-9, 1e-8])}
    parts = [replace(part(50, seed), rates=rates) for seed in range(3)]
    if own.operator == VIEWS[0].operator:
        pytest.skip("operators are compared by value")
    with pytest.warns(UserWarning, match="hardly ever allows the edits of the view.s. rare"):
        found = split_predictive(parts, ROWS, views)
    assert [view.name for view in found.views] == [view.name for view in VIEWS[1:]]


@pytest.fixture(scope="module")
def localized() -> tuple[list[Localization], torch.Tensor]:
    """Where the misfit of pairs sits in each fold, and the statistics of the folds."""
    found = [goodness_of_fit(random_walk(3), DATA[rows], VIEWS, num_bootstrap=50) for rows in ROWS]
    return [localize(own)[1] for own in found], torch.stack([own.statistic[1] for own in found])


def test_shares_of_folds_add_up_to_the_mean(localized: tuple[list[Localization], torch.Tensor]) -> None:
    parts, statistics = localized
    joined = joined_localization(parts, ROWS)
    mean = (torch.tensor([3, 2, 2]) * statistics).sum() / 7
    torch.testing.assert_close(joined.contribution.sum(), mean)
    torch.testing.assert_close(joined.shown.share.sum(), mean)
    torch.testing.assert_close(joined.shown.attribution.nansum(), mean)
    torch.testing.assert_close(joined.contribution[joined.shown.sequence], joined.shown.share)
    assert joined.features is not None
    torch.testing.assert_close(joined.features.share.sum(), mean)
    for own, rows, size in zip(parts, ROWS, (3, 2, 2), strict=True):
        torch.testing.assert_close(joined.contribution[rows], own.contribution * size / 7)


def codes(edits: TopEdits, index: int) -> tuple[tuple[int, ...], ...]:
    """What an edit removes and what it inserts."""
    both = (edits.removed[index], edits.inserted[index])
    return tuple(tuple(code for code in part.tolist() if code >= 0) for part in both)


def test_edits_of_folds_belong_to_the_rows_of_all_data(localized: tuple[list[Localization], torch.Tensor]) -> None:
    parts, _ = localized
    joined = joined_localization(parts, ROWS).edits
    expected = {}
    for own, rows in zip(parts, ROWS, strict=True):
        edits = own.edits
        for index, row in enumerate(edits.sequence.tolist()):
            key = (int(rows[row]), int(edits.position[index]), *codes(edits, index))
            expected[key] = float(edits.share[index]) * len(rows) / 7
    for index, row in enumerate(joined.sequence.tolist()):
        share = expected[row, int(joined.position[index]), *codes(joined, index)]
        assert float(joined.share[index]) == pytest.approx(share)
    assert joined.share.diff().max() <= 0


def test_scores_and_p_values_of_features_are_combined_as_those_of_independent_folds(
    localized: tuple[list[Localization], torch.Tensor],
) -> None:
    parts, _ = localized
    joined = joined_localization(parts, ROWS).features
    assert joined is not None
    for index, code in enumerate(joined.code.tolist()):
        z = mean = 0.0
        p_values = [1.0, 1.0, 1.0]
        for fold, (own, size) in enumerate(zip(parts, (3, 2, 2), strict=True)):
            assert own.features is not None
            for place in (own.features.code == code).nonzero()[:, 0].tolist():
                z += (size / 7) ** 0.5 * float(own.features.z[place])
                mean += size / 7 * float(own.features.mean[place])
                p_values[fold] = float(own.features.p_value[place])
        assert float(joined.z[index]) == pytest.approx(z)
        assert float(joined.mean[index]) == pytest.approx(mean)
        assert float(joined.p_value[index]) == pytest.approx(combine_pvalues(p_values, "fisher").pvalue)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="views: expected a list of View objects"):
        split_predictive([], [], [])
    with pytest.raises(ValueError, match="parts: expected what compare_held_out gave, for each fold"):
        split_predictive([3], [torch.arange(4)], default_views())  # type: ignore[list-item]
