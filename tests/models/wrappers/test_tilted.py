# SPDX-License-Identifier: Apache-2.0
"""Tilted models, against enumeration and plain counting."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from example_models import bounded_chain, small_mrf, walk
from neighbor_lists import SYMMETRIC, space

from pyro_ksd.edits.counts import Count
from pyro_ksd.models import EndedModel, SequenceModel, constrain
from pyro_ksd.models.wrappers.tilted import TiltedModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.zanella_sampler import zanella_sample

LISTS = space(3, 4)
SPACE = Sequences.of(LISTS, 3)
FACTORS = {
    Count("ngram", (0, 1)): 1.4,
    Count("ngram", (2,)): 0.5,
    Count("first", (1,)): 3.0,
    Count("last", (0,)): 0.2,
    Count("length"): 1.1,
}
TILTS = {count: math.log(factor) for count, factor in FACTORS.items()}


def weight(x: tuple[int, ...]) -> float:
    """The product of the factors, in plain Python."""
    pairs = sum(x[i : i + 2] == (0, 1) for i in range(len(x)))
    found = 1.4**pairs * 0.5 ** x.count(2) * 1.1 ** len(x)
    found *= 3.0 if x[:1] == (1,) else 1.0
    return found * (0.2 if x[-1:] == (0,) else 1.0)


@pytest.mark.parametrize("model", [small_mrf(), bounded_chain()])
def test_probabilities_against_enumeration(model: SequenceModel) -> None:
    expected = model.log_joint(SPACE).exp() * torch.tensor([weight(x) for x in LISTS], dtype=torch.double)
    torch.testing.assert_close(TiltedModel(model, TILTS).log_joint(SPACE).exp(), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("model", [small_mrf(), bounded_chain()])
def test_ratios_agree_with_probabilities(model: SequenceModel, name: str) -> None:
    tilted = TiltedModel(model, TILTS)
    data = SPACE[model.log_joint(SPACE) > -torch.inf]
    edits = SYMMETRIC[name].edits(data)
    expected = tilted.log_joint(edits.apply(data)) - tilted.log_joint(data)[edits.owner]
    torch.testing.assert_close(tilted.log_ratio(data, edits), expected, rtol=0, atol=1e-10)


def test_all_else_is_that_of_the_model_within() -> None:
    inner = EndedModel(walk(), ends=[2])
    tilted = TiltedModel(inner, {Count("length"): 0.1})
    assert (tilted.name, tilted.alphabet_size, tilted.ends) == (inner.name, 5, (2,))
    assert tilted.default_neighborhood is inner.default_neighborhood
    assert tilted.defines_lengths == inner.defines_lengths
    with pytest.raises(ValueError, match="last symbol of every sequence"):
        tilted.check_data(Sequences.of([[0, 1]], 5))


def test_it_cannot_draw() -> None:
    tilted = TiltedModel(walk(), {Count("length"): -0.1})
    assert not tilted.can_draw
    with pytest.raises(ValueError, match="zanella_sample"):
        tilted.draw(3)
    known = Sequences.of([[0]], 5).with_covariates([1]).covariates
    assert known is not None
    with pytest.raises(ValueError, match="zanella_sample"):
        tilted.draw_given(known)


def test_it_can_be_sampled_by_jumps() -> None:
    inner = constrain(walk(), lambda x: (x.lengths >= 1) & (x.lengths <= 2))
    tilted = TiltedModel(inner, {Count("first", (0,)): math.log(4.0)})
    drawn = zanella_sample(tilted, 400, start=Sequences.of([[0]], 5), time=20.0, progress=False).sequences
    share = float((drawn.tokens[:, 0] == 0).double().mean())
    assert abs(share - 0.5) < 0.12  # 4 of 8 parts


class OfRows(SequenceModel):
    """A model that is another one for each row."""

    alphabet_size = 2  # type: ignore[assignment]

    def __init__(self, begin: int = 0) -> None:
        self.begin = begin

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return self.begin * sequences.lengths.double()

    def for_rows(self, begin: int) -> SequenceModel:
        return OfRows(begin)


def test_rows_keep_their_own_model() -> None:
    data = Sequences.of([[0, 1]], 2)
    tilted = TiltedModel(OfRows(), {Count("length"): 0.5})
    assert tilted.for_rows(3).log_joint(data).tolist() == [7.0]


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ([Count("length")], "pass a dictionary"),
        ({}, "at least one"),
        ({Count("first", (9,)): 1.0}, "codes of 5 symbols"),
        ({Count("length"): math.inf}, "expected finite numbers, found inf"),
        ({Count("length"): "2"}, "expected finite numbers, found '2'"),
    ],
)
def test_wrong_factors(factors: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TiltedModel(walk(), factors)
