# SPDX-License-Identifier: Apache-2.0
"""The study of intervals of factors: that its shortcuts are exact, and a small page of it."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import binom

from benchmarks.intervals import (
    EXPECTED,
    FACTORS,
    KINDS,
    SIZES,
    Coverage,
    Planted,
    factor_coverage,
    model_of,
    page,
    with_expected,
)
from benchmarks.rejections import seeded
from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests.tilting import tilt_each, tilts
from pyro_ksd.models.wrappers.tilted import TiltedModel

PAIR = Count("ngram", (0, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_listed_jumps_give_the_estimates_of_the_data_themselves(kind: str) -> None:
    planted = Planted(model_of(kind, rarity=1.0), PAIR)
    rows = planted.rows(2.0, 80, torch.Generator().manual_seed(0))
    found = tilt_each([planted.jumps(rows)], 1, 0.95)
    direct = tilts(planted.model, planted.space[rows], zs(), [PAIR])
    for name in ("log_factor", "error", "low", "high", "events"):
        torch.testing.assert_close(getattr(found, name), getattr(direct, name), rtol=1e-7, atol=1e-9)


def test_the_factor_is_planted() -> None:
    planted = Planted(model_of("chain"), PAIR)
    tilted = TiltedModel(planted.model, {PAIR: math.log(3.0)}).log_joint(planted.space).softmax(0)
    torch.testing.assert_close(planted.probability(3.0), tilted)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_as_rare_as_is_asked_for(kind: str) -> None:
    assert with_expected(kind, 0.01).expected() == pytest.approx(0.01, rel=1e-3)


def test_coverage_in_words() -> None:
    assert Coverage(10, [True, True, False, True]).text == "0.750 (4 of 10)"
    assert Coverage(10, []).text == " (0 of 10)"


def test_the_page_has_all_tables() -> None:
    text = page(runs=2, checks=1, draws=9, seed=0, sizes=[50], check_sizes=[20], tolerance_sizes=[20])
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith(("| chain", "| MRF"))]
    assert [len(row) for row in rows] == [7] * 6 + [3] * 8 + [4] * 10
    assert "`python -m benchmarks.intervals --runs 2 --checks 1 --draws 9 --seed 0`" in text


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rarity", EXPECTED)
@pytest.mark.parametrize("kind", KINDS)
def test_coverage_given_that_a_factor_is_stated(kind: str, rarity: str, size: int) -> None:
    runs = 600 if size <= 1000 else 200
    planted = with_expected(kind, EXPECTED[rarity] / size)
    for factor in FACTORS:
        found = factor_coverage(planted, factor, size, runs, seeded(1, f"{kind}, {rarity}, {factor}", size))
        print(f"\n{kind}, {rarity}, n = {size}, factor {factor}: {found.text}")
        known = len(found.said)
        assert sum(found.said) >= binom.ppf(0.0005, known, 0.94)
        if rarity == "frequent" and factor >= 1:
            assert known == runs
            assert sum(found.said) <= binom.ppf(0.9995, known, 0.97)
