# SPDX-License-Identifier: Apache-2.0
"""What users who leave out an option of these functions rely on: weights, seeds, what counts as draws, no bar."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
import torch

from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import assemble
from pyro_ksd.stein.length_features import length_distribution, length_kernel
from pyro_ksd.stein.length_views import length_view
from pyro_ksd.stein.operators import LengthOperator, TailBlockOperator
from pyro_ksd.stein.part_sums import sum_parts
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.stream_views import BoundedView, bounded_views
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits
from pyro_ksd.stein.weighting import scored_edits, weighted_edits
from pyro_ksd.stein.zanella_sampler import zanella_sample


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (View, {"weight": 1.0}),
        (Signs, {"first_draw": 0}),
        (Visits, {"first_row": 0}),
        (scored_edits, {"begin": 0}),
        (weighted_edits, {"begin": 0}),
        (length_kernel, {"drawn": False}),
        (length_distribution, {"drawn": False}),
        (length_view, {"drawn": False}),
        (BoundedView, {"from_draws": False}),
        (bounded_views, {"lengths": True, "drawn": False}),
        (zanella_sample, {"seed": 0, "progress": True}),
        (assemble, {"progress": False}),
        (sum_parts, {"progress": False}),
        (sum_views, {"progress": False}),
    ],
)
def test_options_that_are_left_out(function: Callable[..., Any], expected: dict[str, Any]) -> None:
    options = signature(function).parameters
    assert {name: options[name].default for name in expected} == expected


def test_edits_of_the_length_are_those_of_the_last_symbol() -> None:
    known = LengthDistribution.of(torch.tensor([0.5, 0.5]))
    assert known is not None
    for operator in (TailBlockOperator(), LengthOperator(known)):
        edits = operator.neighborhood.edits(Sequences.of([[0, 1, 0]], 2))
        assert len(edits) == 4  # one other symbol, two that are appended, and a deletion
