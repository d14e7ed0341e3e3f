# SPDX-License-Identifier: Apache-2.0
"""Views whose Stein features are bounded: the Stein identity by enumeration, and the bounds for extreme models."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from example_models import small_mrf
from torch import Tensor

from pyro_ksd.models import LinearChainMRF, MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.stream_views import MOST_FEATURES, BoundedView, bounded_views, length_bins


def dense(one: BoundedView, model: MarkovSequence | LinearChainMRF, data: Sequences) -> Tensor:
    [matrix] = stein_matrices(model, data, [one.view])
    features = matrix.features
    assert features is not None
    values = features.values.to_dense()
    codes = torch.arange(values.shape[1]) if features.codes is None else features.codes
    return torch.zeros(len(data), one.num_features, dtype=torch.double).index_copy_(1, codes, values)


@pytest.mark.parametrize("one", bounded_views(3), ids=lambda one: one.view.name)
def test_the_mean_under_the_model_is_zero(one: BoundedView) -> None:
    model = small_mrf()
    space = Sequences.of([list(x) for length in range(5) for x in product(range(3), repeat=length)], 3)
    log_joint = model.log_joint(space)
    space = space[log_joint > -torch.inf]
    p = log_joint[log_joint > -torch.inf].softmax(0)
    psi = dense(one, model, space)
    assert psi.abs().max() > 0.01
    assert (p @ psi).abs().max() < 1e-13


@pytest.mark.parametrize("one", bounded_views(4), ids=lambda one: one.view.name)
def test_bounds_hold_for_extreme_models_and_directions(one: BoundedView) -> None:
    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    for sharpness in (0.1, 3.0, 30.0):
        logits = sharpness * torch.randn(5, 4, dtype=torch.double, generator=generator)
        table = logits.softmax(1)
        model = MarkovSequence.from_transitions(table[0], table[1:], stop=float(1 / (2 + sharpness)))
        rows = [[s] * length for s in range(4) for length in (1, 2, 9, 40)]
        rows += torch.randint(4, (40, 12), generator=generator).tolist()
        psi = dense(one, model, Sequences.of(rows, 4))
        directions = [psi.sign(), psi, torch.randn(len(psi), psi.shape[1], dtype=torch.double, generator=generator)]
        for g in directions:  # for each sequence the direction that is worst for it, too
            most = one.reach * (g.amax(1).clamp(min=0) - g.amin(1).clamp(max=0))
            share = (psi * g).sum(1).abs() / most.clamp(min=1e-300)
            assert share.max() <= 1 + 1e-12
            largest = max(largest, float(share.max()))
    assert largest > 0.2  # the bounds are not far too wide


def test_views_of_large_alphabets_and_given_lengths() -> None:
    assert [one.view.name for one in bounded_views(100, lengths=False)] == ["content-1", "start", "surprise"]
    assert all(one.num_features <= MOST_FEATURES for one in bounded_views(70))
    assert "content-2" in [one.view.name for one in bounded_views(70)]


def test_length_bins_are_told_apart_and_named() -> None:
    lengths = torch.tensor([0, 1, 31, 32, 37, 38, 1_000_000])
    bins = length_bins(lengths)
    assert bins.sum(1).tolist() == [1.0] * len(lengths)
    places = bins.argmax(1)
    [own] = [one for one in bounded_views(3, drawn=True) if one.from_draws]
    assert bins.shape[1] == own.num_features
    labels = [own.view.kernel.feature_label(int(place), 3) for place in places]
    assert labels == [
        "length 0",
        "length 1",
        "length 31",
        "lengths 32 to 37",
        "lengths 32 to 37",
        "lengths 38 to 44",
        labels[-1],
    ]
    assert labels[-1].startswith("lengths from ")
    assert [one.view.kernel.feature_label(4, 3) for one in bounded_views(3) if one.view.name == "length"] == [
        "at least 5 symbols"
    ]


def test_as_many_features_as_are_allowed() -> None:
    assert MOST_FEATURES == 5000
    assert [one.view.name for one in bounded_views(5000)][:2] == ["content-1", "start"]
    assert next(one.view.name for one in bounded_views(5001)) == "start"
    assert [one.view.name for one in bounded_views(17)][:3] == ["content-1", "content-2", "content-3"]
    assert [one.view.name for one in bounded_views(18)][:3] == ["content-1", "content-2", "start"]
    with pytest.raises(ValueError, match="alphabet_size: expected an integer of at least 1"):
        bounded_views(0)
