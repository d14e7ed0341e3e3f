# SPDX-License-Identifier: Apache-2.0
"""Draws from tables of factors: exact probabilities of the next symbol, and frequencies of sequences."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import pytest
import torch
from pyro_programs import SIZE, simplex
from scipy.stats import chisquare
from torch import Tensor

from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distributions.factor_table import FactorTable, context_is_possible
from pyro_ksd.models.posterior.table_draws import draw_each, next_symbol_probs
from pyro_ksd.models.wrappers.tabulated import tabulate
from pyro_ksd.sequences.container import Sequences

COUNT = 20_000
EVERY = Sequences.of([list(x) for length in range(4) for x in product(range(SIZE), repeat=length)], SIZE)


def chains(order: int, count: int = 2) -> list[MarkovSequence]:
    return [MarkovSequence(own, order=order) for own in simplex(count, *[SIZE + 1] * (order + 1))]


def table_of(*models: SequenceModel, order: int, constant: float = 0.0) -> FactorTable:
    return tabulate(lambda words: torch.stack([model.log_joint(words) + constant for model in models]), SIZE, order)


def check_frequencies(found: Sequences, probs: Tensor) -> None:
    """Compares the frequencies of all short sequences, and of the others together, with their probabilities."""
    counts = Counter(map(tuple, found.to_lists()))
    observed = [counts.pop(tuple(x), 0) for x in EVERY.to_lists()]
    possible = [(count, p) for count, p in zip(observed, probs.tolist(), strict=True) if p > 0 or count > 0]
    frequencies = [*(count for count, _ in possible), counts.total()]
    expected = [*(p for _, p in possible), 1 - float(probs.sum())]
    assert chisquare(frequencies, [len(found) * p for p in expected]).pvalue > 1e-3


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("constant", [0.0, -3000.0, 3000.0])
def test_the_table_of_a_chain_gives_back_its_probabilities(order: int, constant: float) -> None:
    models = chains(order)
    found = next_symbol_probs(table_of(*models, order=order, constant=constant))
    assert found is not None
    possible = context_is_possible(SIZE, order).view(-1)
    for own, model in zip(found, models, strict=True):
        expected = model.probs.reshape(-1, SIZE + 1)
        torch.testing.assert_close(own[possible], expected[possible], rtol=1e-10, atol=1e-10)


class Field(SequenceModel):
    """An unnormalized model with a weight for each pair of neighbors, and one for each symbol."""

    alphabet_size = SIZE

    def __init__(self, weight: float) -> None:
        self.weight = torch.tensor(weight).log().double()

    def log_joint(self, sequences: Sequences) -> Tensor:
        repeats = (sequences.tokens[:, 1:] == sequences.tokens[:, :-1]) & sequences.mask[:, 1:]
        return self.weight * sequences.lengths + 0.7 * repeats.sum(1)


def test_an_unnormalized_model() -> None:
    """All contexts are alike, so a sequence grows by the weight of all symbols that may come next."""
    weight = 0.15
    found = next_symbol_probs(table_of(Field(weight), order=1))
    assert found is not None
    growth = weight * (SIZE - 1 + torch.tensor(0.7).double().exp())
    torch.testing.assert_close(found[0, :SIZE, SIZE], (1 - growth).expand(SIZE))
    total = 1 + SIZE * weight / (1 - growth)
    check_frequencies(
        draw_each(found, COUNT, torch.Generator().manual_seed(0)), Field(weight).log_joint(EVERY).exp() / total
    )


@pytest.mark.parametrize("weight", [1.0, 0.25, 0.2494])
def test_a_sum_over_all_sequences_that_diverges_or_nearly_so(weight: float) -> None:
    """Weights of 1/4.01 or more for each symbol diverge; just below, sequences would be very long."""
    assert next_symbol_probs(table_of(Field(weight), order=1)) is None


def test_models_without_a_distribution_of_the_length() -> None:
    class Symbols(SequenceModel):
        alphabet_size = SIZE

        def log_joint(self, sequences: Sequences) -> Tensor:
            return -sequences.lengths * torch.tensor(float(SIZE)).double().log()

    assert next_symbol_probs(table_of(Symbols(), order=1)) is None
    assert next_symbol_probs(table_of(chains(1)[0], Symbols(), order=1)) is None


def test_tables_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(*chains(2), order=2)
    monkeypatch.setattr("pyro_ksd.models.posterior.table_draws.ENTRIES", 2 * 16 * 16)
    assert next_symbol_probs(table) is not None
    monkeypatch.setattr("pyro_ksd.models.posterior.table_draws.ENTRIES", 2 * 16 * 16 - 1)
    assert next_symbol_probs(table) is None


@pytest.mark.parametrize("order", [1, 2])
def test_frequencies_of_draws(order: int) -> None:
    models = chains(order)
    probs = next_symbol_probs(table_of(*models, order=order))
    assert probs is not None
    found = draw_each(probs, COUNT, torch.Generator().manual_seed(order))
    for index, model in enumerate(models):
        check_frequencies(found[index * COUNT : (index + 1) * COUNT], model.log_joint(EVERY).exp())


def test_lengths_of_draws_over_many_blocks_of_random_numbers() -> None:
    stop = 0.02
    law = torch.ones(SIZE, dtype=torch.double) / SIZE
    probs = next_symbol_probs(table_of(MarkovSequence.from_transitions(law, law.expand(SIZE, SIZE), stop), order=1))
    assert probs is not None
    lengths = draw_each(probs, COUNT, torch.Generator().manual_seed(0)).lengths
    edges = [1, 10, 33, 65, 97, 129]
    counts = [int(((lengths >= low) & (lengths < high)).sum()) for low, high in pairwise(edges)]
    beyond = [(1 - stop) ** (edge - 1) for edge in edges]
    expected = [low - high for low, high in pairwise(beyond)]
    frequencies = [*counts, COUNT - sum(counts)]
    assert chisquare(frequencies, [COUNT * p for p in (*expected, beyond[-1])]).pvalue > 1e-3


def test_each_model_draws_the_same_whatever_the_others_are() -> None:
    probs = next_symbol_probs(table_of(*chains(1, count=4), order=1))
    assert probs is not None
    together = draw_each(probs, 30, torch.Generator().manual_seed(0)).to_lists()
    generator = torch.Generator().manual_seed(0)
    apart = [x for part in (probs[:1], probs[1:3], probs[3:]) for x in draw_each(part, 30, generator).to_lists()]
    assert together == apart
    assert len({str(together[begin : begin + 30]) for begin in range(0, 120, 30)}) == 4


MOVES = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], dtype=torch.double)


def test_impossible_symbols_are_never_drawn() -> None:
    chain = MarkovSequence.from_transitions(torch.tensor([0.6, 0.4, 0.0]).double(), MOVES, 0.3)
    probs = next_symbol_probs(table_of(chain, order=1))
    assert probs is not None
    found = draw_each(probs, COUNT, torch.Generator().manual_seed(0))
    assert chain.log_joint(found).isfinite().all()
    check_frequencies(found, chain.log_joint(EVERY).exp())


def test_a_context_that_the_table_does_not_know() -> None:
    """The symbol 2 comes after two others at the earliest, where the table does not look for it."""
    chain = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0, 0.0]).double(), MOVES, 0.3)
    assert next_symbol_probs(table_of(chain, order=1)) is None
