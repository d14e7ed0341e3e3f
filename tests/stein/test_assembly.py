# SPDX-License-Identifier: Apache-2.0
"""Stein kernel matrices of several views in one pass over the data."""

from __future__ import annotations

import pytest
import torch
from counting_objects import CountingNeighborhood
from example_models import walk, walks

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.weighted_edits import chunk_rows, edit_bounds
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.localization import localize
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, LengthKernel, StartKernel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import allows_few_jumps, assemble, stein_matrices
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, default_views


def several_views() -> list[View]:
    """Views of two operators; kernels with features, one without, and a sum of both."""
    operator = ZanellaOperator()
    kernels = {"pairs": ContiguousKernel(2), "Hamming": HammingKernel(), "both": StartKernel() + 0.5 * HammingKernel()}
    own = [View(name, operator, kernel) for name, kernel in kernels.items()]
    return [own[0], View("length", TailBlockOperator(), LengthKernel()), *own[1:]]


def test_chunks_of_sequences_do_not_change_the_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sequences, views = walk(), walks(15), [*default_views(), *several_views()]
    whole = stein_matrices(model, sequences, views)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    assert len(chunk_rows(zs(), sequences)) > 5
    for a, b in zip(whole, stein_matrices(model, sequences, views), strict=True):
        torch.testing.assert_close(a.dense(), b.dense(), rtol=1e-11, atol=1e-12)


def test_each_view_has_the_matrix_of_its_own_kernel_and_operator() -> None:
    model, data, views = walk(), walks(), several_views()
    for view, matrix in zip(views, stein_matrices(model, data, views), strict=True):
        edits = view.operator.neighborhood.edits(data)
        weights = view.operator.weights(data, edits, model.log_ratio(data, edits))
        expected = view.kernel.stein(data, edits, weights)
        torch.testing.assert_close(matrix.dense(), expected.dense(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("with_pairwise_kernel", [False, True])
def test_edits_are_found_once_for_the_features_and_once_for_the_places_of_all_views(
    with_pairwise_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    around, tail = CountingNeighborhood(), CountingNeighborhood(zs(locations=1))
    operator = ZanellaOperator(around)
    views = [View(str(t), operator, ContiguousKernel(t)) for t in (1, 2, 3)]
    views += [View("start", operator, StartKernel()), View("length", TailBlockOperator("barker", tail), LengthKernel())]
    if with_pairwise_kernel:
        views.append(View("Hamming", operator, HammingKernel()))
    data = walks(15)
    chunks = [rows.stop - rows.start for rows in chunk_rows(around, data)]
    few = [rows.stop - rows.start for rows in chunk_rows(tail, data)]
    assert len(chunks) > 5
    assert len(few) > 1
    result = goodness_of_fit(walk(), data, views, bootstrap="wild", num_bootstrap=3)
    assert (around.calls, tail.calls) == (chunks, few)
    localize(result)
    assert (around.calls, tail.calls) == (2 * chunks, 2 * few)


@pytest.mark.parametrize(
    ("rates", "num_sequences", "hardly"),
    [
        ([1.0], 20, False),  # 0.05 jumps of each
        ([1.0 - 1e-9], 20, True),
        ([4.99], 99, False),
        ([4.94], 99, True),
        ([5.0], 1000, False),  # 5 jumps of all together
        ([5.0 - 1e-9], 1000, True),
        ([0.0, 9.0, 0.0], 20, False),  # the model that allows the most counts
        ([0.0, 0.9, 0.0], 20, True),
    ],
)
def test_few_jumps_are_fewer_than_five_or_one_of_twenty_sequences(
    rates: list[float], num_sequences: int, hardly: bool
) -> None:
    assert allows_few_jumps(torch.tensor(rates, dtype=torch.double), num_sequences) == hardly


def test_two_views_may_share_one_kernel_object() -> None:
    kernel, operator = ContiguousKernel(2), ZanellaOperator()
    other = ZanellaOperator(zs(locations=1))
    views = [View("one", operator, kernel), View("last", other, kernel), View("two", operator, kernel)]
    model, data = walk(), walks()
    one, last, two = stein_matrices(model, data, views)
    [alone] = stein_matrices(model, data, views[:1])
    [last_alone] = stein_matrices(model, data, views[1:2])
    assert torch.equal(one.dense(), alone.dense())
    assert torch.equal(two.dense(), alone.dense())
    assert torch.equal(last.dense(), last_alone.dense())
    assert not torch.allclose(last.dense(), one.dense())
    result = goodness_of_fit(model, data, views, bootstrap="wild", num_bootstrap=5)
    places = localize(result)
    torch.testing.assert_close(torch.stack([place.contribution.sum() for place in places]), result.statistic)
    torch.testing.assert_close(places[0].shown.attribution, places[2].shown.attribution, equal_nan=True)


def test_impossible_sequences_are_refused() -> None:
    with pytest.raises(ValueError, match=r"probability zero to 1 of 2 sequences: sequence 1, \[\]. It cannot"):
        stein_matrices(walk(), Sequences.of([[0], []], 5), default_views())


def test_progress_can_be_seen(terminal: pytest.CaptureFixture[str]) -> None:
    assemble(walk(), walks(), default_views())
    assert terminal.readouterr().err == ""
    assemble(walk(), walks(), default_views(), progress=True)
    shown = terminal.readouterr().err
    assert "Stein features: 100%" in shown
    views = default_views()
    around = {view.operator.neighborhood for view in views}
    assert len(around) == 2  # all edits, and those of the last symbol
    bounds = {own: int(edit_bounds(own, walks()).sum()) for own in around}
    assert f"up to {sum(bounds.values()):,} edits" in shown
