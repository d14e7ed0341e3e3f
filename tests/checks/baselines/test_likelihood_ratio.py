# SPDX-License-Identifier: Apache-2.0
"""The likelihood ratio against hand counts and fits of single chains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from baseline_results import parts
from example_models import Unsampled, walk, walks

from pyro_ksd.checks.baselines import likelihood_ratio_check
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.examples import random_walk
from pyro_ksd.models import LinearChainMRF, MarkovSequence, constrain
from pyro_ksd.models.fitting.counting import fit_markov
from pyro_ksd.sequences.container import Sequences


def coin_and_only_a(stop: float) -> tuple[MarkovSequence, MarkovSequence]:
    """A model of fair coins, and one to which every sequence with a "b" is impossible."""
    coin = torch.tensor([0.5, 0.5])
    model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=stop)
    return model, MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=stop)


def test_likelihood_ratio_by_hand() -> None:
    coin = torch.tensor([0.5, 0.5], dtype=torch.double)
    model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.25)
    check = likelihood_ratio_check(model, ["aab", "ab"], num_bootstrap=5, progress=False)
    fitted = math.log(1 / 3) + 2 * math.log(2 / 3)
    own = 5 * math.log(0.5) + 3 * math.log(0.75) + 2 * math.log(0.25)
    assert float(check["ksd"]["statistic"][0]) == pytest.approx(2 * (fitted - own))
    assert check["ksd"]["view"].values.tolist() == ["order-1"]


@pytest.mark.parametrize(("order", "pseudocount"), [(1, 0.0), (2, 0.5)])
def test_null_draws_are_fitted_anew(order: int, pseudocount: float) -> None:
    model, x = walk(), walks(5, hold=0.5)
    check = likelihood_ratio_check(
        model, x, alternative=order, pseudocount=pseudocount, num_bootstrap=3, seed=3, progress=False
    )

    def ratio(sequences: Sequences) -> float:
        fitted = fit_markov(sequences, order, pseudocount=pseudocount)
        return 2 * float((fitted.log_joint(sequences) - model.log_joint(sequences)).sum())

    drawn = model.draw(15, seeded_generator(3))
    statistic, null = parts(check)
    assert statistic.tolist() == pytest.approx([ratio(x)])
    assert null[:, 0].tolist() == pytest.approx([ratio(drawn[i : i + 5]) for i in (0, 5, 10)])
    assert check["ksd"].attrs["test"] == "likelihood ratio"
    assert check["ksd"].attrs["pseudocount"] == pseudocount


def test_likelihood_ratio_against_the_truth_is_a_difference_of_log_probabilities() -> None:
    model, truth, x = walk(), walk(hold=0.5), walks(10, hold=0.5)
    check = likelihood_ratio_check(model, x, alternative=truth, num_bootstrap=99, seed=3, progress=False)
    padded, drawn = x.padded(-1), model.draw(64 * 10, seeded_generator(3)).padded(-1)
    statistic, null = parts(check)
    assert statistic.tolist() == pytest.approx([2 * float((truth.log_prob(padded) - model.log_prob(padded)).sum())])
    expected = 2 * (truth.log_prob(drawn) - model.log_prob(drawn)).view(64, 10).sum(1)
    np.testing.assert_allclose(null[:64, 0], expected, rtol=1e-9)
    assert float(check["ksd"]["p_value_overall"]) == 0.01


def test_null_draws_that_the_alternative_cannot_have_made_stand_below_the_others() -> None:
    model, only_a = coin_and_only_a(stop=0.5)
    check = likelihood_ratio_check(
        model, Sequences.of(["a", "aa"], "ab"), alternative=only_a, num_bootstrap=200, progress=False
    )
    [statistic], null = parts(check)
    assert np.isfinite(null).all()
    possible = null >= null.min() + 0.5
    assert 0 < possible.sum() < 100
    assert (null[~possible] == null.min()).all()
    assert float(check["ksd"]["p_value_overall"]) == pytest.approx((1 + (null >= statistic - 1e-9).sum()) / 201)
    assert float(check["ksd"]["p_value_overall"]) < 0.3


class Shifted(Unsampled):
    """A model whose normalizer is not known."""

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return super().log_joint(sequences) + 7

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return walk().draw(num_sequences, generator)


@pytest.mark.parametrize("alternative", [1, walk(hold=0.1)])
def test_a_missing_constant_does_not_change_the_p_value(alternative: Any) -> None:
    x = walks(10, hold=0.1)
    known = likelihood_ratio_check(walk(), x, alternative=alternative, num_bootstrap=60, progress=False)
    unknown = likelihood_ratio_check(Shifted(walk()), x, alternative=alternative, num_bootstrap=60, progress=False)
    assert float(known["ksd"]["p_value_overall"]) == float(unknown["ksd"]["p_value_overall"])
    np.testing.assert_allclose(parts(unknown)[0], parts(known)[0] - 2 * 10 * 7)


def test_empty_sequences_are_fitted_as_well() -> None:
    length = torch.tensor([0.0, 0.0, 0.0])
    model = LinearChainMRF(torch.zeros(2, 2), length=length)
    x = Sequences.of([[], [], [0], [1, 1]], 2)
    check = likelihood_ratio_check(model, x, num_bootstrap=5, progress=False)
    own = 2 * math.log(1 / 7) + 2 * math.log(1 / 7)  # two empty ones, 0, 11 of seven equally probable sequences
    fitted = 2 * math.log(1 / 2) + 2 * math.log(1 / 4) + 2 * math.log(1 / 2)
    assert float(check["ksd"]["statistic"][0]) == pytest.approx(2 * (fitted - own))


@pytest.mark.parametrize("alternative", [1, 2, random_walk(hold=0.2)])
def test_likelihood_ratio_finds_a_wrong_model_and_keeps_a_right_one(alternative: Any) -> None:
    def p_value(hold: float) -> float:
        x = random_walk(hold=hold).draw(30, torch.Generator().manual_seed(5))
        check = likelihood_ratio_check(random_walk(), x, alternative=alternative, num_bootstrap=199, progress=False)
        return float(check["ksd"]["p_value_overall"])

    assert p_value(0.2) == 1 / 200
    assert p_value(0.0) > 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alternative": 0}, "alternative: expected an integer of at least 1, found 0"),
        ({"alternative": "best"}, "model: expected a Pyro program, a distribution, .* found str"),
        ({"pseudocount": -0.5}, "pseudocount: expected a number of at least 0, found -0.5"),
        ({"alternative": walk(), "pseudocount": 1}, "pseudocount: expected 0 for an alternative that is not fitted"),
        (
            {"data": Sequences.of([[0, 1], [], [2]], 5)},
            r"the model gives probability zero to 1 of 3 sequences: sequence 1, \[\]. It cannot have made them: widen",
        ),
        (
            {"alternative": constrain(walk(), lambda x: x.lengths > 2), "data": Sequences.of([[0, 1], [0, 1, 2]], 5)},
            r"alternative: the model gives probability zero to 1 of 2 sequences: sequence 0, \[0, 1\]. .* pass one",
        ),
        (
            {"sampler": lambda number, generator: Sequences.of([[]] * number, 5)},
            "expected sequences drawn from the model to be possible under it, .* does the sampler draw from the model",
        ),
    ],
)
def test_likelihood_ratio_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        likelihood_ratio_check(**({"model": walk(), "data": walks(), "progress": False} | arguments))


def test_data_with_the_smallest_ratio_do_not_tie_with_impossible_draws() -> None:
    model, only_a = coin_and_only_a(stop=0.5)
    shortest = Sequences.of(["a", "a"], "ab")  # each symbol adds 2 log 2
    check = likelihood_ratio_check(model, shortest, alternative=only_a, num_bootstrap=200, progress=False)
    [statistic], null = parts(check)
    assert statistic == pytest.approx(4 * math.log(2))
    possible = (null >= statistic - 1e-9).sum()
    assert 0 < possible < 100
    assert float(check["ksd"]["p_value_overall"]) == pytest.approx((1 + possible) / 201)


def test_all_draws_may_be_impossible_under_the_alternative() -> None:
    model, only_a = coin_and_only_a(stop=0.02)
    check = likelihood_ratio_check(
        model, Sequences.of(["a", "aa"], "ab"), alternative=only_a, num_bootstrap=50, progress=False
    )
    [statistic], null = parts(check)
    assert (null < statistic).all()
    assert float(check["ksd"]["p_value_overall"]) == pytest.approx(1 / 51)
