# SPDX-License-Identifier: Apache-2.0
"""Lengths of a chain with few states, step by step; those of whole models are in ``test_exact_lengths``."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.models.distributions.stopping_lengths import chain_lengths

DOUBLE = torch.double


def test_the_longest_chain_that_is_followed() -> None:
    half = torch.tensor([0.5], dtype=DOUBLE)
    found = chain_lengths(torch.ones(1, dtype=DOUBLE), half, lambda alive: alive * half, work=2**31 // 40)
    assert found is not None
    assert len(found.probability) == 40  # 2^-40 is below 1e-12
    assert chain_lengths(torch.ones(1, dtype=DOUBLE), half, lambda alive: alive * half, work=2**31 // 39) is None


def test_probabilities_of_each_step() -> None:
    """Two states, of which the second one always stops."""
    moves = torch.tensor([[0.3, 0.5], [0.0, 0.0]], dtype=DOUBLE)
    stop = torch.tensor([0.2, 1.0], dtype=DOUBLE)
    found = chain_lengths(torch.tensor([1.0, 0.0], dtype=DOUBLE), stop, lambda alive: alive @ moves, work=4)
    assert found is not None
    assert found.shortest == 0
    expected = [0.2, *(0.3**k * 0.2 + 0.3 ** (k - 1) * 0.5 for k in range(1, 20))]
    assert found.probability[:20].tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("total", "is_known"), [(1.0009, True), (0.9991, True), (1.0011, False), (0.9989, False)])
def test_probabilities_add_up_to_1_but_for_rounding(total: float, is_known: bool) -> None:
    one = torch.ones(1, dtype=DOUBLE)
    found = chain_lengths(one, total * one, lambda alive: 0 * alive, work=1)
    assert (found is not None) == is_known
