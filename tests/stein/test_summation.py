# SPDX-License-Identifier: Apache-2.0
"""Sums of all views in one visit, against the matrices of all sequences."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import oracle
import pytest
import torch
from example_models import Stopped, walk, walks

from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.fit_tests.statistics import signed_u_statistics, u_statistic
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, LengthKernel, StartKernel
from pyro_ksd.kernels.stein_matrices import SumMatrix
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.visits import Visits

SIGNS = Signs(2, 9)


def several_views() -> list[View]:
    """The default views; a kernel without features, sums of kernels with and without them, a scaled kernel."""
    operator = ZanellaOperator()
    kernels = {
        "Hamming": HammingKernel(),
        "both": StartKernel() + 0.5 * HammingKernel(),
        "features": StartKernel() + 0.5 * ContiguousKernel(2),
        "scaled": 0.5 * ContiguousKernel(2),
    }
    own = [View(name, operator, kernel) for name, kernel in kernels.items()]
    return [*default_views(), View("tail", TailBlockOperator(), LengthKernel()), *own]


@pytest.mark.parametrize("edits", [2**17, 100])
@pytest.mark.parametrize("entries", [2**22, 500, 1])
def test_sums_give_the_statistics_of_the_matrices(edits: int, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sequences a chunk has, and however many are summed at once."""
    data, views = walks(15), several_views()
    matrices = stein_matrices(walk(), data, views)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", edits)
    monkeypatch.setattr("pyro_ksd.stein.summation.SUMMED_ENTRIES", entries)
    visits = Visits(walk(), data, views)
    [states] = sum_views(visits, SIGNS).states
    assert len(visits.rows(views[0].operator.neighborhood)) > 1 or edits > 100
    for view, state, matrix in zip(views, states, matrices, strict=True):
        assert isinstance(state, SteinSums) == (view.name not in ("Hamming", "both", "features"))
        assert isinstance(state, SumMatrix) == (view.name in ("both", "features"))
        assert len(state) == 15
        torch.testing.assert_close(u_statistic(state), u_statistic(matrix), rtol=1e-10, atol=1e-13)
        null = signed_u_statistics(state, SIGNS)
        torch.testing.assert_close(null, signed_u_statistics(matrix, SIGNS), rtol=1e-10, atol=1e-12)


def test_several_models_at_once_give_the_sums_of_each() -> None:
    models, data, views = [walk(), walk(hold=0.3), walk(hold=0.6)], walks(), several_views()
    visits = Visits(ModelList(models), data, views)
    found = sum_views(visits, SIGNS)
    assert len(found.states) == 3
    for index, (model, states) in enumerate(zip(models, found.states, strict=True)):
        alone = sum_views(Visits(model, data, views), SIGNS)
        for state, own in zip(states, alone.states[0], strict=True):
            torch.testing.assert_close(u_statistic(state), u_statistic(own), rtol=1e-9, atol=1e-12)
        for operator, rates in found.rates.items():
            assert float(rates[index]) == pytest.approx(float(alone.rates[operator]), rel=1e-12)


def test_without_signs_the_features_of_all_sequences_are_kept() -> None:
    data, views = walks(), several_views()
    [states] = sum_views(Visits(walk(), data, views), None).states
    for state, matrix in zip(states, stein_matrices(walk(), data, views), strict=True):
        assert type(state) is type(matrix)
        assert not isinstance(state, SteinSums)
        assert torch.equal(state.dense(), matrix.dense())


def test_rates_are_the_sums_of_all_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    models, data = [walk(), walk(hold=0.3)], walks(9)
    views = [View("all", ZanellaOperator(), StartKernel()), View("last", ZanellaOperator(zs(1), "mpf"), StartKernel())]
    found = sum_views(Visits(ModelList(models), data, views), Signs(0, 0))
    for view, g, locations in ((views[0], oracle.barker, None), (views[1], oracle.mpf, 1)):
        expected = []
        for model in models:
            total = 0.0
            for x in map(tuple, data.to_lists()):
                around = sorted(oracle.neighbors(x, 5, locations=locations))
                here, *there = model.log_joint(Sequences.of([x, *around], 5)).tolist()
                total += sum(g(y - here) for y in there if y > -torch.inf)
            expected.append(total)
        assert found.rates[view.operator].tolist() == pytest.approx(expected, rel=1e-10)
    assert list(found.rates) == [view.operator for view in views]


@pytest.mark.parametrize(("entries", "draws"), [(3000, 100), (30 * 500, 500), (2, 1)])
def test_as_many_draws_as_fit_into_memory(entries: int, draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = View("tail", TailBlockOperator(), LengthKernel())
    views, data, signs = [tail, *default_views()[:2]], walks(15), Signs(0, 500)  # 5 and 25 features of the n-grams
    whole = sum_views(Visits(walk(), data, views), signs)
    assert whole.signs == signs
    monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", entries)
    some = sum_views(Visits(walk(), data, views), signs)
    assert some.signs == signs.part(0, draws)
    for part, every in zip(some.states[0], whole.states[0], strict=True):
        assert isinstance(part, SteinSums)
        assert isinstance(every, SteinSums)
        torch.testing.assert_close(part.signed, every.signed[:, :draws])


def test_progress_can_be_seen(terminal: pytest.CaptureFixture[str]) -> None:
    views, data = default_views(), walks()
    sum_views(Visits(walk(), data, views), SIGNS)
    assert terminal.readouterr().err == ""
    sum_views(Visits(walk(), data, views), SIGNS, progress=True)
    shown = terminal.readouterr().err
    assert "Stein features: 100%" in shown
    around = {view.operator.neighborhood for view in views}
    assert len(around) == 2  # all edits, and those of the last symbol
    assert f"up to {sum(int(edit_bounds(own, data).sum()) for own in around):,} edits" in shown


# ------------------------------------------------------------------------------------------------- kept sums


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks, which are summed and kept one at a time."""
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    monkeypatch.setattr("pyro_ksd.stein.summation.SUMMED_ENTRIES", 0)
    monkeypatch.setattr("pyro_ksd.stein.summation.KEPT_SECONDS", 0.0)


def begun(folder: Path) -> Checkpoint:
    kept = Checkpoint(folder / "kept")
    kept.begin({})
    return kept


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("memory", [2**27, 700])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.97])
def test_stopped_sums_go_on_from_what_was_kept(
    share: float, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums of all default views, but for one without features in memory."""
    monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", memory)
    data, views, kept = walks(15), default_views(), begun(tmp_path)
    plain = Stopped(walk(), math.inf)
    expected = sum_views(Visits(plain, data, views), SIGNS)
    stopped = Stopped(walk(), share * plain.scored)
    message = rf"stopped after ([0-9]+) of 30 steps, which are kept in '{re.escape(str(kept.path))}'; the same call"
    with pytest.raises(KeyboardInterrupt, match=message) as caught:
        sum_views(Visits(stopped, data, views), SIGNS, checkpoint=kept)
    steps = int(str(caught.value).split()[2])
    assert 0 < steps < 30
    again = Stopped(walk(), math.inf)
    found = sum_views(Visits(again, data, views), SIGNS, checkpoint=kept)
    assert again.scored < (1 - share + 0.2) * plain.scored
    assert found.signs == expected.signs
    assert (found.signs == SIGNS) == (memory > 700)
    for own, other in zip(found.states[0], expected.states[0], strict=True):
        assert isinstance(own, SteinSums)
        assert isinstance(other, SteinSums)
        assert own.count == 15
        assert u_statistic(own).item() == pytest.approx(u_statistic(other).item(), rel=1e-12)
        torch.testing.assert_close(own.signed, other.signed, rtol=1e-12, atol=1e-12)
    for operator, rate in expected.rates.items():
        torch.testing.assert_close(found.rates[operator], rate, rtol=1e-12, atol=0)


@pytest.mark.usefixtures("small_chunks")
def test_stopped_sums_without_a_checkpoint_are_lost() -> None:
    stopped = Stopped(walk(), 500)
    message = r"stopped after [1-9][0-9]* of 15 steps, which are lost; pass checkpoint="
    with pytest.raises(KeyboardInterrupt, match=message):
        sum_views(Visits(stopped, walks(15), default_views()[:1]), SIGNS)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("signs", [SIGNS, None])
def test_nothing_is_kept_where_sums_do_not_tell_everything(signs: Signs | None, tmp_path: Path) -> None:
    kept = begun(tmp_path)
    first = default_views()[0]
    views = [first, View("Hamming", first.operator, HammingKernel())]
    stopped = Stopped(walk(), 500)
    with pytest.raises(KeyboardInterrupt, match="stopped after 0 of 15 steps"):
        sum_views(Visits(stopped, walks(15), views if signs else views[:1]), signs, checkpoint=kept)
    for name in ("sums 0", "sums 0, draws from 0"):
        assert kept.get(name) is None


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("seconds", "is_kept"), [(9.9, False), (10.1, True)])
def test_sums_are_kept_every_ten_seconds(
    seconds: float, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    monkeypatch.setattr("pyro_ksd.stein.summation.SUMMED_ENTRIES", 0)
    times = iter([0.0, seconds])
    last = [0.0]

    def clock() -> float:
        last[0] = next(times, last[0])
        return last[0]

    monkeypatch.setattr("pyro_ksd.stein.summation.perf_counter", clock)
    kept = begun(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sum_views(Visits(Stopped(walk(), 500), walks(15), default_views()[:1]), SIGNS, checkpoint=kept)
    assert (kept.get("sums 0, draws from 0") is not None) == is_kept


@pytest.mark.usefixtures("small_chunks")
def test_the_bar_of_the_whole_work_moves_by_the_share_of_the_steps() -> None:
    reached: list[float] = []
    visits = Visits(walk(), walks(15), default_views())
    outer: Any = SimpleNamespace(reach=reached.append)
    sum_views(visits, SIGNS, outer=outer)
    ends = [rows.stop for around in visits.neighborhoods for rows in visits.rows(around)]
    assert len(ends) > 6
    starts = [0] * len(visits.rows(visits.neighborhoods[0])) + [15] * len(visits.rows(visits.neighborhoods[1]))
    assert reached == pytest.approx([(start + end) / 30 for start, end in zip(starts, ends, strict=True)])
    assert reached[-1] == 1
