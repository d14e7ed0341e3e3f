# SPDX-License-Identifier: Apache-2.0
"""What edits change of a few features: compiled loops give what torch gives."""

from __future__ import annotations

import pytest
import torch
from feature_enumeration import NEIGHBORHOODS, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import BeforeEnd, DoubleSubstitutions, Neighborhood, zs
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.kernels.mirror import MirrorKernel
from pyro_ksd.kernels.position import PositionKernel
from pyro_ksd.kernels.repeats import RepeatsKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

pytest.importorskip("numba")

KERNELS: dict[str, LocalKernel] = {
    "start": StartKernel(),
    "start 3": StartKernel(3),
    "length": LengthKernel(),
    "position": PositionKernel(3),
    "mirror": MirrorKernel(),
    "repeats 2": RepeatsKernel(2),
    "repeats 4": RepeatsKernel(4),
}
AROUND: dict[str, Neighborhood] = {
    **NEIGHBORHOODS,
    "before the end": BeforeEnd(zs()),
    "all of it": zs(2) | DoubleSubstitutions(),
}


@pytest.mark.parametrize("name", KERNELS)
@given(
    data=st.lists(runs(9), min_size=1, max_size=5),
    around=st.sampled_from(sorted(AROUND)),
    size=st.integers(3, 5),
    models=st.integers(1, 3),
)
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0]], around="zs", size=3, models=2)
@settings(max_examples=25, deadline=None)
def test_features_and_steps_are_those_of_torch(
    name: str, data: list[list[int]], around: str, size: int, models: int
) -> None:
    kernel = KERNELS[name]
    sequences = Sequences.of(data, size)
    edits = AROUND[around].edits(sequences)
    weights = torch.rand(models, len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(len(edits)))
    found = []
    for switch in ("1", "0"):
        chunk = WeightedEdits(0, sequences, edits, weights)  # it remembers changes
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYRO_KSD_COMPILED", switch)
            features = kernel.stein_features_each(chunk)
            steps = kernel.steps_along(chunk, Witness.of(features[0], 0, len(data)))
            changes = [kernel.changes(sequences, block) for block in edits.blocks]
        found.append(([own.dense() for own in features], steps, changes))
    (features, steps, changes), (expected, expected_steps, expected_changes) = found
    torch.testing.assert_close(features, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(steps, expected_steps, rtol=1e-10, atol=1e-12)
    for own, other in zip(changes, expected_changes, strict=True):
        assert (own is None) == (other is None)
        if own is not None and other is not None:
            assert own[1].double().equal(other[1])
            assert own[0][own[1] != 0].long().equal(other[0][own[1] != 0])
