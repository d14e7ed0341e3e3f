# SPDX-License-Identifier: Apache-2.0
"""No false direction: what a check says of lengths is true of the two distributions that the lengths come from."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

from benchmarks.fault_models import chain_with_lengths, reversible_moves  # noqa: E402
from benchmarks.rejections import WithoutSampler  # noqa: E402
from pyro_ksd import ksd_check, summary, verdict  # noqa: E402

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 60
LENGTHS = torch.arange(LONGEST + 1, dtype=torch.double)
WORDS = (
    "too short",
    "too long",
    "too regular",
    "too variable",
    "even lengths are too rare",
    "even lengths are too frequent",
)


def proportional(weight: Callable[[float], float], shortest: int = 1, longest: int = LONGEST) -> Tensor:
    """Probabilities of the lengths ``0 .. LONGEST``."""
    values = [weight(length) if shortest <= length <= longest else 0.0 for length in range(LONGEST + 1)]
    found = torch.tensor(values, dtype=torch.double)
    return found / found.sum()


def geometric(mean: float) -> Tensor:
    return proportional(lambda length: (1 - 1 / mean) ** length)


def poisson(mean: float, longest: int = LONGEST) -> Tensor:
    return proportional(lambda length: math.exp(length * math.log(mean) - math.lgamma(length + 1)), 1, longest)


def uniform(shortest: int, longest: int) -> Tensor:
    return proportional(lambda length: 1.0, shortest, longest)


def power_law(exponent: float) -> Tensor:
    return proportional(lambda length: max(length, 1) ** -exponent)


def bimodal() -> Tensor:
    return (poisson(3) + poisson(13)) / 2


def even_only(lengths: Tensor) -> Tensor:
    return thinned(lengths, even=1.0, odd=0.0)


def thinned(lengths: Tensor, even: float, odd: float) -> Tensor:
    found = lengths * torch.where(LENGTHS % 2 == 0, even, odd)
    return found / found.sum()


def with_mean(lengths: Tensor, mean: float = 8.0) -> Tensor:
    """The distribution with another mean, by exponential weights."""
    low, high = -2.0, 2.0
    for _ in range(80):
        middle = (low + high) / 2
        found = lengths * (middle * LENGTHS).exp()
        found = found / found.sum()
        low, high = (middle, high) if found @ LENGTHS < mean else (low, middle)
    return found


def three_lengths(mean: float, variance: float) -> Tensor:
    """The lengths 3, 7 and 15 with a mean and a variance."""
    places = torch.tensor([3, 7, 15])
    powers = torch.stack([places.double() ** power for power in range(3)])
    weight = torch.linalg.solve(powers, torch.tensor([1, mean, variance + mean**2], dtype=torch.double))
    return torch.zeros(LONGEST + 1, dtype=torch.double).index_copy_(0, places, weight)


def moments(lengths: Tensor) -> tuple[float, float, float]:
    """The mean, the standard deviation and the share of even lengths."""
    mean = float(lengths @ LENGTHS)
    return mean, float((lengths @ (LENGTHS - mean) ** 2).sqrt()), float(lengths[::2].sum())


EIGHT = with_mean(geometric(8))
LIKE_POISSON = with_mean(poisson(8))
LEVEL = with_mean(uniform(1, 15))
PAIRS = {
    "geometric, shorter": (EIGHT, geometric(5)),
    "geometric, longer": (geometric(5), EIGHT),
    "uniform, narrower": (LEVEL, uniform(4, 12)),
    "Poisson / uniform": (LIKE_POISSON, LEVEL),
    "Poisson / 8 to 12": (LIKE_POISSON, uniform(8, 12)),
    "uniform / Poisson, shorter": (uniform(1, 20), with_mean(poisson(8, longest=20))),
    "geometric / Poisson": (EIGHT, LIKE_POISSON),
    "geometric / uniform": (EIGHT, LEVEL),
    "geometric / bimodal": (EIGHT, with_mean(bimodal())),
    "bimodal / Poisson": (with_mean(bimodal()), LIKE_POISSON),
    "Poisson / bimodal": (LIKE_POISSON, with_mean(bimodal())),
    "geometric / heavy-tailed": (EIGHT, with_mean(power_law(1.2))),
    "heavy-tailed / geometric": (with_mean(power_law(1.2)), EIGHT),
    "geometric / even": (EIGHT, even_only(EIGHT)),
    "Poisson / even": (LIKE_POISSON, even_only(LIKE_POISSON)),
    "uniform / fixed": (LEVEL, uniform(8, 8)),
    "geometric / fixed": (EIGHT, uniform(8, 8)),
    "Poisson, longer": (LIKE_POISSON, poisson(10)),
    "uniform / skewed, with the same mean and spread": (LEVEL, three_lengths(8.0, moments(LEVEL)[1] ** 2)),
    "Poisson / mostly odd": (LIKE_POISSON, thinned(LIKE_POISSON, even=0.4, odd=1.0)),
    "no fault": (EIGHT, EIGHT),
    "bimodal / Poisson, shorter": (bimodal(), poisson(4)),
}
"""Lengths of the model and of the data."""


def true_words(model: Tensor, data: Tensor) -> set[str]:
    """The words that are true of the model."""
    found = set()
    for name, (small, large) in enumerate(zip(WORDS[::2], WORDS[1::2], strict=True)):
        difference = moments(model)[name] - moments(data)[name]
        if abs(difference) > 1e-6:
            found.add(large if difference > 0 else small)
    return found


def said_words(
    pair: str, num_sequences: int, seed: int, *, sampled: bool, whole: bool, num_bootstrap: int = 199
) -> set[str]:
    """The words that a check says of the lengths."""
    model, data = (chain_with_lengths(*reversible_moves(), lengths) for lengths in PAIRS[pair])
    drawn = data.draw(num_sequences, torch.Generator().manual_seed(1000 + seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of views that can say nothing
        check = ksd_check(
            model if sampled else WithoutSampler(model),
            drawn,
            views=None if whole else ["length"],
            num_bootstrap=num_bootstrap,
            seed=seed,
            progress=False,
        )
    told = f"{verdict(check)} {summary(check)['finding'].get('length', '')}"
    return {word for word in WORDS if word in told}


def assert_true(pair: str, said: set[str]) -> None:
    assert said <= true_words(*PAIRS[pair]), pair


def test_the_pairs_are_what_they_are_called() -> None:
    assert len(PAIRS) >= 20
    same_mean = [name for name, (model, data) in PAIRS.items() if abs(moments(model)[0] - moments(data)[0]) < 1e-6]
    assert len(same_mean) >= 12
    assert true_words(*PAIRS["no fault"]) == set()
    assert true_words(*PAIRS["uniform / skewed, with the same mean and spread"]) == {"even lengths are too frequent"}
    assert true_words(*PAIRS["geometric / heavy-tailed"]) == {"too regular", "even lengths are too frequent"}
    assert true_words(*PAIRS["heavy-tailed / geometric"]) == {"too variable", "even lengths are too rare"}
    assert true_words(*PAIRS["geometric / fixed"]) == {"too variable", "even lengths are too rare"}


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "not sampled"])
@pytest.mark.parametrize(
    "pair", ["geometric, longer", "geometric / Poisson", "heavy-tailed / geometric", "Poisson / even"]
)
def test_words_about_lengths_are_true(pair: str, sampled: bool) -> None:
    said = said_words(pair, 150, 0, sampled=sampled, whole=False, num_bootstrap=199)
    assert_true(pair, said)
    told = {
        "geometric, longer": {"too short"},
        "geometric / Poisson": {"too variable"},
        "heavy-tailed / geometric": set(),
        "Poisson / even": {"even lengths are too rare"},
    }
    assert told[pair] <= said


def test_words_of_the_whole_check_are_true() -> None:
    said = said_words("geometric / Poisson", 100, 0, sampled=True, whole=True, num_bootstrap=99)
    assert_true("geometric / Poisson", said)
    assert "too variable" in said


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["length", "whole check"])
@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "not sampled"])
def test_no_word_about_lengths_is_false(sampled: bool, whole: bool) -> None:
    # With 50 other seeds (500 to 519, 2000 to 2009, 3000 to 3009, 4000 to 4009) none of 2,219 words of sampled models
    # was false. With 8 other seeds (500 to 507) none of 314 words of the others was. Three standard errors of the share
    # of even lengths were too few: 2 of 911 words were false.
    counts: Counter[str] = Counter()
    false: Counter[tuple[str, str]] = Counter()
    for pair in PAIRS:
        true = true_words(*PAIRS[pair])
        for num_sequences in (50, 200):
            for seed in range(2 if whole else 10):
                said = said_words(pair, num_sequences, seed, sampled=sampled, whole=whole)
                counts["said"] += len(said)
                counts["unsaid"] += len(true - said)
                false.update((pair, word) for word in said - true)
    print(f"sampled {sampled}, whole {whole}: {dict(counts)}, false {dict(false)}")
    assert not false
    assert counts["said"] >= 0.3 * (counts["said"] + counts["unsaid"])
