# SPDX-License-Identifier: Apache-2.0
"""Shares of the statistic against brute force, and directions against truth."""

from __future__ import annotations

import pyro.distributions as dist
import pytest
import torch
from example_models import Unsampled, walk

from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.absolute import GoodnessOfFit, goodness_of_fit
from pyro_ksd.fit_tests.localization import MOST_EDITS, edit_shares, localize
from pyro_ksd.kernels import ContiguousKernel, HammingKernel
from pyro_ksd.models import IndependentSequence, MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View, default_views

SYMBOLS = list("abcde")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fit(model: MarkovSequence, data: Sequences, views: list[View] | None = None, draws: int = 99) -> GoodnessOfFit:
    return goodness_of_fit(model, data, views or default_views(), num_bootstrap=draws)


def findings(result: GoodnessOfFit, name: str, level: float = 0.05) -> dict[str, float]:
    """The scores of the features of a view that are significant at the level."""
    index = [view.name for view in result.views].index(name)
    features = localize(result)[index].features
    assert features is not None
    rows = zip(features.name, features.z.tolist(), features.p_value.tolist(), strict=True)
    return {label: z for label, z, p in rows if p <= level}


@pytest.mark.parametrize("chunk", [2**17, 60])
def test_shares_of_edits_are_what_leaving_one_out_gives(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", chunk)
    operator = ZanellaOperator()
    views = [View("2", operator, ContiguousKernel(2)), View("Hamming", operator, HammingKernel()), *default_views()[3:]]
    data = walk(hold=0.4).draw(7, seeded(2))
    result = fit(walk(), data, views, draws=2)
    n = len(data)
    for index, (view, place) in enumerate(zip(views, localize(result), strict=True)):
        matrix = result.matrices[index]
        parts = list(edit_shares(result.jumps[view.operator], view, matrix))
        total = sum(float(shares.sum()) for _, shares in parts)
        assert total == pytest.approx(float(result.statistic[index]), rel=1e-12)
        assert float(place.contribution.sum()) == pytest.approx(total, rel=1e-12)
        assert float(place.attribution.nansum()) == pytest.approx(total, rel=1e-12)
        hollow = matrix.dense().clone().fill_diagonal_(0.0)
        torch.testing.assert_close(place.contribution, hollow.sum(1) / (n * (n - 1)), rtol=1e-10, atol=1e-14)
        for part, shares in parts:  # each edit by the definition, f_{-i} from the kernel itself
            whole = result.jumps[view.operator].at_once()
            own, neighbors = part.edits.owner, part.edits.apply(part.sequences)
            others, theirs = whole.edits.apply(data), whole.edits.owner
            step = view.kernel.gram(neighbors, others) - view.kernel.gram(neighbors, data)[:, theirs]
            here = view.kernel.gram(part.sequences, others) - view.kernel.gram(part.sequences, data)[:, theirs]
            apart = (own + part.begin)[:, None] != theirs
            expected = ((step - here[own]) * whole.weights * apart).sum(1) * part.weights / (n * (n - 1))
            torch.testing.assert_close(shares, expected, rtol=1e-9, atol=1e-13)


def test_positions_are_where_the_edits_begin() -> None:
    data = walk(hold=0.4).draw(6, seeded(0))
    result = fit(walk(), data, default_views()[:1], draws=2)
    [(chunk, shares)] = edit_shares(result.jumps[result.views[0].operator], result.views[0], result.matrices[0])
    [place] = localize(result)
    expected = torch.full((6, data.width + 1), torch.nan, dtype=torch.double)
    for row, length in enumerate(data.lengths.tolist()):
        expected[row, : length + 1] = 0.0
    starts = torch.cat([block.start for block in chunk.edits.blocks])
    for row, start, share in zip(chunk.edits.owner.tolist(), starts.tolist(), shares.tolist(), strict=True):
        expected[row, start] += share
    torch.testing.assert_close(place.attribution, expected, rtol=1e-10, atol=1e-14, equal_nan=True)


def test_the_most_telling_edits_are_told_in_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    data = walk(hold=0.4).draw(9, seeded(1))
    result = fit(walk(), data, default_views()[1:2], draws=2)
    edits = localize(result)[0].edits
    [view], [matrix] = result.views, result.matrices
    every = torch.cat([shares for _, shares in edit_shares(result.jumps[view.operator], view, matrix)])
    torch.testing.assert_close(edits.share, every.sort(descending=True).values[:MOST_EDITS])
    lists = data.to_lists()
    for row, position, removed in zip(edits.sequence.tolist(), edits.position.tolist(), edits.removed, strict=True):
        assert tuple(SYMBOLS[code] for code in lists[row][position : position + len(removed)]) == removed
    growth = [len(come) - len(gone) for come, gone in zip(edits.inserted, edits.removed, strict=True)]
    assert set(growth) == {-1, 0, 1}


@pytest.mark.parametrize(("size", "kind"), [(40, "parametric"), (300, "wild")])
def test_a_walk_that_cannot_hold_makes_repeated_symbols_too_rarely(size: int, kind: str) -> None:
    result = fit(walk(), walk(hold=0.4).draw(size, seeded(0)), draws=199)
    assert result.kind == kind
    found = findings(result, "content-2")
    repeats = {label for label in found if label[0] == label[1]}
    assert repeats
    assert all(found[label] < 0 for label in repeats)
    assert all(found[label] > 0 for label in set(found) - repeats)


def test_the_other_way_round_it_makes_them_too_often() -> None:
    found = findings(fit(walk(hold=0.4), walk().draw(40, seeded(0)), draws=199), "content-2")
    repeats = [z for label, z in found.items() if label[0] == label[1]]
    assert repeats
    assert min(repeats) > 0


@pytest.mark.parametrize(("mean_length", "sign"), [(4.0, 1), (20.0, -1)])
def test_direction_of_the_length(mean_length: float, sign: int) -> None:
    # Where the data are shorter than the model has them, the model makes sequences too long, and the other way round.
    data = random_walk(5, mean_length=mean_length).draw(60, seeded(0))
    found = findings(fit(random_walk(5, mean_length=8.0), data, draws=199), "length")
    assert found["length"] * sign > 0


def test_first_symbols_are_named() -> None:
    even = torch.full((5,), 0.2, dtype=torch.double)
    start = torch.tensor([0.8, 0.05, 0.05, 0.05, 0.05], dtype=torch.double)
    model = MarkovSequence.from_transitions(even, even.expand(5, 5), stop=0.2)
    data = MarkovSequence.from_transitions(start, even.expand(5, 5), stop=0.2).draw(50, seeded(3))
    found = findings(fit(model, data, draws=199), "start")
    assert found["^a"] < 0  # the model makes it too rarely
    assert all(found[label] > 0 for label in set(found) - {"^a"})


def test_a_model_without_samples_is_localized_by_signs() -> None:
    data = walk(hold=0.4).draw(120, seeded(0))
    result = goodness_of_fit(Unsampled(walk()), data, default_views(), num_bootstrap=199)
    assert result.kind == "wild"
    assert min(findings(result, "content-2").values()) < 0


def test_single_symbols_are_named() -> None:
    def symbols(*probs: float) -> IndependentSequence:
        return IndependentSequence(torch.tensor(probs, dtype=torch.double), dist.Poisson(6.0))

    result = fit(symbols(0.6, 0.2, 0.2), symbols(0.2, 0.2, 0.6).draw(40, seeded(0)), draws=199)  # type: ignore[arg-type]
    found = findings(result, "content-1")
    assert found["a"] > 0 > found["c"]
