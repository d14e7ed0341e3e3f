# SPDX-License-Identifier: Apache-2.0
"""A true model is rejected as often as the level says: 1,000 tests each, within the 99.9 % binomial band."""

from __future__ import annotations

import pytest
import torch
from example_models import walk
from scipy.stats import binom

from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.feature_scores import largest_score, scores
from pyro_ksd.fit_tests.null_draws import NullDraws, parametric_bootstrap, wild_bootstrap
from pyro_ksd.fit_tests.statistics import p_value, u_statistic
from pyro_ksd.models import constrain
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import default_views

RUNS, DRAWS, LEVEL = 1000, 199, 0.05
LOW, HIGH = binom.interval(0.999, RUNS, LEVEL)
VIEWS = default_views()


NAMES = [*(view.name for view in VIEWS), "overall", *(f"a feature of {view.name}" for view in VIEWS)]


def p_values(statistic: torch.Tensor, extreme: torch.Tensor, null: NullDraws) -> torch.Tensor:
    """The p-values of the views, of all together, and of each view's most extreme feature."""
    each, overall = harmonic_p(statistic, null.statistic, torch.tensor([view.weight for view in VIEWS]))
    return torch.cat([each, overall[None], p_value(extreme, null.extreme)])


def rejections(found: list[torch.Tensor]) -> dict[str, int]:
    return dict(zip(NAMES, (torch.stack(found) <= LEVEL + 1e-9).sum(0).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 30])
def test_level_of_the_parametric_bootstrap(size: int) -> None:
    model = walk(hold=0.5)  # holds often enough for all views to have something to see
    generator = torch.Generator().manual_seed(size)
    found = []
    for _ in range(RUNS):
        # The first data set is the observed one: it comes from the model as the others do.
        pool = parametric_bootstrap(model, size, VIEWS, DRAWS + 1, generator)
        null = NullDraws(pool.statistic[1:], pool.extreme[1:])
        found.append(p_values(pool.statistic[0], pool.extreme[0], null))
    counts = rejections(found)
    print(f"\nparametric, n = {size}: {counts} of {RUNS}, band {LOW:.0f} to {HIGH:.0f}")
    assert all(LOW <= count <= HIGH for count in counts.values()), counts


@pytest.mark.slow
@pytest.mark.parametrize("hold", [0.0, 0.5])
def test_level_of_the_wild_bootstrap_with_signs(hold: float) -> None:
    model, size = walk(hold), 100
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(RUNS):
        matrices = stein_matrices(model, model.draw(size, generator), VIEWS)
        observed = torch.stack([u_statistic(matrix) for matrix in matrices])
        extreme = torch.cat(
            [largest_score(*(row[None] for row in scores(SteinSums.of(matrix)))) for matrix in matrices]
        )
        found.append(p_values(observed, extreme, wild_bootstrap(matrices, VIEWS, Signs(generator, DRAWS))))
    counts = rejections(found)
    print(f"\nwild, hold {hold}, n = {size}: {counts} of {RUNS}, band {LOW:.0f} to {HIGH:.0f}")
    assert all(count <= HIGH for count in counts.values()), counts
    seen = [name for name in NAMES[: len(VIEWS) + 1] if name != "repeats" or hold]  # a walk that never holds has none
    assert all(counts[name] >= LOW for name in seen), counts  # features may be conservative


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the model hardly ever allows")
def test_level_of_the_wild_bootstrap_where_sequences_hardly_ever_grow() -> None:
    # 300 runs; the band is one-sided, as signs are conservative.
    runs, size = 300, 100
    model = constrain(walk(), lambda x: x.tokens.gather(1, (x.lengths - 1).clamp(min=0)[:, None])[:, 0] == 0)
    generator = torch.Generator().manual_seed(0)
    rejected = 0
    for run in range(runs):
        data = model.draw(size, generator)
        found = goodness_of_fit(model, data, VIEWS, bootstrap="wild", num_bootstrap=DRAWS, seed=run)
        rejected += found.p_value_overall <= LEVEL
    print(f"\nwild, constrained, n = {size}: {rejected} of {runs}, at most {binom.ppf(0.999, runs, LEVEL):.0f}")
    assert rejected <= binom.ppf(0.999, runs, LEVEL)
