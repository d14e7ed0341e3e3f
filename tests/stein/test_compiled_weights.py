# SPDX-License-Identifier: Apache-2.0
"""Weights in compiled loops against those of torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import HeatBathOperator

pytest.importorskip("numba")

RATIOS = st.floats(-800, 800) | st.just(-math.inf)


@given(
    data=st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=4),
    ratios=st.lists(RATIOS, min_size=1, max_size=50),
    single=st.booleans(),
)
@example(data=[[0, 1]], ratios=[-math.inf], single=False)
@settings(max_examples=60, deadline=None)
def test_weights_of_redrawn_symbols(data: list[list[int]], ratios: list[float], single: bool) -> None:
    sequences = Sequences.of(data, 3)
    operator = HeatBathOperator(zs())
    edits = operator.neighborhood.edits(sequences)
    log_ratio = torch.tensor(ratios).double().repeat(1 + len(edits) // len(ratios))[: len(edits)]
    log_ratio = log_ratio.float() if single else log_ratio
    found = []
    for switch in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYRO_KSD_COMPILED", switch)
            found.append(operator.weights(sequences, edits, log_ratio))
    assert found[0].dtype == log_ratio.dtype
    torch.testing.assert_close(*found, rtol=1e-4 if single else 1e-10, atol=1e-30)


def test_gradients_pass_through_the_weights() -> None:
    sequences = Sequences.of(["ab"])
    operator = HeatBathOperator(zs())
    edits = operator.neighborhood.edits(sequences)
    log_ratio = torch.zeros(len(edits), dtype=torch.double, requires_grad=True)
    operator.weights(sequences, edits, log_ratio).sum().backward()  # type: ignore[no-untyped-call]
    assert log_ratio.grad is not None
    assert log_ratio.grad.any()
