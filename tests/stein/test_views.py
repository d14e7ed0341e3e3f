# SPDX-License-Identifier: Apache-2.0
"""The default views: what they look at, by which edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from example_models import walks
from torch import Tensor

from pyro_ksd.edits.neighborhoods import BeforeEnd, InsertionsDeletions, Neighborhood, Substitutions, zs
from pyro_ksd.kernels import (
    CompositionKernel,
    ContiguousKernel,
    EndKernel,
    EndsKernel,
    Kernel,
    LengthKernel,
    MirrorKernel,
    PositionKernel,
    RepeatsKernel,
    SkipKernel,
    StartKernel,
    SurpriseKernel,
)
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import barker, metropolis, mpf, tempered
from pyro_ksd.stein.operators import HeatBathOperator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import (
    View,
    channel,
    channel_pair,
    check_views,
    default_views,
    further_views,
    repeated_channel,
)

DEFAULT: dict[str, Kernel[Any]] = {
    "content-1": ContiguousKernel(1),
    "content-2": ContiguousKernel(2),
    "content-3": ContiguousKernel(3),
    "start": StartKernel(),
    "length": LengthKernel(),
    "surprise": SurpriseKernel(),
    "skip": SkipKernel((2, 3)),
    "position": PositionKernel(6),
    "mirror": MirrorKernel(),
    "repeats": RepeatsKernel(4),
}
FURTHER: dict[str, Kernel[Any]] = {"end": EndKernel(), "ends": EndsKernel(), "composition": CompositionKernel()}
REDRAWN = ["start", "skip", "position", "mirror", "repeats"]


@pytest.mark.parametrize(("make", "expected"), [(default_views, DEFAULT), (further_views, FURTHER)])
def test_names_and_kernels(make: Callable[[], list[View]], expected: dict[str, Kernel[Any]]) -> None:
    assert {view.name: repr(view.kernel) for view in make()} == {name: repr(of) for name, of in expected.items()}
    assert [view.name for view in make()] == list(expected)


def test_views_of_one_question_share_its_weight() -> None:
    weight = {view.name: view.weight for view in default_views()}
    questions = [["content-1", "content-2", "content-3"], ["start"], ["length"], ["surprise"], REDRAWN[1:]]
    for names in questions:
        assert [weight.pop(name) for name in names] == pytest.approx([1 / len(names)] * len(names))
    assert weight == {}
    assert [view.weight for view in further_views()] == [1.0, 1.0, 1.0]


def test_operators_are_shared() -> None:
    views = {view.name: view.operator for view in default_views()}
    assert len({views[name] for name in REDRAWN}) == 1
    assert len({views[f"content-{size}"] for size in (1, 2, 3)}) == 1
    assert len(set(views.values())) == 4
    assert isinstance(views["start"], HeatBathOperator)
    assert isinstance(views["content-1"], ZanellaOperator)
    assert isinstance(views["surprise"], ZanellaOperator)
    assert isinstance(views["length"], TailBlockOperator)
    assert len({operator.neighborhood for name, operator in views.items() if name != "length"}) == 1
    further = {view.operator for view in further_views()}
    assert len(further) == 1
    assert all(isinstance(operator, HeatBathOperator) for operator in further)


def test_where_nothing_is_replaced_all_jumps_count() -> None:
    views = {view.name: view.operator for view in default_views(InsertionsDeletions(), "mpf")}
    assert {views[name] for name in REDRAWN} == {views["content-1"]}
    for view in further_views(InsertionsDeletions(), "mpf"):
        assert isinstance(view.operator, ZanellaOperator)
        assert view.operator.balancing is mpf


@pytest.mark.parametrize(("balancing", "function"), [("barker", barker), ("mpf", mpf), ("metropolis", metropolis)])
def test_the_balancing_function_is_that_of_content_length_and_surprise(
    balancing: str, function: Callable[[Tensor], Tensor]
) -> None:
    views: dict[str, Any] = {view.name: view.operator for view in default_views(balancing=balancing)}
    assert {views[name].balancing for name in ("content-1", "content-2", "content-3", "length")} == {function}
    ratios = torch.linspace(-9, 9, 37, dtype=torch.double)
    assert views["surprise"].balancing(ratios).equal(tempered(function)(ratios))
    with pytest.raises(ValueError, match="balancing: expected one of"):
        default_views(balancing="gibbs")


def test_the_view_of_the_length_can_be_another_one() -> None:
    length = View("length", ZanellaOperator(), LengthKernel(lambda lengths: lengths.double()))
    views = {view.name: view for view in default_views(length=length)}
    assert views["length"] is length
    assert list(views) == list(DEFAULT)


@pytest.mark.parametrize("weight", [0, -1.0, "1", None])
def test_weights_are_positive_numbers(weight: Any) -> None:
    with pytest.raises(ValueError, match="weight: expected a "):
        View("start", ZanellaOperator(), StartKernel(), weight)


@pytest.mark.parametrize(
    ("neighborhood", "tail"),
    [
        (None, zs(locations=1)),
        (Substitutions(), zs(locations=1)),
        (BeforeEnd(InsertionsDeletions()), BeforeEnd(zs(locations=1))),
    ],
)
def test_the_length_has_the_tail_of_the_neighborhood(neighborhood: Neighborhood | None, tail: Neighborhood) -> None:
    data, views = walks(), {view.name: view for view in default_views(neighborhood)}
    for found, expected in ((views["content-1"], neighborhood or zs()), (views["length"], tail)):
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
