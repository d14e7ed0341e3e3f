# SPDX-License-Identifier: Apache-2.0
"""How strongly sequences push features, in a compiled loop: the same numbers as those of torch, in one pass."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from pyro_ksd.common.compilation import compiled


def add_pushes(
    features: Tensor,
    columns: Tensor,
    places: Tensor,
    sign: Tensor,
    reach: Tensor,
    steps: int,
    number: Tensor,
    total: Tensor,
    largest: Tensor,
) -> None:
    """Adds the pushes of dense features to the tables of :class:`~pyro_ksd.fit_tests.removal.Pushes`.

    :param features: double ``[N, D]``.
    :param columns: long ``[M]``, which of their columns to look at.
    :param places: long ``[M]``, the rows of these columns in the tables.
    :param sign: ``[C]``, the sign of a push.
    :param reach: ``[C]``, what no push can exceed.
    :param steps: the number of classes for each factor of 2.
    :param number: ``[C, K]``, the table of the numbers, to which the loop adds, as to ``total`` and ``largest``.
    """
    _add_pushes(
        features.numpy(),
        columns.numpy(),
        places.numpy(),
        sign.numpy(),
        reach.numpy(),
        steps,
        number.numpy(),
        total.numpy(),
        largest.numpy(),
    )


@compiled
def _add_pushes(
    features: np.ndarray,
    columns: np.ndarray,
    places: np.ndarray,
    sign: np.ndarray,
    reach: np.ndarray,
    steps: int,
    number: np.ndarray,
    total: np.ndarray,
    largest: np.ndarray,
) -> None:
    for row in range(len(features)):
        for index in range(len(columns)):
            place = places[index]
            push = features[row, columns[index]] * sign[place]
            if push > 0:
                strength = int(math.log2(reach[place] / push) * steps)
                strength = min(max(strength, 0), number.shape[1] - 1)
                number[place, strength] += 1
                total[place, strength] += push
                largest[place, strength] = max(largest[place, strength], push)
