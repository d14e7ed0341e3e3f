# SPDX-License-Identifier: Apache-2.0
"""Evidence by betting, against plain loops and by exact enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests.betting import BLOCK, Bets, log_mean_evidence


def random_psi(num: int, width: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(num, width, dtype=torch.double, generator=generator) - 0.3


def plain_path(psi: list[list[float]], reach: float, memory: float | None) -> list[float]:
    """The mean wealth after each sequence, one multiplication at a time."""
    width = len(psi[0])
    stakes = [0.9, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    total, squares, direction = [0.0] * width, [0.0] * width, [0.0] * width
    wealth = [1.0] * len(stakes)
    path = []
    for i, row in enumerate(psi):
        most = reach * (max(0.0, *direction) - min(0.0, *direction))
        payoff = sum(g * value for g, value in zip(direction, row, strict=True)) / most if most else 0.0
        for k, stake in enumerate(stakes):
            if memory is not None:
                wealth[k] = max(wealth[k], 1.0)
            wealth[k] *= 1 + stake * payoff
        path.append(sum(wealth) / len(wealth))
        for u, value in enumerate(row):
            total[u] += value
            squares[u] += value**2
        if i % 16 == 15:
            z = [a / math.sqrt(b) if b else 0.0 for a, b in zip(total, squares, strict=True)]
            direction = [min(max(value, -3.0), 3.0) for value in z]
            kept = 1.0 if memory is None else math.exp(-16 / memory)
            total = [kept * value for value in total]
            squares = [kept * value for value in squares]
    return path


@pytest.mark.parametrize("memory", [None, 50.0])
@pytest.mark.parametrize("width", [1, 4])
def test_against_plain_loops(memory: float | None, width: int) -> None:
    psi = random_psi(150, width)
    _, found = Bets.at_start(width, float(width), memory).after(psi, 0)
    assert found.exp().tolist() == pytest.approx(plain_path(psi.tolist(), float(width), memory), rel=1e-12)
    assert found[-1] > 1  # they win


@pytest.mark.parametrize("memory", [None, 50.0])
@pytest.mark.parametrize("cuts", [[1] * 150, [7, 16, 100, 27], [16, 16, 118], [150]])
def test_the_evidence_does_not_depend_on_the_cuts(memory: float | None, cuts: list[int]) -> None:
    psi = random_psi(150, 3)
    whole = Bets.at_start(3, 3.0, memory).after(psi, 0)[1]
    bets, begin, paths = Bets.at_start(3, 3.0, memory), 0, []
    for part in psi.split(cuts):
        bets, path = bets.after(part, begin)
        begin += len(part)
        paths.append(path)
    assert torch.cat(paths).allclose(whole, rtol=1e-12, atol=1e-13)


def test_no_sequences_change_nothing() -> None:
    bets, _ = Bets.at_start(2, 2.0).after(random_psi(20, 2), 0)
    after, path = bets.after(torch.zeros(0, 2, dtype=torch.double), 20)
    assert after is bets
    assert not len(path)


def test_the_mean_evidence_of_a_fair_game_is_1() -> None:
    """All outcomes of fair coins after a first block that leans to one side."""
    first = torch.cat([torch.ones(12, 1), -torch.ones(4, 1)]).double()
    bets, _ = Bets.at_start(1, 1.0).after(first, 0)
    outcomes = torch.tensor(list(product([-1.0, 1.0], repeat=8)), dtype=torch.double)[:, :, None]
    paths = torch.stack([bets.after(own, BLOCK)[1] for own in outcomes]).exp()
    assert paths.mean(0).tolist() == pytest.approx([1.0] * 8, rel=1e-12)
    assert paths[:, -1].std() > 0.1


@pytest.mark.parametrize("chance", [0.1, 0.3])
def test_the_mean_of_restarted_evidence_grows_by_at_most_1(chance: float) -> None:
    """Ville's and the run length's guarantee: M_n - n is a supermartingale for games that are fair but skewed."""
    generator = torch.Generator().manual_seed(1)
    wins = torch.rand(3000, 80, 1, generator=generator) < chance
    psi = torch.where(wins, 1 - chance, -chance).double()
    last = torch.stack([Bets.at_start(1, 1.0, 1000.0).after(own, 0)[1][-1] for own in psi]).exp()
    assert float(last.mean()) < 80 + 4 * float(last.std()) / len(last) ** 0.5
    assert float(last.mean()) > 1


def test_directions_are_chosen_from_the_past_alone() -> None:
    psi = random_psi(2 * BLOCK, 2)
    other = psi.clone()
    other[BLOCK + 5 :] = -other[BLOCK + 5 :]
    found = [Bets.at_start(2, 2.0).after(own, 0)[1] for own in (psi, other)]
    assert found[0][: BLOCK + 5].equal(found[1][: BLOCK + 5])
    assert found[0][BLOCK + 5] != found[1][BLOCK + 5]


def test_a_wrong_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="reach: expected a bound"):
        Bets.at_start(1, 0.5).after(torch.ones(2 * BLOCK, 1, dtype=torch.double), 0)


def test_a_bound_that_is_just_reached_is_right() -> None:
    """Payoffs of 1, up to rounding; a bound that is too small by one in a million is refused."""
    psi = torch.ones(2 * BLOCK, 1, dtype=torch.double)
    _, path = Bets.at_start(1, 1 - 1e-12).after(psi, 0)
    assert float(path[-1].exp()) == pytest.approx(plain_path(psi.tolist(), 1.0, None)[-1], rel=1e-9)
    with pytest.raises(ValueError, match="reach: expected a bound"):
        Bets.at_start(1, 1 - 1e-6).after(psi, 0)


def test_scores_are_sums_over_their_spreads() -> None:
    psi = random_psi(20, 3)
    psi[:, 1] = 0.0
    bets, _ = Bets.at_start(3, 3.0).after(psi, 0)
    expected = psi.sum(0) / psi.square().sum(0).sqrt()
    expected[1] = 0.0
    assert bets.z.allclose(expected)
    assert Bets.at_start(3, 3.0).z.tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Bets.at_start(0, 1.0), "num_features"),
        (lambda: Bets.at_start(1, 0.0), "reach"),
        (lambda: Bets.at_start(1, 1.0, memory=-1.0), "memory"),
        (lambda: Bets.at_start(1, 1.0).after(torch.ones(1, 1).double(), -1), "begin"),
        (lambda: Bets.at_start(1, 1.0).after(torch.ones(1, 2).double(), 0), "psi"),
        (lambda: Bets.at_start(1, 1.0).after([[1.0]], 0), "psi"),
        (lambda: log_mean_evidence(3.0), "paths"),
    ],
)
def test_wrong_arguments(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


def test_the_mean_of_views() -> None:
    paths = [torch.tensor([0.0, 5.0]).double(), torch.tensor([-2.0, 1.0]).double()]
    expected = [(1 + math.exp(-2)) / 2, (math.exp(5) + math.exp(1)) / 2]
    assert log_mean_evidence(paths).exp().tolist() == pytest.approx(expected)
