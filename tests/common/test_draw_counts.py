# SPDX-License-Identifier: Apache-2.0
"""How many posterior draws a check of held-out data takes."""

from __future__ import annotations

from pyro_ksd.common.draw_counts import draws_in_all, num_averaged


def test_as_many_data_sets_are_replicated_as_were_asked_for() -> None:
    for replicates in range(1, 700):
        in_all = draws_in_all(replicates)
        assert in_all - num_averaged(in_all) == replicates
        assert in_all - 1 - num_averaged(in_all - 1) <= replicates


def test_a_few_draws_are_averaged() -> None:
    assert [num_averaged(draws) for draws in (2, 10, 19, 20, 39, 40, 1000)] == [1, 1, 1, 2, 3, 4, 4]
