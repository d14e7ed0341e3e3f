# SPDX-License-Identifier: Apache-2.0
"""How large the misfit is: all of it in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_level
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.count_rates import CountTotals
from pyro_ksd.fit_tests.discrepancy_bounds import Closeness, closeness
from pyro_ksd.fit_tests.factor_tolerance import ToleratedFactors, tolerated_factors
from pyro_ksd.fit_tests.fault_sizes import EffectSizes, effect_sizes
from pyro_ksd.fit_tests.foreign_sequences import ForeignShare, foreign_share, num_foreign, tolerance_p_value
from pyro_ksd.fit_tests.localization import Localization
from pyro_ksd.fit_tests.null_draws import signed_draws
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.signs import Signs


@dataclass(frozen=True, eq=False)
class Tolerated:
    """Whether the misfit is larger than is tolerated.

    :ivar tolerance: the share of foreign sequences, and the relative discrepancy, that is tolerated.
    :ivar p_value: double ``[V]``, of the hypothesis that at most this share of the sequences does not come from the
        model.
    :ivar p_value_overall: the same from all views together.
    :ivar closeness: the relative discrepancy of each view, with an upper confidence bound.
    :ivar factors: whether n-grams are off by more than a factor, for each view that counts n-grams.
    """

    tolerance: float
    p_value: Tensor
    p_value_overall: float
    closeness: Closeness
    factors: list[ToleratedFactors]


@dataclass(frozen=True, eq=False)
class Extent:
    """How large the misfit is.

    :ivar sizes: of the features of each view.
    :ivar foreign: lower bounds of the share of sequences that do not come from the model.
    :ivar tolerated: ``None`` if no tolerance was asked for.
    :ivar drawn: draws from the model, to show beside the data; ``None`` if it was not sampled.
    """

    sizes: list[EffectSizes]
    foreign: ForeignShare
    tolerated: Tolerated | None
    drawn: Sequences | None


def extent(
    result: GoodnessOfFit,
    places: Sequence[Localization],
    sequences: Sequences | Sequence[CountTotals],
    drawn: Sequences | None,
    *,
    level: float = 0.05,
    tolerance: float | None = None,
    num_impossible: int = 0,
    seed: Seed = 0,
) -> Extent:
    """How large the misfit is that a test found.

    :param places: where it sits, one for each view.
    :param sequences: those of the test, or totals of their counts, see
        ``effect_sizes`` of ``fit_tests/fault_sizes``.
    :param drawn: draws from the model over the same alphabet, or ``None`` if it was not sampled.
    :param level: the p-value up to which the model is rejected; bounds hold with probability ``1 - level``.
    :param tolerance: the share of sequences that may be foreign.
    :param num_impossible: the number of sequences that are not among those of the test, because the model gives
        probability 0 to them. They are foreign for certain.
    :param seed: of the random signs of a wild bootstrap, where the test had none.

    >>> from pyro_ksd import default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit, localize
    >>> walk, data = random_walk(3), random_walk(3, hold=0.5).draw(200, torch.Generator().manual_seed(0))
    >>> found = goodness_of_fit(walk, data, default_views(), num_bootstrap=199)
    >>> size = extent(found, localize(found), data, None, tolerance=0.01)
    >>> size.foreign.share_overall > 0.2, size.tolerated.p_value_overall
    (True, 0.005)
    """
    check_level(level)
    seed = as_seed(seed)
    foreign = ForeignShare(torch.zeros_like(result.p_value), 0.0)
    if result.p_value_overall <= level:
        foreign = foreign_share([place.pushes for place in places], result.null.extreme, level)
    if num_impossible:
        foreign = _with_impossible(foreign, result.num_sequences, num_impossible)
    tolerated = None
    if tolerance is not None:
        tolerated = _tolerated(result, places, tolerance, level, num_impossible, seed)
    return Extent(
        sizes=effect_sizes(result, places, sequences, drawn, level),
        foreign=foreign,
        tolerated=tolerated,
        drawn=drawn,
    )


def _with_impossible(foreign: ForeignShare, num_possible: int, num_impossible: int) -> ForeignShare:
    """The shares among all sequences, those that are impossible included."""
    total = num_possible + num_impossible
    share = (foreign.share.nan_to_num(0.0) * num_possible + num_impossible) / total
    overall = 0.0 if math.isnan(foreign.share_overall) else foreign.share_overall
    return ForeignShare(share, (overall * num_possible + num_impossible) / total)


def _tolerated(
    result: GoodnessOfFit,
    places: Sequence[Localization],
    tolerance: float,
    level: float,
    num_impossible: int,
    seed: int,
) -> Tolerated:
    size = result.num_sequences
    total = size + num_impossible
    if num_impossible > tolerance * total:
        each, overall = torch.zeros_like(result.p_value), torch.zeros(())
    else:
        others = (num_foreign(tolerance, total) - num_impossible) / size
        pushes = [place.pushes for place in places]
        each, overall = tolerance_p_value(pushes, result.null.extreme, min(others, 1 - 1 / size))
    wild = result.null
    if result.kind != "wild":  # far from the model its own draws vary otherwise than the data
        wild = signed_draws(result.visits_of_all("extent"), Signs(seed, len(wild.statistic)))
    close = closeness(result.states, wild.statistic, level)
    factors = tolerated_factors(result, result.sample.sequences, level)
    return Tolerated(tolerance, each, float(overall), close, factors)
