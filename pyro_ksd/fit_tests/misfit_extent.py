# SPDX-License-Identifier: Apache-2.0
"""How large the misfit is: all of it in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_level
from pyro_ksd.common.random_numbers import Seed, as_seed, seeded_generator
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.discrepancy_bounds import Closeness, closeness
from pyro_ksd.fit_tests.fault_sizes import EffectSizes, effect_sizes
from pyro_ksd.fit_tests.foreign_sequences import ForeignShare, foreign_share, tolerance_p_value
from pyro_ksd.fit_tests.localization import Localization
from pyro_ksd.fit_tests.null_draws import wild_bootstrap
from pyro_ksd.models.base import SequenceModel, cheap_draws
from pyro_ksd.sequences.container import Sequences

_DRAWN = 1000  # sequences of the model


@dataclass(frozen=True, eq=False)
class Tolerated:
    """Whether the misfit is larger than is tolerated.

    :ivar tolerance: the share of foreign sequences, and the relative discrepancy, that is tolerated.
    :ivar p_value: double ``[V]``, of the hypothesis that at most this share of the sequences is not the model's.
    :ivar p_value_overall: the same from all views together.
    :ivar closeness: the relative discrepancy of each view, with an upper confidence bound.
    """

    tolerance: float
    p_value: Tensor
    p_value_overall: float
    closeness: Closeness


@dataclass(frozen=True, eq=False)
class Extent:
    """How large the misfit is.

    :ivar sizes: of the features of each view.
    :ivar foreign: lower bounds of the share of sequences that are not the model's.
    :ivar tolerated: ``None`` if no tolerance was asked for.
    :ivar drawn: sequences of the model, to show beside the data; ``None`` if it cannot be sampled cheaply.
    """

    sizes: list[EffectSizes]
    foreign: ForeignShare
    tolerated: Tolerated | None
    drawn: Sequences | None


def extent(
    model: SequenceModel,
    result: GoodnessOfFit,
    places: Sequence[Localization],
    sequences: Sequences,
    *,
    level: float = 0.05,
    tolerance: float | None = None,
    seed: Seed = 0,
) -> Extent:
    """How large the misfit is that a test found.

    :param places: where it sits, one for each view.
    :param sequences: those of the test.
    :param level: the p-value up to which the model is rejected; bounds hold with probability ``1 - level``.
    :param tolerance: the share of sequences that may be foreign.

    >>> from pyro_ksd import default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit, localize
    >>> walk, data = random_walk(3), random_walk(3, hold=0.5).draw(200, torch.Generator().manual_seed(0))
    >>> found = goodness_of_fit(walk, data, default_views(), num_bootstrap=199)
    >>> size = extent(walk, found, localize(found), data, tolerance=0.01)
    >>> size.foreign.share_overall > 0.2, size.tolerated.p_value_overall
    (True, 0.005)
    """
    check_level(level)
    seed = as_seed(seed)
    drawn = cheap_draws(model, _DRAWN, sequences, seeded_generator(seed))
    if drawn is not None:
        drawn = drawn.over(sequences.alphabet)
    foreign = ForeignShare(torch.zeros_like(result.p_value), 0.0)
    if result.p_value_overall <= level:
        foreign = foreign_share(result.matrices, result.null.extreme, level)
    return Extent(
        sizes=effect_sizes(result, places, sequences, drawn, level),
        foreign=foreign,
        tolerated=None if tolerance is None else _tolerated(result, tolerance, level, seed),
        drawn=drawn,
    )


def _tolerated(result: GoodnessOfFit, tolerance: float, level: float, seed: int) -> Tolerated:
    each, overall = tolerance_p_value(result.matrices, result.null.extreme, tolerance)
    wild = result.null
    if result.kind != "wild":  # far from the model its own draws vary otherwise than the data
        wild = wild_bootstrap(result.matrices, result.views, len(wild.statistic), seeded_generator(seed))
    return Tolerated(tolerance, each, float(overall), closeness(result.matrices, wild.statistic, level))
