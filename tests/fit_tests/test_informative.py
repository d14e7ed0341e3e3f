# SPDX-License-Identifier: Apache-2.0
"""Views whose edits the model hardly ever allows say nothing, whatever the bootstrap."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import Tensor

from pyro_ksd import MarkovSequence, ksd_check
from pyro_ksd.edits.neighborhoods import Substitutions
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.informative import informative_views, recurrence, recurring_views
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.models import constrain
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View, default_views


def ends_with_zero(x: Sequences) -> Tensor:
    return x.tokens.gather(1, (x.lengths - 1).clamp(min=0)[:, None])[:, 0] == 0


def length_view() -> View:
    [view] = [view for view in default_views() if view.name == "length"]
    return view


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_views_whose_edits_are_hardly_ever_possible_are_left_out(bootstrap: Any) -> None:
    # Such a walk can grow only by holding its place, which it does in one step of a thousand.
    model = constrain(random_walk(5), ends_with_zero)
    data = model.draw(60, torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match=r"hardly ever allows the edits of the view\(s\) length, so that they show"):
        found = goodness_of_fit(model, data, default_views(), bootstrap=bootstrap, num_bootstrap=20)
    kept = [view.name for view in default_views() if view.name != "length"]
    assert [view.name for view in found.views] == kept
    assert found.null.statistic.shape == (20, 9)
    assert len(found.states) == 9
    with pytest.raises(ValueError, match="however badly it fits; choose edits that lead from one possible sequence"):
        goodness_of_fit(model, data, [length_view()], bootstrap=bootstrap)


def frozen(size: int = 3) -> MarkovSequence:
    """A chain in which each symbol says what comes next, so that every substitution is impossible."""
    return MarkovSequence.from_transitions(torch.eye(size)[0], torch.eye(size).roll(1, 1), stop=0.3)


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_a_model_that_allows_no_edit_is_not_said_to_fit(bootstrap: str) -> None:
    data = Sequences.of([[0, 1, 2, 0], [0, 1], [0, 1, 2]] * 10, 3)
    with pytest.raises(ValueError, match=r"the view\(s\) content-1, content-2, content-3, start, so that they show"):
        ksd_check(
            frozen(),
            data,
            neighborhood=Substitutions(),
            views=["content-1", "content-2", "content-3", "start"],
            bootstrap=bootstrap,
            progress=False,
        )


def program(x: Tensor | None = None, num_sequences: int = 0) -> Tensor:
    stop = pyro.sample("stop", dist.Beta(2.0, 2.0))
    chain = MarkovSequence.from_transitions(torch.eye(3)[0], torch.eye(3).roll(1, 1), stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def test_posterior_checks_leave_them_out_too() -> None:
    data = Sequences.of([[0, 1, 2, 0], [0, 1], [0, 1, 2]] * 10, 3)
    draws = {"stop": torch.tensor([0.25, 0.3, 0.35, 0.3])}
    options: dict[str, Any] = {"posterior": draws, "progress": False}
    with pytest.raises(ValueError, match="hardly ever allows the edits"):
        ksd_check(program, data, neighborhood=Substitutions(), views="content-1", **options)
    [letters] = default_views(Substitutions())[:1]
    with pytest.warns(UserWarning, match=r"the view\(s\) content-1, so that they show nothing.*they are left out"):
        check = ksd_check(program, data, views=[letters, length_view()], **options)
    assert check["ksd"]["view"].values.tolist() == ["length"]
    assert check["ksd"]["p_value"].shape == (1,)


def test_the_largest_rate_of_several_models_counts() -> None:
    views = default_views()
    rates = {view.operator: torch.tensor([0.0, 50.0]) for view in views}
    assert informative_views(views, rates, 100) == list(range(10))
    rates[length_view().operator] = torch.zeros(2)  # of another view with the same name
    assert informative_views(views, rates, 100) == list(range(10))
    rates[views[4].operator] = torch.tensor([4.9, 0.0])
    with pytest.warns(UserWarning, match=r"the view\(s\) length, so that they show nothing"):
        assert informative_views(views, rates, 100) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_views_of_runs_need_a_tenth_of_them_in_several_sequences() -> None:
    letters, length = default_views()[0], length_view()

    def sharing_one_of(runs: int) -> Sequences:
        """Two sequences with one symbol in common, two of all their runs of one symbol."""
        return Sequences.of([[0, *range(1, 10)], [0, *range(10, runs - 1)]], 40)

    assert recurring_views([letters, length], sharing_one_of(20)) == [0, 1]
    with pytest.warns(
        UserWarning, match=r"the view\(s\) content-1 cannot .* fewer than 10 % of their n-grams .* they are left out"
    ):
        assert recurring_views([letters, length], sharing_one_of(21)) == [1]
    with pytest.raises(ValueError, match="more than one sequence; choose other views, or bootstrap='parametr"):
        recurring_views([letters], sharing_one_of(21))


def test_one_frequent_shape_of_a_view_is_enough() -> None:
    view = View("both", ZanellaOperator(), ContiguousKernel(1, 2))
    assert recurring_views([view], Sequences.of(["abc", "cba"])) == [0]  # no pair occurs in both, every symbol does


@pytest.mark.parametrize(
    ("rows", "size", "expected"),
    [
        (["a", "b"], 3, 0.0),
        (["ab", ""], 3, 0.0),
        (["", ""], 1, 0.0),
        (["ab", "ab", "ba"], 2, 2 / 3),
        (["aaa", "b"], 1, 0),
    ],
)
def test_how_many_runs_recur(rows: list[str], size: int, expected: float) -> None:
    assert recurrence(Sequences.of(rows, "ab"), size) == pytest.approx(expected)


@pytest.mark.parametrize(("some", "place", "looked_at"), [(4, 0, [4]), (4, 1, [4, 12]), (12, 1, [12])])
def test_of_large_data_some_sequences_are_looked_at_first(
    some: int, place: int, looked_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third sequence is the same, the others are all different; the first, fourth, ... are looked at first."""
    alphabet = [str(code) for code in range(40)]
    different = [[alphabet[number], alphabet[number + 1]] for number in range(2, 34)]
    rows = [["0", "1"] if number % 3 == place else different[number] for number in range(12)]
    asked = []

    def noted(sequences: Sequences, size: int) -> float:
        asked.append(len(sequences))
        return recurrence(sequences, size)

    monkeypatch.setattr("pyro_ksd.fit_tests.informative._SOME", some)
    monkeypatch.setattr("pyro_ksd.fit_tests.informative.recurrence", noted)
    view = View("pairs", ZanellaOperator(), ContiguousKernel(2))
    assert recurring_views([view], Sequences.of(rows, alphabet)) == [0]
    assert asked == looked_at


@pytest.mark.parametrize(("more", "is_left_out"), [(0, False), (1, True)])
def test_one_run_in_ten_must_recur(more: int, is_left_out: bool) -> None:
    """Two of twenty pairs are the same in two sequences, then two of twenty-one; all single symbols recur."""
    one = list(range(11))
    other = [0, 1, 3, 5, 7, 9, 2, 4, 6, 8, 10]
    data = Sequences.of([one, [*other, 0][: 11 + more]], 11)
    views = [
        View("pairs", ZanellaOperator(), ContiguousKernel(2)),
        View("symbols", ZanellaOperator(), ContiguousKernel(1)),
    ]
    assert recurrence(data, 2) == (2 / 21 if more else 0.1)
    if is_left_out:
        with pytest.warns(UserWarning, match="pairs cannot be used with the wild bootstrap: fewer than 10 %"):
            assert recurring_views(views, data) == [1]
    else:
        assert recurring_views(views, data) == [0, 1]


def test_sequences_that_are_too_short_for_any_run() -> None:
    assert recurrence(Sequences.of([[0], [1], []], 2), 1) == 0.0
    assert recurrence(Sequences.of([[], [], []], 2), 1) == 0.0
    assert (
        recurrence(Sequences.of([[0, 1], [1]], 2).derived(torch.zeros(2, 3, dtype=torch.long), torch.tensor([1, 2])), 3)
        == 0.0
    )
