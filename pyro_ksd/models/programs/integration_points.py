# SPDX-License-Identifier: Apache-2.0
"""Points and weights for integrals over standard normal variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

MOST_DIMENSIONS = 1024
"""How many local latent numbers a sequence may have."""

GRID_DIMENSIONS = 2
"""Up to this many dimensions a grid is better than scattered points."""

_TAIL = 6.5  # beyond this score a normal variable has the probability 1e-10


@dataclass(frozen=True, eq=False)
class IntegrationPoints:
    r"""Points and weights with :math:`E\,f(\epsilon) \approx \sum_k w_k f(\epsilon_k)` for normal :math:`\epsilon`.

    :ivar scores: double ``[K, D]``, the points.
    :ivar log_weights: double ``[K]``, whose exponentials sum to 1.

    >>> points = IntegrationPoints.of(1, 32)
    >>> round(float((points.log_weights.exp() * points.scores[:, 0] ** 4).sum()), 6)  # the fourth moment
    3.0
    """

    scores: Tensor
    log_weights: Tensor

    @staticmethod
    def of(dimensions: int, num_points: int, seed: int = 0, *, grows: bool = False) -> IntegrationPoints:
        """A grid in one and two dimensions; in more, quasi-random points (Sobol, scrambled).

        :param num_points: at most so many; a grid has the same number along each dimension.
        :param seed: of the scrambling.
        :param grows: whether longer sequences have more dimensions; then points are quasi-random, and the first
            dimensions are the same however many there are.
        """
        if dimensions <= GRID_DIMENSIONS and not grows:
            return _grid(dimensions, num_points)
        engine = torch.quasirandom.SobolEngine(MOST_DIMENSIONS, scramble=True, seed=seed)
        chances = engine.draw(num_points, dtype=torch.double)
        # Points lie in cells of this size, of which they have the lower end.
        cell = 2.0**-engine.MAXBIT
        scores = torch.special.ndtri(chances + cell / 2)
        return IntegrationPoints(scores, torch.full((num_points,), -np.log(num_points), dtype=torch.double))

    def __len__(self) -> int:
        return len(self.log_weights)


def _grid(dimensions: int, num_points: int) -> IntegrationPoints:
    """Evenly spaced points, weighted by the normal density (the midpoint rule).

    For analytic functions the error falls exponentially, and for steep ones, such as those of logits, faster than that
    of Gauss–Hermite points, which are farther apart in the middle.
    """
    along = int(np.floor(num_points ** (1 / dimensions) + 1e-9))
    # There the tail of the density is as small as the error by the distance of the points.
    reach = min(_TAIL, np.sqrt(np.pi * along))
    nodes = reach * (2 * torch.arange(along, dtype=torch.double) + 1 - along) / along
    places = torch.cartesian_prod(*[nodes] * dimensions).view(-1, dimensions)
    shares = -0.5 * places.square().sum(1)
    return IntegrationPoints(places, shares - shares.logsumexp(0))
