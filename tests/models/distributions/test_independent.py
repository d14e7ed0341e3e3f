# SPDX-License-Identifier: Apache-2.0
"""Independent symbols with a distribution of the length."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pyro.distributions as dist
import pytest
import scipy.stats
import torch

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import IndependentSequence
from pyro_ksd.models.distributions.independent import _distribution_function
from pyro_ksd.sequences.container import Sequences

PROBS = torch.tensor([0.2, 0.3, 0.5], dtype=torch.double)


def number(x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.double)


LAWS = {
    "poisson": (dist.Poisson(number(2.5)), scipy.stats.poisson(2.5)),
    "geometric": (dist.Geometric(number(0.4)), scipy.stats.geom(0.4, loc=-1)),
    "negative binomial": (dist.NegativeBinomial(number(3.0), number(0.4)), scipy.stats.nbinom(3, 0.6)),
    "binomial": (dist.Binomial(3, number(0.7)), scipy.stats.binom(3, 0.7)),
    "torch": (torch.distributions.Poisson(number(1.5)), scipy.stats.poisson(1.5)),
    "tensor": (torch.tensor([0.1, 0.0, 0.9], dtype=torch.double), scipy.stats.rv_discrete(values=([0, 2], [0.1, 0.9]))),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("minimum", [0, 2])
def test_log_prob_against_a_loop(name, minimum):
    law, reference = LAWS[name]
    space = Sequences.of([list(x) for length in range(6) for x in product(range(3), repeat=length)], 3)
    target = []
    for x in space.to_lists():
        with np.errstate(divide="ignore"):  # SciPy 1.11 warns of lengths that are impossible
            length = reference.logpmf(len(x) - minimum)
        terms = [length, *(math.log(PROBS[symbol].item()) for symbol in x)]
        target.append(sum(terms))
    found = IndependentSequence(PROBS, law, minimum=minimum).log_joint(space)
    torch.testing.assert_close(found, torch.tensor(target, dtype=torch.double), rtol=1e-12, atol=1e-12)


def test_probabilities_of_a_length_sum_to_its_probability():
    model = IndependentSequence(PROBS, dist.Poisson(number(2.5)))
    for length in range(5):
        space = Sequences.of([list(x) for x in product(range(3), repeat=length)], 3)
        assert model.log_joint(space).exp().sum().item() == pytest.approx(
            scipy.stats.poisson(2.5).pmf(length), abs=1e-14
        )


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("minimum", [0, 2])
def test_drawn_lengths(name, minimum):
    law, reference = LAWS[name]
    drawn = IndependentSequence(PROBS, law, minimum=minimum).draw(5000, torch.Generator().manual_seed(0))
    error = (reference.var() / 5000) ** 0.5
    assert drawn.lengths.min() >= minimum
    assert drawn.lengths.double().mean().item() == pytest.approx(minimum + reference.mean(), abs=5 * error)
    shares = drawn.tokens[drawn.mask].bincount(minlength=3) / drawn.mask.sum()
    torch.testing.assert_close(shares.double(), PROBS, atol=5 * (0.25 / 5000) ** 0.5, rtol=0)


def test_length_is_impossible_outside_the_support():
    model = IndependentSequence(PROBS, dist.Binomial(1, number(0.5)), minimum=1)
    data = Sequences.of([[0], [0, 1]], 3)
    edits = zs().edits(data)
    grown = edits.new_lengths(data.lengths)
    assert model.log_joint(Sequences.of([[], [0, 0, 0]], 3)).tolist() == [-math.inf, -math.inf]
    assert (model.log_ratio(data, edits) == -math.inf).equal((grown < 1) | (grown > 2))
    assert {0, 3} <= set(grown.tolist())


def test_max_length():
    assert IndependentSequence(PROBS, torch.tensor([0.0, 0.5, 0.5]), minimum=3).event_shape == (5,)
    assert IndependentSequence(PROBS, torch.tensor([1.0])).sample().tolist() == [-1]
    assert IndependentSequence(PROBS, dist.Poisson(number(3.0))).event_shape == (1000,)
    fixed = torch.tensor([0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="6 of 6 sequences were still alive at max_length=1; raise max_length"):
        IndependentSequence(PROBS, fixed, max_length=1).draw(6)
    assert IndependentSequence(PROBS, fixed, max_length=2).sample((6,)).ge(0).all()


def test_a_length_beyond_max_length_is_drawn_as_often_as_it_is_probable():
    model = IndependentSequence(PROBS, dist.Geometric(number(0.2)), max_length=4)
    failed = 0
    for seed in range(400):
        try:
            model.draw(1, torch.Generator().manual_seed(seed))
        except ValueError:
            failed += 1
    expected = 400 * 0.8**5
    assert abs(failed - expected) < 4 * (expected * (1 - 0.8**5)) ** 0.5


@pytest.mark.parametrize(
    ("law", "rounded"),
    [
        (torch.full((10,), 0.1), True),  # single precision: the sum is not exactly 1
        (dist.NegativeBinomial(torch.tensor(500.0), torch.tensor(0.5)), True),
        (dist.Poisson(number(700.0)), True),
        (dist.Binomial(3, number(0.7)), True),
        (dist.Poisson(number(960.0)), False),
        (torch.tensor([0.5, 0.0, 0.0, 0.5]), True),
    ],
)
def test_rounding_makes_no_length_beyond_max_length(law, rounded):
    model = IndependentSequence(PROBS, law)
    [cumulated] = _distribution_function(model._length_terms(model.max_length + 1), 1e-3)
    assert (float(cumulated[-1]) == 1) == rounded
    if not rounded:
        tail = scipy.stats.poisson(960.0).sf(1001)
        assert 1 - float(cumulated[-1]) == pytest.approx(tail, rel=1e-6)


def test_the_rest_of_a_distribution_that_goes_on_later_is_no_rounding():
    model = IndependentSequence(PROBS, torch.tensor([0.5, 0.0, 0.0, 0.5]), max_length=1)
    [cumulated] = _distribution_function(model._length_terms(2), 1e-3)
    assert cumulated.tolist() == pytest.approx([0.5, 0.5, 0.5])


@pytest.mark.parametrize("name", LAWS)
def test_a_generator_leaves_the_global_state_alone(name):
    model = IndependentSequence(PROBS, LAWS[name][0])
    before = torch.get_rng_state()
    model.draw(5, torch.Generator().manual_seed(0))
    assert torch.get_rng_state().equal(before)


def test_threads_draw_what_one_thread_draws():
    # Draws that seeded torch's global state were those of other threads in 7 % of the cases.
    model = IndependentSequence(PROBS, dist.Poisson(number(6.0)))

    def drawn(seed: int) -> list[list[int]]:
        return model.draw(3, torch.Generator().manual_seed(seed)).to_lists()

    expected = [drawn(seed) for seed in range(600)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(drawn, range(600))) == expected


def test_each_member_of_a_batch_has_its_own_lengths():
    rates = torch.tensor([[1.0], [30.0]], dtype=torch.double)
    model = IndependentSequence(PROBS.expand(3, 3), dist.Poisson(rates))
    lengths = (model.sample(torch.Size([400])) >= 0).sum(-1).double().mean(0)
    error = (rates / 400).sqrt()
    assert lengths.shape == (2, 3)
    assert ((lengths - rates).abs() < 5 * error).all()


def test_batch_comes_from_both_parameters():
    law = dist.Geometric(torch.tensor([[0.5], [0.25]], dtype=torch.double))
    probs = torch.tensor([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]], dtype=torch.double)
    model = IndependentSequence(probs, law)
    assert model.batch_shape == (2, 3)
    assert model.probs.shape == (2, 3, 2)
    found = model.log_prob(torch.tensor([0])).exp()
    target = torch.tensor([[0.25], [0.1875]], dtype=torch.double) * probs[:, 0]
    torch.testing.assert_close(found, target)


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (
            dist.Categorical(torch.tensor([0.5, 0.5])),
            "length: expected .* found a Categorical, .* pass its probabilities as a tensor",
        ),
        (torch.distributions.Categorical(torch.tensor([0.5, 0.5])), "found a Categorical"),
        (dist.Normal(0.0, 1.0), "over the integers from 0, found Normal with the support Real"),
        (dist.Multinomial(2, torch.ones(2)), r"found Multinomial .* and the event shape \[2\]; pass a tensor"),
        (3, "a tensor of the probabilities of 0, 1, ..., found 3"),
        (torch.tensor([0.5, 0.4]), r"length: .* found the sum 0.9 at index \[\]"),
        (
            torch.tensor([1, 0]),
            r"length: expected a floating-point tensor of shape \[..., 2\], found torch.int64 \[2\]",
        ),
        (dist.Poisson(torch.ones(2)), r"found probs \[3\], length \[2\]"),
    ],
)
def test_bad_length(length, message):
    with pytest.raises(ValueError, match=message):
        IndependentSequence(PROBS.expand(3, 3), length)


@pytest.mark.parametrize(
    ("probs", "minimum", "message"),
    [
        (PROBS, -1, "minimum: expected an integer of at least 0, found -1"),
        (PROBS * 2, 0, r"probs: .* found the sum 2 at index \[\]; divide each row by its sum"),
        (PROBS - 0.3, 0, r"probs: expected probabilities in 0..1, found -0.1 at index \[0\]"),
        (torch.ones(0), 0, r"probs: expected at least one dimension, .* found \[0\]"),
    ],
)
def test_bad_parameters(probs, minimum, message):
    with pytest.raises(ValueError, match=message):
        IndependentSequence(probs, dist.Poisson(number(1.0)), minimum=minimum)


def test_successive_draws_with_one_generator_have_other_lengths():
    model = IndependentSequence(PROBS, dist.Poisson(number(20.0)))
    generator = torch.Generator().manual_seed(0)
    first, second = (model.draw(30, generator).lengths.tolist() for _ in range(2))
    assert first != second
    assert model.draw(30, torch.Generator().manual_seed(0)).lengths.tolist() == first


class FromZeroAndFromOne(dist.Poisson):
    """Two distributions of the length, only the first of which begins at 0."""

    support = torch.distributions.constraints.integer_interval(torch.tensor([0.0, 1.0]), torch.tensor([9.0, 9.0]))


def test_every_distribution_of_a_batch_begins_at_zero():
    with pytest.raises(ValueError, match="length: expected a distribution over the integers from 0, found FromZeroAnd"):
        IndependentSequence(PROBS, FromZeroAndFromOne(torch.tensor([2.0, 2.0])))


@pytest.mark.parametrize(
    ("last", "missing", "whole"),
    [
        (0.95e-12, 0.95e-3, True),
        (0.95e-12, 1.05e-3, False),
        (1.05e-12, 0.95e-3, False),  # longer lengths may have what is missing
        (1e-6, 1e-4, False),
        (0.1, -1e-7, True),  # no sum is larger than 1
    ],
)
def test_what_is_missing_is_rounding_if_it_is_little_and_the_end_has_died_out(last, missing, whole):
    probabilities = torch.tensor([0.5, 0.2, 0.1, 0.0, last / 5], dtype=torch.double)
    probabilities[3] = 1 - missing - probabilities.sum()
    found = _distribution_function(probabilities.log()[None], 1e-3)[0]
    assert float(found[-1]) == (1.0 if whole else pytest.approx(1 - missing, abs=1e-12))
    assert found.tolist() == pytest.approx((probabilities.cumsum(0) / ((1 - missing) if whole else 1)).tolist())


@pytest.mark.parametrize(("uniform", "expected"), [(0.0, 1), (0.2, 1), (0.25, 3), (0.99, 3)])
def test_a_length_of_probability_zero_is_never_drawn(uniform, expected, monkeypatch):
    model = IndependentSequence(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 0.25, 0.0, 0.75]).double())
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, uniform, dtype=torch.double))
    assert model._drawn_lengths(torch.zeros(3, dtype=torch.long), None).tolist() == [expected] * 3
