# SPDX-License-Identifier: Apache-2.0
"""How far one substitution moves the frequencies of n-grams."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.edits.neighborhoods import Substitutions
from pyro_ksd.kernels import FrequencyKernel
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_substitution_changes_no_more_than_the_bound(length: int) -> None:
    kernel = FrequencyKernel(length)
    generator = torch.Generator().manual_seed(0)
    data = Sequences.of([[0] * 6, [0, 1] * 3, *torch.randint(3, (20, 6), generator=generator).tolist()], 3)
    edits = Substitutions().edits(data)
    both = Sequences.cat([data, edits.apply(data)])
    features = kernel.features(both).values.to_dense()
    change = (features[len(data) :] - features[edits.owner]) * 6
    assert float(change.clamp(min=0).sum(1).max()) == pytest.approx(length)  # that many windows come
    assert float(change.sum(1).abs().max()) < 1e-12  # and as many go


@pytest.mark.parametrize("length", [0, 2.5, 63])
def test_wrong_lengths(length: float) -> None:
    with pytest.raises(ValueError, match="length: expected"):
        FrequencyKernel(length)  # type: ignore[arg-type]
