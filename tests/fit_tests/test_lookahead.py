# SPDX-License-Identifier: Apache-2.0
"""Variance one jump ahead: exact enumeration on small spaces, drawn estimates, and the level that it restores."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import torch
from example_models import small_mrf, walk, walks
from torch import Tensor

from benchmarks.rejections import WHOLE, band, default_check, seeded, wild_rates
from benchmarks.true_models import true_models
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.fit_tests import lookahead
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.lookahead import missing_rows
from pyro_ksd.kernels import (
    ContiguousKernel,
    FeatureKernel,
    HammingKernel,
    LengthKernel,
    MirrorKernel,
    StartKernel,
    SurpriseKernel,
)
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import IndependentSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import HeatBathOperator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.visits import Visits
from pyro_ksd.stein.weighting import weighted_edits

SIZE, LONGEST = 3, 3


@cache
def space() -> tuple[SequenceModel, Sequences, Tensor]:
    """A small field, all of its sequences, and their probabilities."""
    model = small_mrf(SIZE, LONGEST)
    rows = [x for length in range(LONGEST + 1) for x in product(range(SIZE), repeat=length)]
    sequences = Sequences.of(rows, SIZE)
    return model, sequences, model.log_joint(sequences).softmax(0)


VIEWS = {
    "content-1": View("content-1", ZanellaOperator(), ContiguousKernel(1)),
    "content-2": View("content-2", ZanellaOperator(balancing="mpf"), ContiguousKernel(2)),
    "start": View("start", HeatBathOperator(), StartKernel()),
    "mirror": View("mirror", HeatBathOperator(Substitutions()), MirrorKernel()),
    "length": View("length", TailBlockOperator(), LengthKernel()),
    "surprise": View("surprise", ZanellaOperator(), SurpriseKernel()),
}


def assembled(model: SequenceModel, data: Sequences, view: View) -> tuple[Visits, FeatureMatrix]:
    visits = Visits(model, data, [view])
    [matrix] = visits.whole(view)
    assert isinstance(matrix, FeatureMatrix)
    return visits, matrix


def dense(matrix: FeatureMatrix, size: int) -> Tensor:
    """The features with all their columns."""
    values = matrix.values.to_dense()
    if matrix.codes is None:
        return values
    return torch.zeros(len(values), size, dtype=torch.double).index_copy_(1, matrix.codes, values)


def exhaustive(view: View) -> tuple[Tensor, Tensor, Tensor]:
    """The variance of the Stein features, and both forms of it one jump ahead, by sums over all edits; ``[D, D]``."""
    model, sequences, p = space()
    _, matrix = assembled(model, sequences, view)
    columns = int(matrix.codes.max()) + 1 if matrix.codes is not None else matrix.values.shape[1]
    psi = dense(matrix, columns)
    chunk = weighted_edits(model, view.operator, sequences)
    index = {tuple(x): row for row, x in enumerate(sequences.to_lists())}
    jumps = chunk.edits.sum_by_owner(chunk.weights)
    now, ahead, stepped = (torch.zeros(columns, columns, dtype=torch.double) for _ in range(3))
    for row in range(len(sequences)):
        now += p[row] * torch.outer(psi[row], psi[row])
    phi = None if isinstance(view.kernel, SurpriseKernel) else dense(view.kernel.features(sequences), columns)  # type: ignore[attr-defined]
    phi = model.log_joint(sequences)[:, None] if phi is None else phi
    targets = chunk.edits.apply(sequences).to_lists()
    for owner, y, weight in zip(chunk.edits.owner.tolist(), targets, chunk.weights, strict=True):
        if float(weight):
            there = index[tuple(y)]
            ahead += p[owner] * weight * torch.outer(psi[there], psi[there]) / jumps[there]
            stepped -= p[owner] * weight * torch.outer(phi[there] - phi[owner], psi[there])
    return now, ahead, stepped


@pytest.mark.parametrize("name", VIEWS)
def test_both_forms_are_the_variance(name: str) -> None:
    now, ahead, stepped = exhaustive(VIEWS[name])
    assert float(now.trace()) > 1e-3
    torch.testing.assert_close(ahead, now, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(stepped, now, rtol=1e-9, atol=1e-12)


def drawn_sums(view: View, data: Sequences, seed: int) -> tuple[float, float]:
    """How much variance the drawn edits show in both forms, from sequences that are edited one by one."""
    model = space()[0]
    kept, _ = assembled(model, data, view)
    assert isinstance(view.kernel, FeatureKernel)
    drawn = lookahead._drawn_edits(view, view.kernel, kept, torch.Generator().manual_seed(seed))
    assert drawn is not None
    assert len(drawn.edited) == len(drawn.share) == lookahead._DRAWN
    _, matrix = assembled(model, drawn.edited, view)
    chunk = weighted_edits(model, view.operator, drawn.edited)
    jumps = chunk.edits.sum_by_owner(chunk.weights)
    squares = matrix.diagonal()
    ahead = float((drawn.share * squares / jumps).sum())
    if drawn.change is None:
        return ahead, ahead
    return ahead, -float((drawn.share[:, None] * drawn.change * matrix.values).sum())


def exhaustive_sums(view: View, data: Sequences) -> tuple[float, float]:
    """The same for all edits of the data."""
    model = space()[0]
    chunk = weighted_edits(model, view.operator, data)
    used = chunk.weights > 0
    edits = chunk.edits.select(used.nonzero()[:, 0])
    edited, weights = edits.apply(data), chunk.weights[used]
    _, matrix = assembled(model, edited, view)
    ahead = weighted_edits(model, view.operator, edited)
    jumps = ahead.edits.sum_by_owner(ahead.weights)
    first = float((weights * matrix.diagonal() / jumps).sum())
    if isinstance(view.kernel, ContiguousKernel):
        return first, first
    if isinstance(view.kernel, SurpriseKernel):
        step = (model.log_joint(edited) - model.log_joint(data)[edits.owner])[:, None]
    else:
        assert isinstance(view.kernel, FeatureKernel)
        step = view.kernel.features(edited).values - view.kernel.features(data).values[edits.owner]
    return first, -float((weights[:, None] * step * matrix.values).sum())


@pytest.mark.parametrize("name", VIEWS)
def test_drawn_edits_stand_for_all_of_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of many estimates is within 4.5 standard errors of the sum over all edits, also in several chunks.

    Of few features, only edits that change them are drawn: the second form needs no others.
    """
    model, _, _ = space()
    data = model.draw(15, torch.Generator().manual_seed(3))
    _, expected = exhaustive_sums(VIEWS[name], data)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 60)
    found = torch.tensor([drawn_sums(VIEWS[name], data, seed)[1] for seed in range(60)], dtype=torch.double)
    error = float(found.std() / len(found) ** 0.5)
    assert error < 0.05 * expected
    assert abs(float(found.mean()) - expected) < 4.5 * error + 1e-9 * expected


@pytest.mark.parametrize("name", ["start", "mirror", "length", "surprise"])
def test_edits_are_drawn_in_proportion_to_what_they_change(name: str) -> None:
    """Drawn as often as the weight times the change says, all drawn edits stand for equal parts of the sum."""
    view, (model, sequences, _) = VIEWS[name], space()
    kept, _ = assembled(model, sequences, view)
    assert isinstance(view.kernel, FeatureKernel)
    drawn = lookahead._drawn_edits(view, view.kernel, kept, torch.Generator().manual_seed(0))
    assert drawn is not None
    assert drawn.change is not None
    parts = drawn.share * drawn.change.abs().sum(1)
    torch.testing.assert_close(parts, parts[:1].expand_as(parts))
    assert float(parts[0]) > 0


def test_chunks_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 60)
    model = space()[0]
    kept, _ = assembled(model, model.draw(15, torch.Generator().manual_seed(3)), VIEWS["content-1"])
    assert len(kept.rows(VIEWS["content-1"].operator.neighborhood)) > 3


def test_some_of_many_chunks_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sequences that are all the same, any chunks show the whole."""
    view, model, data = VIEWS["start"], space()[0], Sequences.of([[0, 1, 2]] * 20, SIZE)

    def whole() -> tuple[int, float]:
        kept, _ = assembled(model, data, view)
        assert isinstance(view.kernel, FeatureKernel)
        drawn = lookahead._drawn_edits(view, view.kernel, kept, torch.Generator().manual_seed(0))
        assert drawn is not None
        assert drawn.change is not None
        return len(kept.rows(view.operator.neighborhood)), float((drawn.share * drawn.change.abs().sum(1)).sum())

    together = whole()
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 1)
    apart = whole()
    assert (together[0], apart[0]) == (1, 20)
    assert apart[1] == pytest.approx(together[1], rel=1e-12)


@pytest.mark.parametrize("name", VIEWS)
def test_rows_make_up_for_what_is_lacking(name: str) -> None:
    """With the rows, the variance is the one that the same drawn edits foresee."""
    model, sequences, _ = space()
    view = VIEWS[name]
    quiet = assembled(model, sequences, view)[1].diagonal().argsort()[:20]
    data = sequences[quiet]  # those that show the least
    kept, matrix = assembled(model, data, view)
    rows = missing_rows(kept, view, matrix.diagonal().sum(), torch.Generator().manual_seed(5))
    assert rows is not None
    _, foreseen = drawn_sums(view, data, seed=5)
    assert float(rows.diagonal().sum() + matrix.diagonal().sum()) == pytest.approx(foreseen, rel=1e-9)
    assert len(rows) == lookahead._DRAWN


# ------------------------------------------------------------------------------------------------ rare sequences

RARE = IndependentSequence(
    torch.tensor([0.98, 0.01, 0.01], dtype=torch.double), torch.tensor([0.0, 1.0], dtype=torch.double)
)
FIRST = View("start", HeatBathOperator(Substitutions()), StartKernel())


def test_a_rare_sequence_is_missing() -> None:
    """All of 20 sequences are the frequent one; its edits show what the variance is."""
    kept, matrix = assembled(RARE, Sequences.of([[0]] * 20, 3), FIRST)
    shown = 0.02**2 + 2 * 0.01**2  # the squared Stein features of [0]
    assert float(matrix.diagonal().sum()) == pytest.approx(20 * shown)
    lost = 0.98**2 + 0.99**2 + 0.01**2  # those of [1] and of [2]
    for seed in range(5):
        rows = missing_rows(kept, FIRST, matrix.diagonal().sum(), torch.Generator().manual_seed(seed))
        assert rows is not None
        expected = 20 * (0.02 * lost + 0.98 * shown)
        assert float(rows.diagonal().sum()) + 20 * shown == pytest.approx(expected, rel=1e-9)
        values = rows.values
        assert (values[:, 1] * values[:, 2] < 0).all()  # they point to either of the rare symbols
        assert values[:, :3].sum(1).abs().max() < 1e-12


def test_the_data_show_the_variance() -> None:
    kept, matrix = assembled(RARE, Sequences.of([[0]] * 10 + [[1]] * 5 + [[2]] * 5, 3), FIRST)
    for seed in range(5):
        assert missing_rows(kept, FIRST, matrix.diagonal().sum(), torch.Generator().manual_seed(seed)) is None


def test_rows_are_those_of_the_seed() -> None:
    data, view = walks(20), default_views()[3]
    kept, matrix = assembled(walk(), data, view)
    one, same, other = (
        missing_rows(kept, view, 0.25 * matrix.diagonal().sum(), torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert one is not None
    assert same is not None
    assert other is not None
    assert one.values.equal(same.values)
    assert not one.values.equal(other.values)


def test_where_nothing_changes_there_are_no_rows() -> None:
    data = Sequences.of([[0, 1], [1, 0, 2]], 3)
    only_length = View("length", HeatBathOperator(Substitutions()), LengthKernel())
    kept, matrix = assembled(space()[0], data, only_length)
    assert missing_rows(kept, only_length, matrix.diagonal().sum(), torch.Generator().manual_seed(0)) is None
    pairs = View("Hamming", ZanellaOperator(), HammingKernel())
    assert missing_rows(kept, pairs, matrix.diagonal().sum(), torch.Generator().manual_seed(0)) is None


def test_a_true_model_whose_rare_sequences_are_missing_is_not_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = torch.tensor([0.94, 0.03, 0.03], dtype=torch.double)
    model = IndependentSequence(symbols, torch.tensor([0.0, 1.0], dtype=torch.double))
    data = Sequences.of([[0]] * 20, 3)  # 29 % of all data sets are like this one
    found = goodness_of_fit(model, data, [FIRST], bootstrap="wild", num_bootstrap=199)
    assert found.p_value_overall > 0.2
    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.missing_rows", lambda *arguments: None)
    blind = goodness_of_fit(model, data, [FIRST], bootstrap="wild", num_bootstrap=199)
    assert blind.p_value_overall < 0.01


def test_only_views_with_small_p_values_look_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(visits: object, view: View, *others: object) -> None:
        asked.append(view.name)

    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.missing_rows", noted)
    views = default_views()
    found = goodness_of_fit(walk(), walks(60, hold=0.2), views, bootstrap="wild", num_bootstrap=199)
    small = [view.name for view, p in zip(found.views, found.p_value.tolist(), strict=True) if p <= 0.2]
    assert asked == small
    assert 0 < len(small) < len(views)


def test_kept_edits_have_the_weights_of_each_view() -> None:
    view = VIEWS["start"]
    kept, matrix = assembled(space()[0], space()[1], view)
    [chunk] = kept.chunks(view.operator.neighborhood)
    [own] = view.kernel.stein_each(chunk.weighted(view.operator))
    assert torch.equal(own.dense(), matrix.dense())
    assert len(zs().edits(space()[1])) == len(chunk.scored.edits)


# ---------------------------------------------------------------------------------------------------------- level


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [("MRF, hard end at 30", 100), ("chain, nearly deterministic", 30), ("lengths uniform on 1 to 30", 30)],
)
def test_level_of_the_wild_bootstrap_where_signs_alone_reject(name: str, size: int) -> None:
    """No view, and not the whole check, rejects more often than the 99.9 % band of the level allows.

    Signs that look ahead are conservative: the whole check rejects the field and the nearly deterministic chain less
    often than the band allows. For uniform lengths it is inside the band from below, too.
    """
    model, runs = true_models()[name], 300
    found = wild_rates(model, model.draw, size, default_check, runs, 500, seeded(0, name))
    lowest, highest = band(runs)
    print(f"\n{name}, n = {size}: {found.rejected}, band {lowest:.3f} to {highest:.3f}, left out {found.left_out}")
    assert found.refused == 0, found.reason
    assert len(found.rejected) == 11
    assert all(rate <= highest for rate in found.rejected.values()), found.rejected
    assert max(found.left_out.values()) < 0.01
    if name == "lengths uniform on 1 to 30":
        assert found.rejected[WHOLE] >= lowest
