# SPDX-License-Identifier: Apache-2.0
"""Null draws against plain loops."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from example_models import walk

from pyro_ksd.common.block_runs import draw_blocks
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.fit_tests.null_draws import (
    NullDraws,
    _parts,
    multinomial,
    null_statistics,
    parametric_bootstrap,
    rademacher,
    refitted_bootstrap,
    sets_at_once,
    wild_bootstrap,
)
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.kernels import ContiguousKernel, HammingKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SteinMatrix
from pyro_ksd.models import MarkovSequence, fit_markov, with_sampler
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, default_views

NGRAMS = View("n-grams", ZanellaOperator(), ContiguousKernel(2))
HAMMING = View("Hamming", ZanellaOperator(), HammingKernel())


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rademacher_weights_are_fair_signs() -> None:
    signs = rademacher(2000, 50, seeded())
    assert signs.dtype == torch.double
    assert set(signs.flatten().tolist()) == {-1.0, 1.0}
    assert abs(float(signs.mean())) < 4 / 100_000**0.5
    assert abs(float((signs[:, 0] * signs[:, 1]).mean())) < 4 / 2000**0.5


def test_multinomial_weights_are_centered_counts() -> None:
    weights = multinomial(4000, 8, seeded())
    assert not weights.sum(1).any()
    assert (weights >= -1).all()
    assert weights.var(0, correction=0).tolist() == pytest.approx([7 / 8] * 8, rel=0.12)
    assert float((weights[:, 0] * weights[:, 1]).mean()) == pytest.approx(-1 / 8, abs=0.06)


@pytest.mark.parametrize("form", ["features", "sparse features", "sums"])
def test_wild_draws_use_the_same_signs_for_all_views(form: str) -> None:
    psi = torch.randn(6, 3, dtype=torch.double, generator=seeded())
    signs = Signs(1, 20)
    drawn = signs.of_rows(0, 6)
    features = FeatureMatrix(psi.to_sparse().coalesce() if form == "sparse features" else psi)
    own = SteinSums.of(features, drawn) if form == "sums" else features
    draws = wild_bootstrap([own, GramMatrix(psi @ psi.T)], [NGRAMS, HAMMING], signs)
    null = draws.statistic
    assert null.shape == (20, 2)
    torch.testing.assert_close(null[:, 0], null[:, 1], rtol=1e-12, atol=1e-13)
    h = psi @ psi.T
    expected = [sum(w[i] * w[j] * h[i, j] for i in range(6) for j in range(6) if i != j) / 30 for w in drawn.double()]
    assert null[:, 0].tolist() == pytest.approx([float(value) for value in expected])
    _, spread = scores(SteinSums.of(features))
    largest = [float(((w @ psi).abs() / spread).max()) for w in drawn.double()]
    assert draws.extreme[:, 0].tolist() == pytest.approx(largest)
    assert draws.extreme[:, 1].isnan().all()  # no features, no scores


@pytest.mark.parametrize("num_draws", [3, 70])
def test_parametric_draws_are_statistics_of_drawn_data_sets(num_draws: int) -> None:
    model = walk()
    operator = ZanellaOperator()
    views = [*default_views(), View("Hamming", operator, HammingKernel()), View("2", operator, ContiguousKernel(2))]
    if num_draws > 10:
        views = default_views()
    null = parametric_bootstrap(model, 4, views, num_draws, seeded())
    expected, largest = [], []
    for block in draw_blocks(num_draws, 64, seeded()):
        data = model.draw(4 * block.size, block.generator())
        for first in range(0, len(data), 4):
            matrices = stein_matrices(model, data[first : first + 4], views)
            expected.append([float(u_statistic(matrix)) for matrix in matrices])
            largest.append([largest_z(matrix) for matrix in matrices])
    torch.testing.assert_close(null.statistic, torch.tensor(expected, dtype=torch.double), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(
        null.extreme, torch.tensor(largest, dtype=torch.double), rtol=1e-9, atol=1e-12, equal_nan=True
    )


def largest_z(matrix: SteinMatrix) -> float:
    if not isinstance(matrix, FeatureMatrix):
        return float("nan")
    total, spread = scores(SteinSums.of(matrix))
    return float((total / spread)[spread > 0].abs().max()) if (spread > 0).any() else 0.0


class Drawn(MarkovSequence):
    """A walk that keeps the sizes of its draws."""

    def __init__(self) -> None:
        super().__init__(walk().probs)
        self.sizes: list[int] = []

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        self.sizes.append(num_sequences)
        return super().draw(num_sequences, generator)


@pytest.mark.parametrize("num_draws", [1, 64, 65, 128, 129])
def test_no_draw_is_missing_and_none_too_many(num_draws: int) -> None:
    model = Drawn()
    null = parametric_bootstrap(model, 3, [NGRAMS, HAMMING], num_draws, seeded())
    assert null.statistic.shape == (num_draws, 2)
    assert sum(model.sizes) == 3 * num_draws
    assert len(set(null.statistic[:, 0].tolist())) > 0.9 * num_draws


@pytest.mark.parametrize("edits", [1, 300, 2000])
def test_statistics_do_not_depend_on_how_many_are_computed_together(
    edits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = [*default_views(), HAMMING]
    expected = parametric_bootstrap(walk(), 5, views, 20, seeded())
    monkeypatch.setattr("pyro_ksd.fit_tests.null_draws.REPLICATED_EDITS", edits)
    found = parametric_bootstrap(walk(), 5, views, 20, seeded())
    assert found.statistic.equal(expected.statistic)
    torch.testing.assert_close(found.extreme, expected.extreme, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("edits", [1, 60, 2000])
def test_statistics_do_not_depend_on_the_chunks(edits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    views = [*default_views(), View("sum", ZanellaOperator(), ContiguousKernel(1) + ContiguousKernel(3))]
    expected = parametric_bootstrap(walk(), 5, views, 20, seeded())
    [block] = draw_blocks(20, 20, seeded())
    whole = stein_matrices(walk(), walk().draw(5 * 20, block.generator()), views)
    sums = [matrix.off_diagonal_sums(5) for matrix in whole]
    torch.testing.assert_close(expected.statistic, torch.stack(sums, 1) / 20)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", edits)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.GROUPED_EDITS", edits)
    found = parametric_bootstrap(walk(), 5, views, 20, seeded())
    torch.testing.assert_close(found.statistic, expected.statistic, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found.extreme, expected.extreme, rtol=1e-10, atol=0, equal_nan=True)


def test_edits_bound_what_is_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = walk().draw(40, seeded())
    bounds = edit_bounds(ZanellaOperator().neighborhood, sequences).view(-1, 4).sum(1)
    monkeypatch.setattr("pyro_ksd.fit_tests.null_draws.REPLICATED_EDITS", int(2.5 * bounds.double().mean()))
    parts = _parts(sequences, 4, [NGRAMS])
    assert torch.cat([torch.arange(40)[part] for part in parts]).tolist() == list(range(40))
    sums = [int(bounds[part.start // 4 : part.stop // 4].sum()) for part in parts]
    assert 1 < len(parts) < 10
    assert all(total <= 2.5 * bounds.double().mean() for total in sums)
    assert all((part.stop - part.start) % 4 == 0 for part in parts)


def test_large_data_sets_are_drawn_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [sets_at_once(size) for size in (2, 512, 513, 4000, 32768, 10**6)] == [64, 64, 63, 8, 1, 1]
    monkeypatch.setattr("pyro_ksd.fit_tests.null_draws.DRAWN_SEQUENCES", 40)
    model = Drawn()
    assert len(parametric_bootstrap(model, 15, [NGRAMS], 5, seeded()).statistic) == 5
    assert model.sizes == [30, 30, 15]


class Alternating:
    """A sampler with two generators of its own, as it is where two workers each have a copy."""

    def __init__(self) -> None:
        self.seeds = itertools.cycle([3, 4])

    def __call__(self, num_sequences: int, generator: torch.Generator) -> Sequences:
        return walk().draw(num_sequences, seeded(next(self.seeds)))


def test_a_sampler_that_repeats_itself_is_refused() -> None:
    def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
        return walk().draw(num_sequences, seeded(3))

    model = with_sampler(walk(), sampler)
    parametric_bootstrap(model, 20, [NGRAMS], 64, seeded())  # drawn at once: independent data sets
    message = "draw: expected another data set in each call, found the same one again"
    with pytest.raises(ValueError, match=message):
        parametric_bootstrap(model, 20, [NGRAMS], 128, seeded())
    alternating = with_sampler(walk(), Alternating())
    with pytest.raises(ValueError, match=message):
        parametric_bootstrap(alternating, 20, [NGRAMS], 192, seeded())
    with pytest.raises(ValueError, match=message):
        refitted_bootstrap(model, lambda data: fit_markov(data, 1, pseudocount=1.0), 20, [NGRAMS], 2, seeded())


def test_a_model_of_one_sequence_may_repeat_itself() -> None:
    only = MarkovSequence(torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).double())
    assert not parametric_bootstrap(only, 20, [NGRAMS], 65, seeded()).statistic.any()


def test_progress_can_be_seen_and_switched_off(terminal: pytest.CaptureFixture[str]) -> None:
    model = walk()
    parametric_bootstrap(model, 3, default_views()[:1], 2, seeded())
    assert terminal.readouterr().err == ""
    parametric_bootstrap(model, 3, default_views()[:1], 2, seeded(), progress=True)
    assert "parametric bootstrap: 100%" in terminal.readouterr().err


def test_one_sequence_is_too_few() -> None:
    with pytest.raises(ValueError, match="at least 2 sequences, found 1"):
        wild_bootstrap([FeatureMatrix(torch.ones(1, 2, dtype=torch.double))], [NGRAMS], Signs(0, 5))
    with pytest.raises(ValueError, match="at least 2 sequences, found 1"):
        parametric_bootstrap(walk(), 1, default_views(), 5, seeded())


def test_refitted_draws_are_statistics_under_the_model_that_was_fitted_to_each() -> None:
    def refit(replicate: Sequences) -> MarkovSequence:
        return fit_markov(replicate, 1, pseudocount=0.5)

    views = [*default_views(), HAMMING]
    null = refitted_bootstrap(walk(), refit, 6, views, 3, seeded(2))
    for own, block in zip(null.statistic, draw_blocks(3, 1, seeded(2)), strict=True):
        replicate = walk().draw(6, block.generator())
        expected = [u_statistic(matrix) for matrix in stein_matrices(refit(replicate), replicate, views)]
        torch.testing.assert_close(own, torch.stack(expected), rtol=1e-9, atol=1e-12)


def test_missing_rows_get_signs_of_their_own() -> None:
    psi = torch.randn(6, 3, dtype=torch.double, generator=seeded())
    missing = torch.randn(4, 3, dtype=torch.double, generator=seeded(5))
    matrices = [FeatureMatrix(psi), FeatureMatrix(2 * psi), GramMatrix(psi @ psi.T), FeatureMatrix(psi)]
    views = [NGRAMS, NGRAMS, HAMMING, NGRAMS]
    lacking = [FeatureMatrix(missing), None, FeatureMatrix(missing), FeatureMatrix(missing)]
    signs = Signs(1, 20)
    found = wild_bootstrap(matrices, views, signs, missing=lacking).statistic
    first, last = (signs.of_rows(2**40 * number, 4).double() for number in (1, 4))
    assert not first.equal(last)  # each view has signs of its own
    expected = []
    for w, s, other in zip(signs.of_rows(0, 6).double(), first, last, strict=True):
        plain = sum(w[i] * w[j] * (psi[i] @ psi[j]) for i in range(6) for j in range(6) if i != j)
        totals = [(w @ psi + own @ missing).square().sum() - psi.square().sum() for own in (s, other)]
        expected.append([float(total) / 30 for total in (totals[0], 4 * plain, plain, totals[1])])
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.double), rtol=1e-10, atol=1e-12)
    assert float(found[:, 0].mean()) > float(found[:, 2].mean())


def test_missing_rows_have_columns_of_their_own() -> None:
    psi = FeatureMatrix.from_entries(
        torch.tensor([0, 1, 2]), torch.tensor([0, 5, 9]), torch.ones(3, dtype=torch.double), 3
    )
    missing = FeatureMatrix.from_entries(torch.tensor([0]), torch.tensor([7]), torch.tensor([2.0]).double(), 1)
    draws = wild_bootstrap([psi], [NGRAMS], Signs(1, 30), missing=[missing])
    assert draws.statistic[:, 0].tolist() == pytest.approx([4 / 6] * 30)  # no feature in common but with itself


@pytest.mark.parametrize("num_draws", [63, 64, 65, 128, 129])
def test_every_draw_is_a_data_set_of_its_own(num_draws: int) -> None:
    views = default_views()[:4]
    null = parametric_bootstrap(walk(), 6, views, num_draws, seeded())
    assert null.statistic.shape == null.extreme.shape == (num_draws, 4)
    assert len(null.statistic.unique(dim=0)) == num_draws


def test_covariates_of_another_number_are_refused() -> None:
    three = Sequences.of(["a", "b", "a"], "ab").with_covariates([0.0, 1.0, 2.0]).covariates
    with pytest.raises(ValueError, match="covariates: expected one row for each of the 4 sequences, found 3"):
        parametric_bootstrap(walk(), 4, [NGRAMS], 5, seeded(), covariates=three)
    with pytest.raises(ValueError, match="covariates"):
        parametric_bootstrap(walk(), 3, [NGRAMS], 5, seeded(), covariates=[0.0, 1.0, 2.0])  # type: ignore[arg-type]


def test_drawn_data_that_the_model_calls_impossible_are_refused() -> None:
    """A sampler that makes what the model does not."""
    model = with_sampler(walk(), lambda size, generator: Sequences.of([[0], []] * (size // 2), 5))
    with pytest.raises(ValueError, match="the model calls 3 of 6 sequences impossible that were drawn from it"):
        null_statistics(model, model.draw(6), 3, [NGRAMS], 2**20)


def test_the_bar_of_the_whole_work_moves_with_kernels_without_features() -> None:
    replicates = walk().draw(12, seeded())
    for views, expected in (([HAMMING], [0.25, 0.5, 0.75, 1.0]), ([NGRAMS, HAMMING], [1.0])):
        reached: list[float] = []
        null_statistics(walk(), replicates, 3, views, 2**20, outer=SimpleNamespace(reach=reached.append))  # type: ignore[arg-type]
        assert reached == expected


@pytest.mark.parametrize(("distinct", "is_refused"), [(9, False), (10, True)])
def test_ten_distinct_sequences_do_not_come_again_by_chance(distinct: int, is_refused: bool) -> None:
    rows = [[index // 5, index % 5] for index in range(distinct)]

    def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
        return Sequences.of((rows * num_sequences)[:num_sequences], 5)

    model = MarkovSequence.from_transitions(torch.ones(5) / 5, torch.ones(5, 5) / 5, stop=0.3)

    def draw() -> NullDraws:
        return parametric_bootstrap(with_sampler(model, sampler), distinct, [NGRAMS], 65, seeded())

    if is_refused:
        with pytest.raises(ValueError, match="found the same one again"):
            draw()
    else:
        assert len(draw().statistic) == 65


def test_views_without_named_features_have_no_largest_score() -> None:
    replicates = walk().draw(6, seeded())
    found = null_statistics(walk(), replicates, 3, [HAMMING], 2**20)
    assert found.extreme.dtype == found.statistic.dtype == torch.double
    assert found.extreme.isnan().all()
