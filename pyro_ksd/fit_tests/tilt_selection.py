# SPDX-License-Identifier: Apache-2.0
r"""The few tilts that explain a misfit: forward selection among many counts.

After a joint tilt of the chosen counts :math:`A`, the score of another count :math:`u` is
:math:`s_u = \sum_i s_{u,i}`, the sum of its weighted changes under the tilted model, with the mean 0 if nothing is
missing. What the estimated factors take from it is subtracted from each sequence (Neyman's effective score),

.. math:: z_u = \frac{s_u}{\sqrt{v_u}}, \qquad
    v_u = \max\Bigl(\sum_i \bigl(s_{u,i} - I_{uA} I_{AA}^{-1} s_{A,i}\bigr)^2,\; h^-_u G_u,\; h^+_u L_u\Bigr) ,

with :math:`I = \sum_i \sum_y w (1 - w)\,\Delta c\,\Delta c^\top`. As for the scores of features
(:mod:`~pyro_ksd.fit_tests.feature_scores`), the sum of squares fails where few sequences carry a side: :math:`G_u` and
:math:`L_u` are all gains and all losses, which have the same mean, and :math:`h^\pm_u` is the typical gain or loss of a
sequence.

Reference: Neyman (1959), *Optimal asymptotic tests of composite statistical hypotheses*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import ndtri

from pyro_ksd.fit_tests.jumps import Jumps
from pyro_ksd.fit_tests.tilting import Sides, Tilts, tilt_jointly

MOST_FACTORS = 20
"""A model that needs more factors than that has another fault than a few wrong weights."""


@dataclass(frozen=True, eq=False)
class SelectedTilts:
    """The smallest set of factors that was found.

    :ivar chosen: the places of the counts, in the order in which they were chosen.
    :ivar tilts: their factors, estimated jointly; empty if none are needed.
    :ivar largest: the largest absolute score of all other counts under the tilted model.
    :ivar threshold: up to which it is what chance makes of so many counts.
    """

    chosen: tuple[int, ...]
    tilts: Tilts
    largest: float
    threshold: float


def select_tilts(jumps: Sequence[Jumps], num_counts: int, *, level: float, coverage: float) -> SelectedTilts:
    """Adds the count with the largest score until none is larger than chance makes it, and drops what is not needed.

    :param level: how often, at the most, a factor is found for a true model; divided by the number of counts that
        enough sequences gain and lose.
    :param coverage: of the intervals of the factors.
    """
    chosen: list[int] = []
    found = tilt_jointly(jumps, chosen, coverage)
    scores, candidates = effective_scores(jumps, num_counts, chosen, found.log_factor)
    tail = torch.tensor(level / (2 * max(int(candidates.sum()), 1)), dtype=torch.double)
    threshold = float(-ndtri(tail))
    while True:
        open_scores = scores.abs().masked_fill(~candidates, 0.0)
        largest, best = open_scores.max(0)
        if largest <= threshold or len(chosen) == MOST_FACTORS:
            return SelectedTilts(tuple(chosen), found, float(largest), threshold)
        candidates[best] = False  # a count that is dropped below does not come back
        chosen.append(int(best))
        found = tilt_jointly(jumps, chosen, coverage)
        while chosen and not (weakest := _strength(found).min(0)).values > threshold:
            del chosen[int(weakest.indices)]
            found = tilt_jointly(jumps, chosen, coverage)
        scores, _ = effective_scores(jumps, num_counts, chosen, found.log_factor)


def _strength(tilts: Tilts) -> Tensor:
    """How many standard errors each log-factor is away from 0; 0 where it cannot be estimated."""
    return (tilts.log_factor / tilts.error).abs().nan_to_num(0.0)


def effective_scores(
    jumps: Sequence[Jumps], num_counts: int, chosen: Sequence[int], log_factors: Tensor
) -> tuple[Tensor, Tensor]:
    """The scores of all counts under the model tilted by some of them, and whether many sequences carry them, ``[D]``.

    :param log_factors: of the chosen counts; those at which their own scores vanish.
    """
    chosen = list(chosen)
    tilt = torch.zeros(num_counts, dtype=torch.double)
    tilt[chosen] = log_factors
    total = torch.zeros_like(tilt)
    squares = torch.zeros_like(tilt)
    products = tilt.new_zeros(num_counts, len(chosen))
    information = torch.zeros_like(products)
    sides = []
    for part in jumps:
        tilted = part.tilted(tilt)
        weight = tilted.log_ratio.sigmoid()
        edit = part.edit.long()
        change = part.change.double()
        gained = weight[edit] * change
        gains = part.sums(gained.clamp(min=0), num_counts)
        losses = part.sums(-gained.clamp(max=0), num_counts)
        scores = gains - losses
        total += scores.sum(0)
        squares += scores.square().sum(0)
        products += scores.T @ scores[:, chosen]
        spread = ((1 - weight)[:, None] * part.matrix(chosen))[edit] * gained[:, None]
        information.index_add_(0, part.count, spread)
        sides.append(Sides.of(gains, losses))
    side = Sides.sum(sides)
    taken = torch.linalg.lstsq(information[chosen], information.T).solution.T
    variance = squares - 2 * (taken * products).sum(1) + ((taken @ products[chosen]) * taken).sum(1)
    rare = (side.portions * side.total.flip(0)).amax(0)
    return (total / torch.maximum(variance, rare).sqrt()).nan_to_num(0.0), side.are_many
