# SPDX-License-Identifier: Apache-2.0
"""Checks of sequences given their covariates: faults that cancel in the mean over all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from scipy.stats import binom

from pyro_ksd import AutoregressiveModel, MarkovSequence, Sequences, ksd_check, ngram_table, verdict
from pyro_ksd.checks.by_argument import with_conditional_views
from pyro_ksd.kernels import ConditionalKernel, HammingKernel
from pyro_ksd.sequences import PromptContent
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein import View, ZanellaOperator, default_views

EVEN = torch.tensor([0.5, 0.5], dtype=torch.double)
OPTIONS: dict[str, Any] = {"num_bootstrap": 99, "localize": False, "progress": False}


def coin(share: float = 0.5) -> MarkovSequence:
    law = torch.tensor([share, 1 - share], dtype=torch.double)
    return MarkovSequence.from_transitions(law, law.expand(2, 2), stop=0.2)


def cancelling(size: int, groups: int, seed: int, shift: float = 0.15) -> Sequences:
    """In every other group ``a`` is too frequent, in the others too rare: all together have the model's symbols."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(size) % groups
    drawn = [coin(0.5 + sign * shift).draw(size, generator) for sign in (1, -1)]
    parts = [drawn[number % 2][row : row + 1] for row, number in enumerate(group.tolist())]
    return Sequences.cat(parts).over("ab").with_covariates({"group": group})


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_faults_that_cancel_are_found_given_the_group(bootstrap: Any) -> None:
    data = cancelling(120, 4, seed=1)
    options = OPTIONS | {"views": "content-1", "bootstrap": bootstrap}
    plain = ksd_check(coin(), data, **options)
    assert float(plain["ksd"]["p_value_overall"]) > 0.05
    found = ksd_check(coin(), data, by="group", **options)
    assert found["ksd"]["view"].values.tolist() == ["content-1", "content-1 by group"]
    assert float(found["ksd"]["p_value_overall"]) <= 0.02


def test_the_verdict_names_the_groups() -> None:
    data = cancelling(200, 2, seed=2, shift=0.2)
    check = ksd_check(coin(), data, by="group", views="content-1", num_bootstrap=499, progress=False)
    table = ngram_table(check, view="content-1 by group").set_index("label")["finding"].to_dict()
    assert table == {
        "a given group 0": "too rare",
        "b given group 0": "too frequent",
        "a given group 1": "too frequent",
        "b given group 1": "too rare",
    }
    assert "given group 0' and 'b given group 1' are too rare under the model" in verdict(check)


def test_prompts_that_hardly_recur_are_compared_by_their_content() -> None:
    """The code 0 or 1 in a prompt decides which fault there is."""
    data = cancelling(150, 2, seed=3, shift=0.25)
    prompts = [[10 + row, row % 2, 500 + row] for row in range(150)]
    data = data.with_covariates(prompts)
    with pytest.raises(ValueError, match=r"by: expected at least 2 sequences .* found 150 for 150 .*PromptContent\(\)"):
        ksd_check(coin(), data, by="prompt", **OPTIONS)
    check = ksd_check(coin(), data, by=PromptContent(16), views="content-1", bootstrap="wild", **OPTIONS)
    assert float(check["ksd"]["p_value_overall"]) <= 0.02

    def second_code(covariates: Covariates) -> torch.Tensor:
        values = covariates.values
        assert isinstance(values, torch.Tensor)
        return torch.nn.functional.one_hot(values[:, 1], 2)

    check = ksd_check(coin(), data, by=second_code, views="content-1", bootstrap="wild", **OPTIONS)
    assert check["ksd"]["view"].values.tolist() == ["content-1", "content-1 by second_code"]
    assert float(check["ksd"]["p_value_overall"]) <= 0.02


def test_the_default_views_that_are_looked_at_by_covariates() -> None:
    data = cancelling(20, 2, seed=0)
    views = with_conditional_views(default_views(), "group", data, are_default=True)
    added = views[len(default_views()) :]
    names = ["content-1", "content-2", "start", "length", "surprise"]
    assert [view.name for view in added] == [f"{name} by group" for name in names]
    own = {view.name: view for view in default_views()}
    for view in added:
        assert isinstance(view.kernel, ConditionalKernel)
        assert view.weight == own[view.name.removesuffix(" by group")].weight
    assert with_conditional_views(default_views(), None, data, are_default=True)[0].name == "content-1"


def test_prompts_have_the_symbols_of_the_alphabet() -> None:
    def network(codes: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*codes.shape, 3)

    lm = AutoregressiveModel(network, end=2, max_length=20)
    prompts = [[0, 1], [1]] * 10
    data = lm.draw_given(Covariates.of(prompts, 20), torch.Generator().manual_seed(0)).over(["the", "a", "."])
    [*_, view] = with_conditional_views(default_views()[:1], "prompt", data, are_default=False)
    assert isinstance(view.kernel, ConditionalKernel)
    assert [view.kernel.group_label(column) for column in (0, 1)] == ["prompt the a", "prompt a"]


def test_refuses() -> None:
    data = cancelling(20, 2, seed=0)
    with pytest.raises(ValueError, match=r"by: expected one of the covariates \['group'\], found 'groups'"):
        ksd_check(coin(), data, by="groups", **OPTIONS)
    with pytest.raises(ValueError, match="by: expected the name of a covariate, such as 'prompt', or a function"):
        ksd_check(coin(), data, by=3, **OPTIONS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="by: expected data with the covariate 'group', found none"):
        ksd_check(coin(), data.to_lists(), by="group", **OPTIONS)
    whole = View("whole", ZanellaOperator(), HammingKernel())
    with pytest.raises(ValueError, match=r"by: expected a view whose kernel has features, found \['whole'\]"):
        ksd_check(coin(), data, by="group", views=whole, **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
@pytest.mark.parametrize("groups", [3, 30])
def test_level_and_power(bootstrap: Any, groups: int) -> None:
    runs, size = 200, 90
    options = OPTIONS | {"bootstrap": bootstrap, "by": "group"}
    p_values = {
        shift: [
            float(
                ksd_check(coin(), cancelling(size, groups, seed, shift), seed=seed, **options)["ksd"]["p_value_overall"]
            )
            for seed in range(runs)
        ]
        for shift in (0.0, 0.25)
    }
    rejected = {shift: sum(p <= 0.05 for p in own) for shift, own in p_values.items()}
    assert rejected[0.0] <= binom.ppf(0.999, runs, 0.05)
    assert rejected[0.25] >= 0.8 * runs if groups == 3 else rejected[0.25] >= 0.5 * runs
