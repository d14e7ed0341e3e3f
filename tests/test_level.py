# SPDX-License-Identifier: Apache-2.0
"""A true model is rejected as often as the level says: 1,000 tests each, within the 99.9 % binomial band."""

from __future__ import annotations

import pytest
import torch
from example_models import walk
from scipy.stats import binom

from pyro_ksd.aggregation import min_p
from pyro_ksd.bootstrap import parametric_bootstrap, wild_bootstrap
from pyro_ksd.models import constrain
from pyro_ksd.statistics import u_statistic
from pyro_ksd.stein import stein_matrices
from pyro_ksd.testing import goodness_of_fit
from pyro_ksd.views import default_views

RUNS, DRAWS, LEVEL = 1000, 199, 0.05
LOW, HIGH = binom.interval(0.999, RUNS, LEVEL)
VIEWS = default_views()


def rejections(p_values: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, int]:
    """How often each view and all together reject."""
    each = torch.stack([views for views, _ in p_values]) <= LEVEL + 1e-9
    overall = torch.stack([overall for _, overall in p_values]) <= LEVEL + 1e-9
    names = [*(view.name for view in VIEWS), "overall"]
    return dict(zip(names, [*each.sum(0).tolist(), int(overall.sum())], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 30])
def test_level_of_the_parametric_bootstrap(size: int) -> None:
    model = walk()
    generator = torch.Generator().manual_seed(size)
    found = []
    for _ in range(RUNS):
        # The first data set is the observed one: it comes from the model as the others do.
        pool = parametric_bootstrap(model, size, VIEWS, DRAWS + 1, generator)
        found.append(min_p(pool[0], pool[1:]))
    counts = rejections(found)
    print(f"\nparametric, n = {size}: {counts} of {RUNS}, band {LOW:.0f} to {HIGH:.0f}")
    assert all(LOW <= count <= HIGH for count in counts.values()), counts


@pytest.mark.slow
def test_level_of_the_wild_bootstrap_with_signs() -> None:
    model, size = walk(), 100
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(RUNS):
        matrices = stein_matrices(model, model.draw(size, generator), VIEWS)
        observed = torch.stack([u_statistic(matrix) for matrix in matrices])
        found.append(min_p(observed, wild_bootstrap(matrices, DRAWS, generator)))
    counts = rejections(found)
    print(f"\nwild, n = {size}: {counts} of {RUNS}, band {LOW:.0f} to {HIGH:.0f}")
    assert all(LOW <= count <= HIGH for count in counts.values()), counts


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
