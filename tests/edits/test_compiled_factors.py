# SPDX-License-Identifier: Apache-2.0
"""Sums of factors in compiled loops against plain sums over windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyro_ksd import Sequences
from pyro_ksd.edits import DoubleSubstitutions, InsertionsDeletions, zs
from pyro_ksd.edits.compiled_factors import Factors, log_joints, log_ratios

S = 3
BASE = S + 1
DATA = Sequences.of([[0, 1, 2, 1], [], [2], [1, 1, 0]], S)


def padded(sequences: Sequences, width: int) -> np.ndarray:
    filled = sequences.tokens.masked_fill(~sequences.mask, S)
    return torch.nn.functional.pad(filled, (width - 1, 1), value=S).numpy()


def plain_sum(symbols: list[int], table: np.ndarray, width: int) -> float:
    whole = [S] * (width - 1) + symbols + [S]
    return float(sum(table[tuple(whole[place : place + width])] for place in range(len(symbols) + 1)))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_log_joints_and_ratios(width: int) -> None:
    tables = np.random.default_rng(width).normal(size=(2, *[BASE] * width))
    offsets = np.array([0, 1, 1, 0]) * BASE**width
    factors = Factors(tables.reshape(-1), offsets, BASE, width)
    sums = np.full(4, np.nan)
    log_joints(0, 3, padded(DATA, width), DATA.lengths.numpy(), factors, sums)
    log_joints(3, 4, padded(DATA, width), DATA.lengths.numpy(), factors, sums)
    rows = DATA.to_lists()
    which = [0, 1, 1, 0]
    np.testing.assert_allclose(sums, [plain_sum(rows[i], tables[which[i]], width) for i in range(4)], rtol=1e-12)
    terms = np.array([0.5, -1.0, 2.0, 0.25, -0.75, 3.0])
    around = zs() | InsertionsDeletions(locations=1) | DoubleSubstitutions()
    edits = around.edits(DATA)
    assert edits.flat is not None
    for own in (terms, terms[:0]):
        ratios = np.full(len(edits), np.nan)
        log_ratios(0, 4, padded(DATA, width), DATA.lengths.numpy(), edits.flat, factors, own, ratios)
        expected = []
        for owner, edited in zip(edits.owner.tolist(), edits.apply(DATA).to_lists(), strict=True):
            difference = plain_sum(edited, tables[which[owner]], width) - sums[owner]
            expected.append(difference + (own[len(edited)] - own[len(rows[owner])] if len(own) else 0.0))
        np.testing.assert_allclose(ratios, expected, rtol=1e-10, atol=1e-12)


def test_edits_may_be_impossible() -> None:
    table = np.zeros(BASE)
    table[2] = -np.inf
    data = Sequences.of([[0, 1]], S)
    edits = zs().edits(data)
    assert edits.flat is not None
    ratios = np.full(len(edits), np.nan)
    factors = Factors(table, np.zeros(1, dtype=np.int64), BASE, 1)
    log_ratios(0, 1, padded(data, 1), data.lengths.numpy(), edits.flat, factors, np.zeros(0), ratios)
    assert ratios.tolist() == [-np.inf if 2 in edited else 0.0 for edited in edits.apply(data).to_lists()]
