# SPDX-License-Identifier: Apache-2.0
"""Replicated data in numbers, against plain loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests import replicates
from pyro_ksd.fit_tests.replicates import Replicates, counted_symbols, draw_replicates
from pyro_ksd.sequences.container import Sequences


def drawn(count: int, seed: int = 0) -> Sequences:
    return random_walk(5, mean_length=4.0).draw(count, torch.Generator().manual_seed(seed))


def test_numbers_are_those_of_plain_loops() -> None:
    sequences = Sequences.cat([drawn(9), Sequences.of([[], [4, 4, 4]], 5), drawn(4, seed=1)])
    lists = sequences.to_lists()
    found = Replicates.of(sequences, 3, torch.tensor([0, 3, 4]), tokens=True)
    assert found.counts is not None
    assert found.tokens is not None
    for row, symbols in enumerate(lists):
        place = row // 5, row % 5
        assert found.length[place] == len(symbols)
        assert found.distinct[place] == len(set(symbols))
        assert found.counts[place].tolist() == [symbols.count(code) for code in (0, 3, 4)]
        padded = found.tokens[place].tolist()
        assert padded == symbols + [-1] * (len(padded) - len(symbols))
    assert found.tokens.shape[-1] == max(map(len, lists))  # not as wide as the draws of a program may be


def test_parts_are_joined_as_if_they_had_been_one() -> None:
    sequences = drawn(12)
    symbols = counted_symbols(sequences)
    whole = Replicates.of(sequences, 4, symbols, tokens=True)
    halves = [Replicates.of(sequences[rows], 2, symbols, tokens=True) for rows in (slice(6), slice(6, 12))]
    joined = Replicates.cat(halves)
    assert list(joined.parts) == ["length", "distinct", "symbols", "counts", "tokens"]
    for name, values in whole.parts.items():
        assert torch.equal(values, joined.parts[name])
    assert torch.equal(Replicates(**whole.parts).length, whole.length)


def test_numbers_take_two_bytes_unless_they_are_large() -> None:
    short = Replicates.of(drawn(6), 2, torch.tensor([0]))
    assert {short.length.dtype, short.distinct.dtype} == {torch.int16}
    long = Replicates.of(Sequences.of([[0] * 40_000, [1]], 2), 1, torch.tensor([0, 1]))
    assert long.length.tolist() == [[40_000, 1]]
    assert long.counts is not None
    assert long.counts.tolist() == [[[40_000, 0], [0, 1]]]


def test_the_most_frequent_symbols_are_counted() -> None:
    text = [[code] * (50 - code) for code in range(40)]
    assert counted_symbols(Sequences.of(text, 40)).tolist() == list(range(30))
    assert counted_symbols(Sequences.of(text[::-1][:3], 50)).tolist() == [*range(27), 37, 38, 39]


def test_too_many_counts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicates, "_MOST_ENTRIES", 20)
    symbols = torch.tensor([0, 1])
    assert Replicates.of(drawn(11), 1, symbols).counts is None
    parts = [Replicates.of(drawn(6), 1, symbols), Replicates.of(drawn(6), 1, symbols)]
    assert all(part.counts is not None for part in parts)
    assert Replicates.cat(parts).counts is None
    assert Replicates.cat(parts).length.shape == (2, 6)


def test_draws_have_the_size_of_the_data_and_come_from_the_model() -> None:
    model = random_walk(5, mean_length=5.0)
    found = draw_replicates(model, drawn(200), 20, torch.Generator().manual_seed(0))
    assert found.length.shape == (20, 200)
    assert found.tokens is None
    lengths = found.length.double()
    expected = model.draw(4000, torch.Generator().manual_seed(1)).lengths.double().mean()
    assert abs(lengths.mean() - expected) < 5 * lengths.std() * (2 / lengths.numel()) ** 0.5
    assert len({tuple(row) for row in found.length.tolist()}) == 20


def test_arguments() -> None:
    with pytest.raises(ValueError, match="num_sets: expected an integer of at least 1, found 0"):
        Replicates.of(drawn(3), 0, torch.tensor([0]))
    with pytest.raises(ValueError, match=r"generator: expected a torch.Generator"):
        draw_replicates(random_walk(5), drawn(3), 2, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected sequences over the model's 3 symbols, found an alphabet of 5"):
        draw_replicates(random_walk(3), drawn(3), 2, torch.Generator())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Replicates.of(["ab"], 1, torch.tensor([0])), "sequences"),  # type: ignore[arg-type]
        (lambda: Replicates.of(drawn(4), 2, torch.tensor([0]), tokens="yes"), "tokens"),  # type: ignore[arg-type]
        (lambda: counted_symbols(["ab"]), "sequences"),  # type: ignore[arg-type]
        (lambda: draw_replicates(random_walk(5), drawn(4), 0, torch.Generator()), "num_sets"),
    ],
)
def test_wrong_arguments(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


def test_as_many_counts_as_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences, symbols = drawn(12), torch.tensor([0, 3])
    monkeypatch.setattr(replicates, "_MOST_ENTRIES", 24)
    whole = Replicates.of(sequences, 4, symbols)
    assert whole.counts is not None
    halves = [Replicates.of(sequences[rows], 2, symbols) for rows in (slice(6), slice(6, 12))]
    assert Replicates.cat(halves).counts is not None
    monkeypatch.setattr(replicates, "_MOST_ENTRIES", 23)
    assert Replicates.of(sequences, 4, symbols).counts is None
    assert Replicates.cat(halves).counts is None


def test_empty_sequences_alone() -> None:
    found = Replicates.of(Sequences.of([[], []], 2), 1, torch.tensor([0, 1]), tokens=True)
    assert found.tokens is not None
    assert found.tokens.shape == (1, 2, 0)
    assert found.length.tolist() == [[0, 0]]


@pytest.mark.parametrize(("length", "kind"), [(10_000, torch.int16), (10_001, torch.int32)])
def test_numbers_up_to_ten_thousand_take_two_bytes(length: int, kind: torch.dtype) -> None:
    assert Replicates.of(Sequences.of([[0] * length], 1), 1, torch.tensor([0])).length.dtype == kind
