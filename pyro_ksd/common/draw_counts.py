# SPDX-License-Identifier: Apache-2.0
"""How many posterior draws a check of held-out data takes: some to average over, and one for each replicate."""

from __future__ import annotations

_MOST_AVERAGED = 4  # more of them take as many times as long, and add hardly any power
_REPLICATES_FOR_EACH = 9  # if there are few draws


def draws_in_all(num_replicates: int) -> int:
    """The number of posterior draws that ``num_replicates`` replicated data sets take, with those to average over.

    >>> draws_in_all(500), draws_in_all(19), draws_in_all(1)
    (504, 21, 2)
    """
    return num_replicates + max(1, min(_MOST_AVERAGED, num_replicates // _REPLICATES_FOR_EACH))


def num_averaged(num_draws: int) -> int:
    """Over how many of the posterior draws statistics are averaged; from each of the others, data are replicated.

    >>> [num_averaged(draws_in_all(replicates)) for replicates in (1, 19, 500)]
    [1, 2, 4]
    """
    return max(1, min(_MOST_AVERAGED, num_draws // (_REPLICATES_FOR_EACH + 1)))
