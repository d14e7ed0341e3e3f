# SPDX-License-Identifier: Apache-2.0
"""Values for the latents of each sequence."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine

from pyro_ksd.models.programs.local_latents import (
    AtPoints,
    LocalDimensions,
    Proposed,
    impossible_rows,
    local_log_prob,
    local_masks,
    local_values,
)

SCORES = torch.tensor([[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]]).double()


def traced(program: Any, **options: Any) -> tuple[poutine.Trace, LocalDimensions]:
    dimensions = LocalDimensions()
    at_points = AtPoints(SCORES, dimensions, **({"plate": "rows", "as_proposal": True} | options))
    return poutine.trace(at_points(program)).get_trace(), dimensions


def standard(*shape: int) -> Any:
    return dist.Normal(torch.zeros(shape).double(), 1.0)


def test_each_row_gets_a_point_and_each_site_its_dimensions() -> None:
    def program() -> None:
        pyro.sample("outside", standard())
        with pyro.plate("rows", 4):
            pyro.sample("a", standard())
            pyro.sample("seen", standard(), obs=torch.zeros(4).double())
            pyro.sample("b", standard(4, 2).to_event(1))
            pyro.sample("state", dist.Categorical(torch.ones(2)), infer={"enumerate": "parallel"})

    trace, dimensions = traced(program)
    assert trace.nodes["a"]["value"].tolist() == [0.0, 10.0, 0.0, 10.0]
    assert trace.nodes["b"]["value"].tolist() == [[1.0, 2.0], [11.0, 12.0]] * 2
    assert trace.nodes["a"]["is_observed"]
    assert trace.nodes["a"]["mask"] is False
    assert not trace.nodes["outside"]["is_observed"]
    assert not trace.nodes["state"]["is_observed"]
    assert trace.nodes["seen"]["value"].tolist() == [0.0] * 4
    assert (dimensions.names, len(dimensions)) == (["a", "b"], 3)


@pytest.mark.parametrize("rows_dim", [-1, -2])
def test_plates_inside_and_outside_of_the_rows(rows_dim: int) -> None:
    def program() -> None:
        with pyro.plate("rows", 4, dim=rows_dim), pyro.plate("tones", 3, dim=-3 - rows_dim):
            pyro.sample("a", standard())

    values = traced(program)[0].nodes["a"]["value"].movedim(rows_dim, 0)
    assert values.tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]] * 2


def test_states_that_are_summed_out_share_the_point_of_a_row() -> None:
    """They have a dimension to the left of all plates."""

    def program() -> None:
        with pyro.plate("rows", 4):
            means = torch.tensor([[0.0], [100.0]]).double()
            pyro.sample("a", dist.Normal(means.expand(2, 4), 1.0))

    trace, dimensions = traced(program)
    row = torch.tensor([0.0, 10.0, 0.0, 10.0]).double()
    assert trace.nodes["a"]["value"].tolist() == [row.tolist(), (row + 100).tolist()]
    assert len(dimensions) == 1


def test_the_plate_may_be_known_by_its_size() -> None:
    def program() -> None:
        with pyro.plate("other", 3, dim=-1):
            pyro.sample("a", standard())
        with pyro.plate("any", 4, dim=-1):
            pyro.sample("b", standard())

    trace, dimensions = traced(program, plate=None, count=4)
    assert dimensions.names == ["b"]
    assert not trace.nodes["a"]["is_observed"]


def test_values_of_a_guide_count_with_their_probability() -> None:
    def guide() -> None:
        with pyro.plate("rows", 4):
            pyro.sample("a", standard())

    assert traced(guide, as_proposal=False)[0].nodes["a"]["mask"] is None


def test_mistakes_are_named() -> None:
    dimensions = LocalDimensions()
    assert dimensions.of("a", 3) == range(3)
    assert dimensions.of("b", 2) == range(3, 5)
    assert dimensions.of("a", 3) == range(3)
    with pytest.raises(ValueError, match="site 'a': found a local latent of 3 numbers for some sequences and of 4"):
        dimensions.of("a", 4)
    with pytest.raises(ValueError, match="site 'c': found more than 1024 local latent numbers"):
        dimensions.of("c", 1020)

    def many() -> None:
        with pyro.plate("rows", 4):
            pyro.sample("a", standard(4, 5).to_event(1))

    with pytest.raises(ValueError, match="site 'a': found a local latent beside \\[\\], which are all that"):
        traced(many)

    def angles() -> None:
        with pyro.plate("rows", 4):
            pyro.sample("a", dist.VonMises(torch.zeros(4), 1.0))

    with pytest.raises(
        ValueError, match="site 'a': found a local latent of VonMises, expected a distribution with quan"
    ):
        traced(angles)


def test_a_transformation_with_more_numbers_than_its_base_is_named() -> None:
    def program() -> None:
        with pyro.plate("rows", 4):
            pyro.sample("a", dist.LogisticNormal(torch.zeros(4, 2).double(), torch.ones(2).double()))

    with pytest.raises(ValueError, match="site 'a': found a local latent of LogisticNormal, expected a distribution"):
        traced(program)


def test_proposed_values() -> None:
    def program() -> None:
        with pyro.plate("rows", 2):
            pyro.sample("a", standard())
            pyro.sample("other", standard())

    value = torch.tensor([4.0, 5.0]).double()
    for plate in ("rows", None):
        trace = poutine.trace(Proposed({"a": value}, plate, 2)(program)).get_trace()
        assert trace.nodes["a"]["value"] is value
        assert trace.nodes["a"]["mask"] is None
        assert not trace.nodes["other"]["is_observed"]
        assert local_values(trace) == {"a": (value, -1)}
        expected = dist.Normal(0.0, 1.0).log_prob(value)
        torch.testing.assert_close(local_log_prob(trace, 2, local_masks(trace)), expected)
        assert impossible_rows(trace, {"a": value * torch.tensor([1.0, torch.nan])}, 2).tolist() == [False, True]


def test_log_probabilities_are_masked_and_summed_for_each_row() -> None:
    def program() -> None:
        with pyro.plate("rows", 2, dim=-2), pyro.plate("tones", 3, dim=-1):
            with poutine.mask(mask=torch.tensor([[True], [False]])):
                pyro.sample("a", standard())
            pyro.sample("b", standard())

    values = {"a": torch.ones(2, 3).double(), "b": 2 * torch.ones(2, 3).double()}
    trace = poutine.trace(Proposed(values, "rows", 2)(program)).get_trace()
    one, two = (3 * float(dist.Normal(0.0, 1.0).log_prob(torch.tensor(z))) for z in (1.0, 2.0))
    masks = local_masks(trace)
    assert local_log_prob(trace, 2, masks).tolist() == pytest.approx([one + two, two])
    other = {**masks, "b": torch.tensor(False)}  # those of another program
    assert local_log_prob(trace, 2, other).tolist() == pytest.approx([one, 0.0])
    outside = torch.ones(2, 3, dtype=torch.double)
    outside[0, 1] = torch.nan
    assert impossible_rows(trace, values, 2).tolist() == [False, False]
    assert impossible_rows(trace, {**values, "a": outside}, 2).tolist() == [True, False]
    assert impossible_rows(trace, {**values, "b": outside.flip(0)}, 2).tolist() == [False, True]
