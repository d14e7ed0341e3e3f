# SPDX-License-Identifier: Apache-2.0
"""Drawing symbols, and sequences symbol by symbol."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pyro_ksd.models.distributions.sampling import PAD, cumulative, grow, pick


def test_cumulated_probabilities_end_with_one() -> None:
    found = cumulative(torch.tensor([[0.1, 0.2, 0.7], [2.0, 0.0, 2.0]]))
    assert found.dtype == torch.double
    assert found[:, -1].tolist() == [1.0, 1.0]
    torch.testing.assert_close(found[1], torch.tensor([0.5, 0.5, 1.0], dtype=torch.double))
    assert cumulative(torch.rand(50, 7))[:, -1].eq(1.0).all()


def test_picks_have_their_probabilities() -> None:
    probs = torch.tensor([0.2, 0.0, 0.5, 0.3])
    found = pick(cumulative(probs.expand(40_000, 4)), torch.Generator().manual_seed(0))
    assert found.dtype == torch.long
    shares = found.bincount(minlength=4) / 40_000
    assert shares[1] == 0
    assert (shares - probs).abs().max() < 4 * (0.25 / 40_000) ** 0.5


def test_what_has_probability_zero_is_never_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = cumulative(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]))
    for uniform, expected in ((0.0, [1, 1]), (0.5, [1, 2]), (1 - 2**-53, [1, 2])):
        drawn = torch.full((2, 1), uniform, dtype=torch.double)
        monkeypatch.setattr(torch, "rand", lambda *_, drawn=drawn, **__: drawn)
        assert pick(rows, None).tolist() == expected


def test_picks_follow_the_generator_or_the_global_state() -> None:
    rows = cumulative(torch.ones(30, 5))
    state = torch.get_rng_state()
    one, same, other = (pick(rows, torch.Generator().manual_seed(seed)).tolist() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert one == same != other
    first, second = pick(rows, None).tolist(), pick(rows, None).tolist()
    torch.set_rng_state(state)
    assert pick(rows, None).tolist() == first != second


LENGTHS = torch.tensor([2, 0, 3, 1])


def up_to(position: int, alive: Tensor) -> Tensor:
    """Sequences of the lengths above, with the row and the position as the symbol."""
    return torch.where(position < LENGTHS[alive], 10 * alive + position, PAD)


def test_sequences_grow_until_all_have_ended() -> None:
    assert grow(4, 3, up_to).tolist() == [[0, 1, -1], [-1, -1, -1], [20, 21, 22], [30, -1, -1]]


def test_only_rows_that_are_alive_are_asked() -> None:
    asked: list[list[int]] = []

    def step(position: int, alive: Tensor) -> Tensor:
        asked.append(alive.tolist())
        return up_to(position, alive)

    grow(4, 10, step)
    assert asked == [[0, 1, 2, 3], [0, 2, 3], [0, 2], [2]]


def test_nothing_but_empty_sequences() -> None:
    found = grow(3, 5, lambda position, alive: torch.full_like(alive, PAD))
    assert found.shape == (3, 0)
    assert found.dtype == torch.long


def test_too_long_sequences_are_counted() -> None:
    message = "1 of 4 sequences were still alive at max_length=2; raise max_length, or make the sequences shorter"
    with pytest.raises(ValueError, match=message):
        grow(4, 2, up_to)
