# SPDX-License-Identifier: Apache-2.0
"""How often intervals of factors contain the true factor: ``python -m benchmarks.intervals``.

Factors are planted into models of sequences of up to seven symbols, of which there are three. All 3,280 sequences are
listed and the ratios of their edits computed once, so that a data set costs little more than its estimate.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.rejections import seeded, table
from pyro_ksd.edits.counts import Count, count_values
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.factor_tolerance import tolerated_factors
from pyro_ksd.fit_tests.fault_sizes import effect_sizes
from pyro_ksd.fit_tests.jumps import Jumps, scored_jumps
from pyro_ksd.fit_tests.localization import localize
from pyro_ksd.fit_tests.tilting import tilt_each
from pyro_ksd.models import LinearChainMRF, MarkovSequence, SequenceModel, constrain
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views
from pyro_ksd.stein.weighting import scored_edits

SIZES = (50, 200, 1000, 5000)
FACTORS = (1.0, 1.4, 3.0, 0.5)
EXPECTED = {"frequent": 60.0, "rare": 10.0, "very rare": 2.0}
"""How often the n-gram is expected in all of the data."""
KINDS = ("chain", "MRF")

_LONGEST = 7
_RARE = Count("ngram", (2, 2))
_PAIR = Count("ngram", (0, 1))
_PAGE = Path(__file__).parents[1] / "docs" / "intervals.md"


def model_of(kind: str, rarity: float = 0.0) -> SequenceModel:
    """A Markov chain or a Markov random field.

    :param rarity: the logarithm of the number by which the last symbol is made rarer.
    """
    if kind == "chain":
        moves = torch.tensor([[0.5, 0.2, 0.3], [0.2, 0.4, 0.4], [0.3, 0.3, 0.4]], dtype=torch.double)
        moves[:, 2] *= math.exp(-rarity)
        start = torch.full((3,), 1 / 3, dtype=torch.double)
        chain = MarkovSequence.from_transitions(start, moves / moves.sum(1, keepdim=True), stop=0.2)
        return constrain(chain, lambda x: x.lengths <= _LONGEST)
    pair = torch.tensor([[1.0, 0, -1], [0, 0.5, 0], [-1, 0, 0.5]], dtype=torch.double)
    single = torch.tensor([0.0, 0.0, -rarity], dtype=torch.double)
    return LinearChainMRF(pair, single, length=-torch.arange(_LONGEST + 1).double())


@cache
def every_sequence() -> Sequences:
    """All sequences of up to seven symbols."""
    rows = [row for length in range(_LONGEST + 1) for row in itertools.product(range(3), repeat=length)]
    return Sequences.of(rows, 3)


class Planted:
    """A model and one count, of which a factor can be planted into data."""

    def __init__(self, model: SequenceModel, count: Count) -> None:
        self.model = model
        self.count = count
        self.space = every_sequence()[model.log_joint(every_sequence()) > -torch.inf]
        self.log_joint = model.log_joint(self.space)
        self.number = count_values([count], self.space)[:, 0]
        jumps = scored_jumps(scored_edits(model, zs(), self.space), [count])
        owner = jumps.owner[jumps.edit.long()].long()
        order = owner.argsort(stable=True)
        self.log_ratio = jumps.log_ratio[jumps.edit.long()][order]
        self.change = jumps.change[order]
        self.changes = owner.bincount(minlength=len(self.space))
        self.begin = self.changes.cumsum(0) - self.changes

    def probability(self, factor: float) -> Tensor:
        """The probabilities of all sequences with a factor."""
        return (self.log_joint + math.log(factor) * self.number).softmax(0)

    def expected(self) -> float:
        """The mean count of a sequence of the model."""
        return float(self.probability(1.0) @ self.number)

    def rows(self, factor: float, size: int, generator: torch.Generator) -> Tensor:
        """A data set: places in the space."""
        return self.probability(factor).multinomial(size, replacement=True, generator=generator)

    def jumps(self, rows: Tensor) -> Jumps:
        """The changes of the count by edits around a data set."""
        changes = self.changes[rows]
        owner = torch.arange(len(rows)).repeat_interleave(changes)
        first = changes.cumsum(0) - changes
        place = torch.arange(len(owner)) - first[owner] + self.begin[rows][owner]
        edit = torch.arange(len(owner), dtype=torch.int32)
        return Jumps(len(rows), owner.int(), self.log_ratio[place], edit, torch.zeros_like(edit), self.change[place])


def with_expected(kind: str, number: float) -> Planted:
    """The count of a pair, made as rare or frequent as is asked for, by bisection.

    :param number: the mean count of a sequence.
    """
    counts = count_values([_RARE], every_sequence())[:, 0]
    low, high = -6.0, 12.0
    for _ in range(30):
        middle = (low + high) / 2
        expected = float(model_of(kind, middle).log_joint(every_sequence()).softmax(0) @ counts)
        low, high = (middle, high) if expected > number else (low, middle)
    return Planted(model_of(kind, low), _RARE)


@dataclass(frozen=True)
class Coverage:
    """How often an interval was stated, and contained the true factor.

    :param said: a list of whether it did, for each interval that was stated.
    """

    runs: int
    said: list[bool]

    @property
    def text(self) -> str:
        share = f"{sum(self.said) / len(self.said):.3f}" if self.said else ""
        return f"{share} ({len(self.said)} of {self.runs})"


def factor_coverage(planted: Planted, factor: float, size: int, runs: int, generator: torch.Generator) -> Coverage:
    """The coverage of the intervals of the factors that can be estimated."""
    said = []
    for _ in range(runs):
        found = tilt_each([planted.jumps(planted.rows(factor, size, generator))], 1, 0.95)
        if bool(found.is_known):
            said.append(bool(found.low <= math.log(factor) <= found.high))
    return Coverage(runs, said)


def reported_coverage(
    planted: Planted, factor: float, size: int, runs: int, draws: int, generator: torch.Generator
) -> Coverage:
    """The coverage of the intervals in checks that reject the model and find the planted pair among the faults."""
    said = []
    for run in range(runs):
        data = planted.space[planted.rows(factor, size, generator)].narrowed()
        result = goodness_of_fit(
            planted.model, data, default_views()[:3], bootstrap="wild", num_bootstrap=draws, seed=run
        )
        places = localize(result)
        features = places[1].features
        if features is None:
            continue
        sizes = effect_sizes(result, places, data, None, 0.05)[1]
        own = (features.symbols == torch.tensor(planted.count.symbols)).all(1) & ~sizes.factor.isnan()
        said += (own & (sizes.factor_low <= factor) & (factor <= sizes.factor_high))[own].tolist()
    return Coverage(runs, said)


def tolerance_rates(
    planted: Planted, factor: float, size: int, runs: int, generator: torch.Generator
) -> tuple[float, float]:
    """How often the planted pair is called off by more than 1.25, and all pairs that are estimated within it."""
    outside = within = 0
    for _ in range(runs):
        data = planted.space[planted.rows(factor, size, generator)].narrowed()
        result = goodness_of_fit(planted.model, data, default_views()[1:2], bootstrap="wild", num_bootstrap=1)
        [found] = tolerated_factors(result, data, 0.05)
        own = (found.symbols == torch.tensor(planted.count.symbols)).all(1)
        outside += int((found.is_outside & own).any())
        within += int(found.is_within[found.tilts.is_known].all())
    return outside / runs, within / runs


def factor_rows(runs: int, seed: int, sizes: Sequence[int]) -> Iterator[list[str]]:
    """The rows of the table of coverage; fewer runs of large data."""
    for kind, size, (name, number) in itertools.product(KINDS, sizes, EXPECTED.items()):
        planted = with_expected(kind, number / size)
        own = runs if size <= 1000 else runs // 4
        cells = [
            factor_coverage(planted, factor, size, own, seeded(seed, f"{kind}, {name}, {factor}", size)).text
            for factor in FACTORS
        ]
        yield [kind, str(size), f"{name} ({number:.0f})", *cells]


def reported_rows(runs: int, draws: int, seed: int, sizes: Sequence[int]) -> Iterator[list[str]]:
    """The rows of the table of what checks report."""
    for kind, factor in itertools.product(KINDS, (1.25, 1.4, 3.0, 0.5)):
        planted = Planted(model_of(kind), _PAIR)
        cells = [
            reported_coverage(planted, factor, size, runs, draws, seeded(seed, f"{kind}, {factor}", size)).text
            for size in sizes
        ]
        yield [kind, f"{factor:g}", *cells]


def tolerance_rows(runs: int, seed: int, sizes: Sequence[int]) -> Iterator[list[str]]:
    """The rows of the table of the factor that is tolerated."""
    for kind, factor in itertools.product(KINDS, (1.0, 1.25, 0.8, 1.6, 0.5)):
        planted = Planted(model_of(kind), _PAIR)
        cells = []
        for size in sizes:
            rates = tolerance_rates(planted, factor, size, runs, seeded(seed, f"{kind}, {factor}", size))
            cells += [f"{rate:.2f}" for rate in rates]
        yield [kind, f"{factor:g}", *cells]


def page(
    runs: int,
    checks: int,
    draws: int,
    seed: int,
    sizes: Sequence[int] = SIZES,
    check_sizes: Sequence[int] = (50, 200, 1000),
    tolerance_sizes: Sequence[int] = (100, 500, 2000),
) -> str:
    """All tables, with their words."""
    command = f"python -m benchmarks.intervals --runs {runs} --checks {checks} --draws {draws} --seed {seed}"
    factors = table(
        ["model", "n", "n-gram (expected)", *(f"factor {factor:g}" for factor in FACTORS)],
        list(factor_rows(runs, seed, sizes)),
    )
    reported = table(
        ["model", "factor", *(f"n = {size}" for size in check_sizes)],
        list(reported_rows(checks, draws, seed, check_sizes)),
    )
    ends = [f"{word}, n = {size}" for size in tolerance_sizes for word in ("off", "all within")]
    tolerated = table(["model", "factor", *ends], list(tolerance_rows(checks, seed, tolerance_sizes)))
    return f"""# Intervals of factors

The data have a pair whose weight differs from the model by a known factor. This page shows how often the 95 % intervals
contain this factor; see *How large is it?* in [the method](method.md). Written by `{command}`.

## Factors that can be estimated

Each cell has the share of intervals that contain the true factor and, in brackets, the number of data sets for which a
factor was stated. The n-gram is a pair. Without the factor, its expected number in the whole data set is 60, 10 or 2.
If the pair is rare, a factor is stated only for data sets that happen to contain enough of it. The intervals correct
for this and are then slightly too wide.

{factors}

## Factors that a check reports

The same for a frequent pair, but only in checks of single symbols, pairs and triples that reject the model and report
this pair. If such a fault is rarely found, it looks larger than it is when it is found, and fewer than 95 % of the
intervals contain the true factor. If it is mostly found, selection does not matter.

{reported}

## Off by more than a factor of 1.25

How often a check with a tolerance says that this pair is off by more than a factor of 1.25, and how often it says that
all pairs that can be estimated are within this factor. At the factors 1.25 and 0.8, each statement may occur in at most
5 % of the data sets. With {checks} data sets, a rate of 0.05 has the standard error \
{math.sqrt(0.05 * 0.95 / checks):.3f}.

{tolerated}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="data sets for each planted factor")
    parser.add_argument("--checks", type=int, default=200, help="data sets for each whole check")
    parser.add_argument("--draws", type=int, default=199, help="null draws of a check")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    _PAGE.write_text(page(options.runs, options.checks, options.draws, options.seed))


if __name__ == "__main__":
    main()
