# SPDX-License-Identifier: Apache-2.0
"""Exact distributions of the length of all models that know them, against sums over all sequences and draws."""

from __future__ import annotations

from itertools import product

import pyro.distributions as dist
import pytest
import torch

from pyro_ksd.models import (
    HiddenMarkovSequence,
    IndependentSequence,
    LinearChainMRF,
    MarkovSequence,
    SequenceDistribution,
    TabulatedModel,
    constrain,
    with_sampler,
)
from pyro_ksd.models.distributions import stopping_lengths as module
from pyro_ksd.sequences.container import Sequences

DOUBLE = torch.double
S = 3


def rows(seed: int, *shape: int) -> torch.Tensor:
    weights = torch.rand(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed)) + 0.1
    return weights / weights.sum(-1, keepdim=True)


def stops_by_symbol() -> MarkovSequence:
    return MarkovSequence.from_transitions(rows(1, S), rows(2, S, S), torch.tensor([0.05, 0.9, 0.3], dtype=DOUBLE))


def only_even() -> LinearChainMRF:
    length = torch.tensor([0.0, -torch.inf, 1.0, -torch.inf, 0.5], dtype=DOUBLE)
    return LinearChainMRF(rows(7, S, S), rows(8, S), length)


MODELS: dict[str, SequenceDistribution] = {
    "order 1": stops_by_symbol(),
    "order 1, may be empty": MarkovSequence(rows(3, S + 1, S + 1)),
    "order 2": MarkovSequence(rows(4, S + 1, S + 1, S + 1), order=2),
    "order 3": MarkovSequence(rows(5, *[S + 1] * 4), order=3),
    "single precision": MarkovSequence(rows(6, S + 1, S + 1, S + 1).float(), order=2),
    "hidden Markov": HiddenMarkovSequence(rows(9, 2), rows(10, 2, 2), rows(11, 2, S), torch.tensor([0.8, 0.1])),
    "MRF": LinearChainMRF(rows(12, S, S), rows(13, S), max_length=6),
    "MRF of even lengths": only_even(),
    "Poisson": IndependentSequence(rows(14, S), dist.Poisson(torch.tensor(2.0, dtype=DOUBLE)), minimum=1),
    "table of lengths": IndependentSequence(rows(15, S), torch.tensor([0.0, 0.25, 0.0, 0.75], dtype=DOUBLE)),
}


@pytest.mark.parametrize("name", MODELS)
def test_lengths_are_sums_over_all_sequences(name: str) -> None:
    found = MODELS[name].length_distribution()
    assert found is not None
    assert float(found.probability.sum()) == pytest.approx(1.0, abs=1e-12)
    exact = {0: 0.0} | dict(zip(found.lengths.tolist(), found.probability.tolist(), strict=True))
    for length in range(6):
        words = [list(word) for word in product(range(S), repeat=length)]
        total = float(MODELS[name].log_joint(Sequences.of(words, S)).exp().sum())
        tolerance = 1e-6 if name in ("single precision", "hidden Markov") else 1e-10
        assert exact.get(length, 0.0) == pytest.approx(total, rel=tolerance, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_lengths_of_draws(name: str) -> None:
    """The largest distance of the distribution functions, at a level of 1e-4 (Kolmogorov and Smirnov)."""
    found = MODELS[name].length_distribution()
    assert found is not None
    lengths = MODELS[name].draw(20_000, torch.Generator().manual_seed(0)).lengths
    last = max(int(lengths.max()), int(found.lengths[-1])) + 1
    exact = torch.zeros(last, dtype=DOUBLE).index_add_(0, found.lengths, found.probability)
    drawn = lengths.bincount(minlength=last).double() / len(lengths)
    assert float((exact - drawn).cumsum(0).abs().max()) < 2.23 / len(lengths) ** 0.5


def test_a_program_of_known_order_has_the_lengths_of_its_table() -> None:
    walk = stops_by_symbol()
    data = walk.draw(20, torch.Generator().manual_seed(0))
    table = TabulatedModel(walk, order=1, data=data)
    found, exact = table.length_distribution(), walk.length_distribution()
    assert found is not None
    assert exact is not None
    count = len(found.probability)
    torch.testing.assert_close(found.probability, exact.probability[:count], rtol=1e-8, atol=1e-12)


def test_a_table_that_is_not_used_tells_nothing() -> None:
    model = MODELS["order 2"]
    data = model.draw(50, torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match="is not of order 1"):
        assert TabulatedModel(model, order=1, data=data).length_distribution() is None


def test_unnormalized_tables_tell_nothing() -> None:
    class Doubled(MarkovSequence):
        def log_joint(self, sequences: Sequences) -> torch.Tensor:
            return super().log_joint(sequences) + 0.7 * sequences.lengths

    initial, moves = rows(1, S), rows(2, S, S)
    model = Doubled.from_transitions(initial, moves, torch.tensor([0.7, 0.9, 0.8], dtype=DOUBLE))
    assert TabulatedModel(model, order=1).length_distribution() is None


def test_chains_that_go_on_for_too_long_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    never = MarkovSequence(torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=DOUBLE))
    assert never.length_distribution() is None
    rarely = MarkovSequence.from_transitions(rows(1, S), rows(2, S, S), stop=1e-4)
    assert rarely.length_distribution() is None
    heavy = IndependentSequence(rows(14, S), dist.Geometric(torch.tensor(1e-4, dtype=DOUBLE)))
    assert heavy.length_distribution() is None
    monkeypatch.setattr(module, "_MOST_WORK", 16 * 10)
    assert stops_by_symbol().length_distribution() is None  # ten steps of 16 products are too few


def test_batches_of_models_tell_nothing() -> None:
    two = torch.stack([rows(1, S + 1, S + 1), rows(2, S + 1, S + 1)])
    assert MarkovSequence(two).length_distribution() is None
    poisson = IndependentSequence(rows(1, 2, S), dist.Poisson(torch.ones(2, dtype=DOUBLE)))
    assert poisson.length_distribution() is None
    assert LinearChainMRF(rows(1, 2, S, S), max_length=3).length_distribution() is None
    hmm = HiddenMarkovSequence(rows(9, 2, 2), rows(10, 2, 2, 2), rows(11, 2, 2, S), torch.tensor([0.8, 0.1]))
    assert hmm.length_distribution() is None


def test_lengths_track_no_gradients() -> None:
    stop = torch.tensor([0.2, 0.5, 0.9], dtype=DOUBLE, requires_grad=True)
    found = MarkovSequence.from_transitions(rows(1, S), rows(2, S, S), stop).length_distribution()
    assert found is not None
    assert not found.probability.requires_grad


def test_wrappers_tell_only_what_they_do_not_change() -> None:
    walk = stops_by_symbol()
    sampled = with_sampler(walk, lambda size, generator: walk.draw(size, generator)).length_distribution()
    exact = walk.length_distribution()
    assert sampled is not None
    assert exact is not None
    assert sampled.probability.equal(exact.probability)
    assert constrain(walk, lambda sequences: sequences.lengths < 4).length_distribution() is None
