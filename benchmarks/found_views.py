# SPDX-License-Identifier: Apache-2.0
"""The power of a view that was learned from other data, beside that of the default check.

``python -m benchmarks.found_views`` prints the two tables of ``docs/power.md``: one where half of the data are spent on
learning, and one where a large pilot study is at hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmarks.rejections import (
    LEVEL,
    NUM_BOOTSTRAP,
    Sampler,
    data_set_statistics,
    default_check,
    rejection_rates,
    seeded,
    table,
    weights_of,
)
from benchmarks.scenario_models import scenarios
from pyro_ksd.checks.view_finder import find_view
from pyro_ksd.common.random_numbers import drawn_seed
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.null_draws import parametric_bootstrap
from pyro_ksd.models import MarkovSequence, SequenceDistribution
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View

TOTAL = 200
PILOT = 1000
BATCH = 30


@dataclass(frozen=True, eq=False)
class Case:
    """A model, and data that do not follow it.

    :param name: what a person calls it.
    :param model: the model that is tested.
    :param draw: makes the data.
    """

    name: str
    model: SequenceDistribution
    draw: Sampler


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    :param runs: data sets of each case.
    :param pool: null draws to choose from, in the parametric bootstrap of small data sets.
    :param seed: of all random numbers.
    """

    runs: int = 200
    pool: int = 2000
    seed: int = 0


def cases() -> list[Case]:
    """Faults of different kinds, and none."""
    known = {scenario.name: scenario for scenario in scenarios()}
    true = known["second-order I"].model
    shares = {"second-order I": 0.12, "initial I": 0.4, "random walk I": 0.1, "length": 0.3}
    mixed = [
        Case(
            f"{name} in {100 * share:.0f} % of the sequences",
            known[name].model,
            mixture(known[name].model, known[name].data_model, share),
        )
        for name, share in shares.items()
    ]
    return [
        *mixed,
        Case("a rare pair", chain_with_rare_symbol(0.05), chain_with_rare_symbol(0.24).draw),
        Case("12 symbols that repeat too often", repeating(1.0), repeating(1.6).draw),
        Case("none (second-order I)", true, true.draw),
    ]


def mixture(model: SequenceDistribution, wrong: SequenceDistribution, share: float) -> Sampler:
    """Draws from the wrong model with the probability ``share``, and else from the model."""

    def draw(num_sequences: int, generator: torch.Generator) -> Sequences:
        both = Sequences.cat([model.draw(num_sequences, generator), wrong.draw(num_sequences, generator)])
        is_wrong = torch.rand(num_sequences, generator=generator) < share
        return both[torch.arange(num_sequences) + num_sequences * is_wrong]

    return draw


def chain_with_rare_symbol(share: float) -> MarkovSequence:
    """A chain over four symbols, one of them rare.

    :param share: how often the rare symbol is followed by the first one.
    """
    usual = torch.tensor([0.32, 0.32, 0.31, 0.05], dtype=torch.double)
    moves = usual.repeat(4, 1)
    moves[3] = torch.tensor([share, *[(1 - share) / 3] * 3], dtype=torch.double)
    return MarkovSequence.from_transitions(usual, moves, stop=1 / 10)


def repeating(factor: float, size: int = 12) -> MarkovSequence:
    """Uniform symbols, each of which follows itself ``factor`` times as often as any other."""
    moves = torch.ones(size, size, dtype=torch.double) + (factor - 1) * torch.eye(size, dtype=torch.double)
    start = torch.full((size,), 1 / size, dtype=torch.double)
    return MarkovSequence.from_transitions(start, moves / moves.sum(1, keepdim=True), stop=1 / 10)


def p_value(case: Case, data: Sequences, views: Sequence[View], seed: int) -> float:
    """The p-value of all views together by the wild bootstrap, which a check takes for large data."""
    found = goodness_of_fit(case.model, data, views, bootstrap="wild", num_bootstrap=NUM_BOOTSTRAP, seed=seed)
    return found.p_value_overall


def at_equal_size(case: Case, settings: Settings, total: int = TOTAL) -> tuple[float, float]:
    """The power of the default check of all data, and of a found view that was learned from one half of them."""
    generator = seeded(settings.seed, case.name, total)
    views = default_check(case.model, case.draw(total, generator))
    whole = found = 0
    for _ in range(settings.runs):
        data = case.draw(total, generator)
        seed = drawn_seed(generator)
        view = find_view(case.model, data[: total // 2], views=views, progress=False)
        whole += p_value(case, data, views, seed) <= LEVEL
        found += p_value(case, data[total // 2 :], [view], seed) <= LEVEL
    return whole / settings.runs, found / settings.runs


def after_a_pilot(case: Case, settings: Settings, pilot: int = PILOT, batch: int = BATCH) -> tuple[float, float, str]:
    """The power of the default check of a small data set, of a view found in a pilot study, and the view's name."""
    generator = seeded(settings.seed, case.name, pilot, batch)
    views = default_check(case.model, case.draw(batch, generator))
    view = find_view(case.model, case.draw(pilot, generator), views=views, progress=False)
    together = [*views, view]
    observed = data_set_statistics(case.model, case.draw, batch, together, settings.runs, generator)
    pool = parametric_bootstrap(case.model, batch, together, settings.pool, generator).statistic
    [*_, whole] = rejection_rates(observed[:, :-1], pool[:, :-1], weights_of(views), generator)
    [*_, found] = rejection_rates(observed[:, -1:], pool[:, -1:], weights_of([view]), generator)
    return whole, found, view.kernel.feature_label(0, case.model.alphabet_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=Settings.runs)
    parser.add_argument("--pool", type=int, default=Settings.pool)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--only", help="a part of the names of the cases to run")
    parser.add_argument("--study", choices=["equal", "pilot"], help="one of the two tables")
    asked = parser.parse_args()
    settings = Settings(asked.runs, asked.pool, asked.seed)
    chosen = [case for case in cases() if asked.only is None or asked.only in case.name]
    torch.set_num_threads(1)
    if asked.study != "pilot":
        rows = [[case.name, *(f"{rate:.2f}" for rate in at_equal_size(case, settings))] for case in chosen]
        print(table(["fault", f"default check of {TOTAL}", "found view"], rows), flush=True)
    if asked.study != "equal":
        rows = []
        for case in chosen:
            whole, found, name = after_a_pilot(case, settings)
            rows.append([case.name, f"{whole:.2f}", f"{found:.2f}", f"`{name}`"])
        print(table(["fault", f"default check of {BATCH}", "found view", "its name"], rows), flush=True)


if __name__ == "__main__":
    main()
