# SPDX-License-Identifier: Apache-2.0
"""The maximum mean discrepancy against double loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from baseline_results import parts
from example_models import walk, walks

from pyro_ksd.checks.baselines import mmd_check
from pyro_ksd.checks.baselines.mmd import mmd_squared, pair_matrix
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.null_draws import rademacher
from pyro_ksd.fit_tests.statistics import u_statistic, weighted_u_statistics
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, Kernel, LengthKernel, StartKernel
from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views

KERNELS: dict[str, Kernel] = {
    "pairs": ContiguousKernel(2),
    "lengths": LengthKernel(),
    "Hamming": HammingKernel(),
    "sum": ContiguousKernel(1, 3) + 0.5 * StartKernel(),
}


def value(kernel: Kernel, x: Sequence[Any], y: Sequence[Any]) -> float:
    return _value(kernel, tuple(x), tuple(y))


@cache
def _value(kernel: Kernel, x: tuple[int, ...], y: tuple[int, ...]) -> float:
    return float(kernel.gram(Sequences.of([x], 5), Sequences.of([y], 5)))


def looped_mmd(kernel: Kernel, x: Sequences, y: Sequences) -> float:
    xs, ys = x.to_lists(), y.to_lists()
    n, m = len(xs), len(ys)
    among_x = sum(value(kernel, xs[i], xs[j]) for i in range(n) for j in range(n) if i != j)
    among_y = sum(value(kernel, ys[i], ys[j]) for i in range(m) for j in range(m) if i != j)
    across = sum(value(kernel, a, b) for a in xs for b in ys)
    return among_x / (n * (n - 1)) + among_y / (m * (m - 1)) - 2 * across / (n * m)


@pytest.mark.parametrize("name", KERNELS)
def test_mmd_is_that_of_a_double_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.checks.baselines.mmd.PAIR_BYTES", 5000)  # several blocks of a kernel matrix
    x, y = walks(8), walks(10, hold=0.5, seed=2)
    found = mmd_squared(KERNELS[name], x, y, 2)
    expected = [looped_mmd(KERNELS[name], x[:4], y[:5]), looped_mmd(KERNELS[name], x[4:], y[5:])]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("num_samples", [None, 7])
def test_mmd_check_with_the_parametric_bootstrap(num_samples: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.fit_tests.null_draws.REPLICATES", 4)
    model, x, n, m = walk(), walks(5, hold=0.5), 5, num_samples or 5
    check = mmd_check(model, x, kernels=KERNELS, num_samples=num_samples, num_bootstrap=6, seed=3, progress=False)
    generator = seeded_generator(3)
    sample, expected = model.draw(m, generator), []
    for together in (4, 2):
        xs, ys = model.draw(together * n, generator), model.draw(together * m, generator)
        sets = [(xs[i * n : (i + 1) * n], ys[i * m : (i + 1) * m]) for i in range(together)]
        expected += [[float(mmd_squared(kernel, *pair)) for kernel in KERNELS.values()] for pair in sets]
    statistic, null = parts(check)
    observed = [float(mmd_squared(kernel, x, sample)) for kernel in KERNELS.values()]
    np.testing.assert_allclose(statistic, observed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(null, expected, rtol=1e-9, atol=1e-12)
    p_values = (1 + (null >= statistic).sum(0)) / 7
    np.testing.assert_allclose(check["ksd"]["p_value"], p_values)
    assert {
        "test": "mmd",
        "kind": "parametric",
        "num_samples": m,
        "seed": 3,
        "level": 0.05,
        "num_bootstrap": 6,
    }.items() <= (check["ksd"].attrs.items())


def looped_pairs(kernel: Kernel, x: Sequences, y: Sequences, signs: Sequence[float]) -> float:
    pairs = list(zip(x.to_lists(), y.to_lists(), signs, strict=True))
    total = 0.0
    for i, (a, b, sign) in enumerate(pairs):
        for j, (c, d, other) in enumerate(pairs):
            h = value(kernel, a, c) + value(kernel, b, d) - value(kernel, a, d) - value(kernel, b, c)
            total += sign * other * h * (i != j)
    return total / (len(pairs) * (len(pairs) - 1))


def test_mmd_check_with_the_wild_bootstrap() -> None:
    model, x = walk(), walks(4, hold=0.5)
    check = mmd_check(model, x, kernels=KERNELS, bootstrap="wild", num_bootstrap=6, seed=3, progress=False)
    generator = seeded_generator(3)
    sample, signs = model.draw(4, generator), rademacher(6, 4, generator).tolist()
    statistic, null = parts(check)
    observed = [looped_pairs(kernel, x, sample, [1.0] * 4) for kernel in KERNELS.values()]
    expected = [[looped_pairs(kernel, x, sample, row) for kernel in KERNELS.values()] for row in signs]
    np.testing.assert_allclose(statistic, observed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(null, expected, rtol=1e-9, atol=1e-12)
    assert check["ksd"].attrs["kind"] == "wild"


@pytest.mark.parametrize("name", KERNELS)
def test_signs_exchange_data_and_sample_so_that_the_level_is_exact(name: str) -> None:
    x, y = walks(4), walks(4, seed=2)
    signs = torch.tensor(list(product([1.0, -1.0], repeat=4)), dtype=torch.double)
    by_signs = weighted_u_statistics(pair_matrix(KERNELS[name], x, y), signs)
    both, row = Sequences.cat([x, y]), torch.arange(4)
    firsts = [torch.where(sign > 0, row, row + 4) for sign in signs]
    exchanged = [u_statistic(pair_matrix(KERNELS[name], both[f], both[(f + 4) % 8])) for f in firsts]
    torch.testing.assert_close(by_signs, torch.stack(exchanged), rtol=1e-9, atol=1e-12)


def test_wild_draws_in_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def draws() -> Any:
        return parts(mmd_check(walk(), walks(), bootstrap="wild", num_bootstrap=50, progress=False))[1]

    whole = draws()
    monkeypatch.setattr("pyro_ksd.checks.baselines.mmd.ENTRIES", 12 * 7)
    np.testing.assert_allclose(draws(), whole, rtol=1e-12, atol=1e-12)


def test_auto_is_wild_for_many_sequences_with_as_many_samples() -> None:
    def kind(num: int, **more: Any) -> str:
        return str(mmd_check(walk(), walks(num), num_bootstrap=2, progress=False, **more)["ksd"].attrs["kind"])

    assert kind(99) == "parametric"
    assert kind(100) == kind(100, num_samples=100) == "wild"
    assert kind(100, num_samples=50) == kind(100, bootstrap="parametric") == "parametric"


def test_data_with_names_and_impossible_data_can_be_compared() -> None:
    never_b = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
    check = mmd_check(never_b, ["ab", "b", "ba", "bb"] * 3, num_bootstrap=99, progress=False)
    assert float(check["ksd"]["p_value_overall"]) <= 0.05
    assert check["ksd_data"]["token"].attrs["alphabet"] == '["a", "b"]'


def test_data_of_the_same_seed_are_not_the_sample_of_the_model() -> None:
    x = walk().draw(10, torch.Generator().manual_seed(0))
    check = mmd_check(walk(), x, bootstrap="wild", num_bootstrap=2, seed=0, progress=False)
    assert (check["ksd"]["statistic"] != 0).any()


def test_default_kernels_are_those_of_the_content_the_start_and_the_length() -> None:
    found = mmd_check(walk(), walks(), num_bootstrap=2, progress=False)
    names = ["content-1", "content-2", "content-3", "start", "length"]
    views = [view for view in default_views() if view.name in names]
    assert found["ksd"]["view"].values.tolist() == names
    assert found["ksd"]["meaning"].values.tolist() == [view.kernel.meaning for view in views]


@pytest.mark.parametrize("more", [{}, {"bootstrap": "wild"}])
def test_mmd_finds_a_wrong_model_and_keeps_a_right_one(more: dict[str, Any]) -> None:
    def p_value(hold: float) -> float:
        x = random_walk(hold=hold).draw(30, torch.Generator().manual_seed(5))
        return float(mmd_check(random_walk(), x, num_bootstrap=199, progress=False, **more)["ksd"]["p_value_overall"])

    assert p_value(0.5) <= 0.02
    assert p_value(0.0) > 0.05


def test_integers_are_codes_of_the_models_symbols() -> None:
    assert mmd_check(walk(), [[0, 1], [1, 2]], num_bootstrap=1, progress=False)["ksd_data"].sizes["sequence"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernels": {}}, "kernels: expected at least one kernel by its name, found none"),
        ({"num_samples": 1}, "num_samples: expected an integer of at least 2, found 1"),
        ({"bootstrap": "tame"}, "bootstrap: expected 'auto', 'parametric' or 'wild', found 'tame'"),
        (
            {"bootstrap": "wild", "num_samples": 20},
            r"num_samples: expected as many samples as data \(12\) for the wild bootstrap, .* found 20; leave",
        ),
    ],
)
def test_mmd_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mmd_check(walk(), walks(), progress=False, **arguments)
