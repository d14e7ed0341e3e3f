# SPDX-License-Identifier: Apache-2.0
"""Lengths compared with those of draws: the mean, the bound, and that no draw is used twice."""

from __future__ import annotations

import torch

from pyro_ksd.examples import random_walk
from pyro_ksd.stein.drawn_lengths import DrawnLengths
from pyro_ksd.stein.stream_views import length_bins


def test_the_mean_under_the_model_is_zero() -> None:
    walk = random_walk(3)
    drawn = walk.draw(20_000, torch.Generator().manual_seed(0))
    psi = DrawnLengths(walk, seed=1).features(drawn.lengths, 0)
    z = psi.mean(0) / psi.std(0).clamp(min=1e-12) * len(psi) ** 0.5
    assert z.abs().max() < 4
    assert psi.std(0).max() > 0.2


def test_each_sequence_has_draws_of_its_own() -> None:
    lengths = torch.full((5000,), 1)
    expected = DrawnLengths(random_walk(3), seed=0).features(lengths, 0) + length_bins(lengths)
    neighbors = torch.stack([expected[:-1, 2], expected[1:, 2]])
    assert torch.corrcoef(neighbors)[0, 1].abs() < 4 / 5000**0.5
    assert (4 * expected).round().allclose(4 * expected)  # four draws each
    assert expected.mean(0)[1:4].min() > 0.05


def test_draws_depend_on_seed_and_row_alone() -> None:
    lengths = torch.arange(1, 3001) % 7
    walk = random_walk(3)
    whole = DrawnLengths(walk, seed=0).features(lengths, 0)
    cut = DrawnLengths(walk, seed=0)
    parts = [cut.features(lengths[begin:end], begin) for begin, end in ((0, 1), (1, 1024), (1024, 1030), (1030, 3000))]
    assert torch.cat(parts).equal(whole)
    assert not DrawnLengths(walk, seed=1).features(lengths, 0).equal(whole)
    assert cut.features(lengths[5:9], 5).equal(whole[5:9])  # going back
