# SPDX-License-Identifier: Apache-2.0
"""The default views: what they look at, by which edits."""

from __future__ import annotations

import pytest
import torch
from example_models import walks

from pyro_ksd.edits.neighborhoods import BeforeEnd, InsertionsDeletions, Neighborhood, Substitutions, zs
from pyro_ksd.kernels import ContiguousKernel, LengthKernel, StartKernel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import barker, mpf
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, channel, channel_pair, check_views, default_views, repeated_channel


def test_all_but_the_length_share_one_operator() -> None:
    *content, start, length = default_views()
    names = [view.name for view in (*content, start, length)]
    assert names == ["content-1", "content-2", "content-3", "start", "length"]
    assert len({view.operator for view in (*content, start)}) == 1
    assert isinstance(start.operator, ZanellaOperator)
    assert isinstance(length.operator, TailBlockOperator)
    kernels = [*(ContiguousKernel(width) for width in (1, 2, 3)), StartKernel(), LengthKernel()]
    assert [repr(view.kernel) for view in (*content, start, length)] == [repr(kernel) for kernel in kernels]
    assert {view.operator.balancing for view in (start, length)} == {barker}


def test_the_balancing_function_is_that_of_all_views() -> None:
    assert {view.operator.balancing for view in default_views(balancing="mpf")} == {mpf}  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="balancing: expected one of"):
        default_views(balancing="gibbs")


@pytest.mark.parametrize(
    ("neighborhood", "tail"),
    [
        (None, zs(locations=1)),
        (Substitutions(), zs(locations=1)),
        (BeforeEnd(InsertionsDeletions()), BeforeEnd(zs(locations=1))),
    ],
)
def test_the_length_has_the_tail_of_the_neighborhood(neighborhood: Neighborhood | None, tail: Neighborhood) -> None:
    data, views = walks(), default_views(neighborhood)
    for found, expected in ((views[0], neighborhood or zs()), (views[-1], tail)):
        own, edits = found.operator.neighborhood.edits(data), expected.edits(data)
        assert torch.equal(own.owner, edits.owner)
        assert own.apply(data).to_lists() == edits.apply(data).to_lists()


@pytest.mark.parametrize("wrong", [None, [], "length", [None], [View], View])
def test_views_are_views(wrong: object) -> None:
    check_views(default_views())
    with pytest.raises(ValueError, match="views: expected a list of View objects, at least one, found "):
        check_views(wrong)


def test_channels_are_counted() -> None:
    rows = [torch.tensor([[0, 1, 2], [1, 1, 2]]), torch.tensor([[1, 0, 0]])]
    data = Sequences.of(rows)
    assert channel(data).tolist() == [[1.0, 2.0, 4.0], [1.0, 0.0, 0.0]]
    assert repeated_channel(data).tolist() == [[0.0, 1.0, 4.0], [0.0, 0.0, 0.0]]
    assert channel_pair(data).tolist() == [[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]]  # 0 and 1, 0 and 2, 1 and 2
    with pytest.raises(ValueError, match="expected symbols that are vectors, found single ones"):
        channel(Sequences.of(["ab"]))
