# SPDX-License-Identifier: Apache-2.0
"""Checks of data that the posterior has not seen, and of folds in turn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from pictures import axes_of
from torch import Tensor

from pyro_ksd import MarkovSequence, Sequences, ksd_check, plot_check, plot_null, report, summary, verdict
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.fit_tests.held_out import compare_held_out
from pyro_ksd.models import FitNUTS, FitSVI
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.results.validation import check_result
from pyro_ksd.sequences.splitting import fold_rows
from pyro_ksd.stein.views import default_views

SIZE = 3
FLAT = torch.ones(SIZE, SIZE, dtype=torch.double)
STOP = torch.tensor(0.25, dtype=torch.double)
MOVES = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], dtype=torch.double)
DATA = MarkovSequence.from_transitions(MOVES[0], MOVES, STOP).draw(20, torch.Generator().manual_seed(0)).over("abc")
VIEWS = ["content-1", "content-2", "start"]
OPTIONS: dict[str, Any] = {"views": VIEWS, "order": 1, "progress": False}


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    initial = pyro.sample("initial", dist.Dirichlet(FLAT[0]))
    moves = pyro.sample("moves", dist.Dirichlet(FLAT).to_event(1))
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", MarkovSequence.from_transitions(initial, moves, STOP), obs=x)


def codes_of(data: Sequences) -> list[list[int]]:
    return [row[:length] for row, length in zip(data.tokens.tolist(), data.lengths.tolist(), strict=True)]


def conjugate(num_draws: int = 25) -> Callable[[Any, Sequences], dict[str, Tensor]]:
    """Draws of the posterior of the chain."""

    def fit(model: Any, data: Sequences) -> dict[str, Tensor]:
        pairs = [pair for x in codes_of(data) for pair in pairwise(x)]
        moves, initial = FLAT.clone(), FLAT[0].clone()
        for before, after in pairs:
            moves[before, after] += 1
        for x in codes_of(data):
            initial[x[0]] += 1
        return {
            "initial": dist.Dirichlet(initial).sample((num_draws,)),
            "moves": dist.Dirichlet(moves).sample((num_draws,)),
        }

    return fit


def alternating(num: int) -> Sequences:
    """Sequences that no chain of order 1 makes: the same symbol comes at every other place."""
    letters = torch.Generator().manual_seed(1)
    pairs = torch.randint(0, SIZE, (num, 2), generator=letters).tolist()
    return Sequences.of(["".join("abc"[code] for code in pair) * 4 for pair in pairs], "abc")


@pytest.fixture(scope="module")
def divided() -> xr.DataTree:
    return ksd_check(program, DATA, fit=conjugate(), folds=4, seed=3, **OPTIONS)


@pytest.fixture(scope="module")
def put_aside() -> xr.DataTree:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = conjugate()(program, DATA[:12])
    return ksd_check(program, DATA[12:], posterior=draws, held_out=True, seed=3, **OPTIONS)


def test_kinds_are_told(divided: xr.DataTree, put_aside: xr.DataTree) -> None:
    for check, kind, words in (
        (put_aside, "split predictive", "(split predictive p-values of held-out data from 23 draws)"),
        (divided, "divided predictive", "(divided predictive p-values of folds held out in turn, from 23 draws)"),
    ):
        check_result(check, "check")
        assert check["ksd"].attrs["kind"] == check["ksd_fold"].attrs["kind"] == kind
        assert f"({kind} p = " in verdict(check)
        assert repr(summary(check)).endswith(words)


def test_each_fold_is_checked_with_the_posterior_of_the_others(divided: xr.DataTree) -> None:
    seen: list[list[list[str]]] = []

    def fit(model: Any, data: Sequences) -> dict[str, Tensor]:
        seen.append(data.to_lists())
        return conjugate()(model, data)

    again = ksd_check(program, DATA, fit=fit, folds=4, seed=3, **OPTIONS)
    rows = fold_rows(len(DATA), 4, seed=3)
    index = divided["ksd_fold"]["fold_index"].values
    assert len(seen) == 4
    for fold, others in enumerate(seen):
        assert others == [x for x, own in zip(DATA.to_lists(), index.tolist(), strict=True) if own != fold]
        assert np.flatnonzero(index == fold).tolist() == rows[fold].tolist()
    for group in ("ksd", "ksd_null", "ksd_fold"):
        xr.testing.assert_equal(again[group].to_dataset(), divided[group].to_dataset())


def test_statistics_and_p_values_of_folds_are_combined(divided: xr.DataTree) -> None:
    fold, ksd = divided["ksd_fold"].to_dataset(), divided["ksd"].to_dataset()
    assert fold["num_sequences"].values.tolist() == [5, 5, 5, 5]
    np.testing.assert_allclose(ksd["statistic"], fold["statistic"].mean("fold"))
    null = divided["ksd_null"]["ksd"].values[0]
    np.testing.assert_allclose(ksd["p_value"], (1 + (null >= ksd["statistic"].values).sum(0)) / 24)
    np.testing.assert_allclose(ksd["contribution"].sum("sequence"), ksd["statistic"])
    np.testing.assert_allclose(ksd["attribution"].sum(["shown", "position"]), ksd["statistic"])
    for index in range(4):
        own = fold["fold_index"].values == index
        shares = ksd["contribution"].values[:, own].sum(1)
        np.testing.assert_allclose(shares, fold["statistic"].values[index] / 4)


def test_put_aside_data_are_one_fold(put_aside: xr.DataTree) -> None:
    fold, ksd = put_aside["ksd_fold"].to_dataset(), put_aside["ksd"].to_dataset()
    assert dict(fold.sizes) == {"fold": 1, "view": 3, "sequence": 8}
    np.testing.assert_array_equal(fold["statistic"].values[0], ksd["statistic"])
    np.testing.assert_array_equal(fold["p_value"].values[0], ksd["p_value"])
    assert float(fold["p_value_overall"][0]) == float(ksd["p_value_overall"])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        models = PosteriorModels(program, DATA[12:], conjugate()(program, DATA[:12]), order=1)
    known = {view.name: view for view in default_views()}
    part = compare_held_out(models, DATA[12:], [known[name] for name in VIEWS], seeded_generator(3))
    np.testing.assert_array_equal(ksd["statistic"], part.statistic)
    np.testing.assert_array_equal(put_aside["ksd_null"]["ksd"].values[0], part.null.statistic)


def test_pictures_are_drawn(divided: xr.DataTree, put_aside: xr.DataTree) -> None:
    for check in (divided, put_aside):
        plot_check(check)[0].figure.canvas.draw()
        np.ravel(axes_of(plot_null(check)))[0].figure.canvas.draw()
        assert {"ksd_ppc"} & set(check.children) == set()


@pytest.mark.parametrize("form", ["folds", "put aside"])
def test_a_wrong_model_is_found_and_the_fault_is_named(form: str) -> None:
    data = alternating(90)
    own = {**OPTIONS, "views": "content-3"}
    if form == "folds":
        check = ksd_check(program, data, fit=conjugate(63), folds=3, **own)
    else:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            draws = conjugate(63)(program, data[:60])
        check = ksd_check(program, data[60:], posterior=draws, held_out=True, **own)
    assert float(check["ksd"]["p_value_overall"]) == pytest.approx(1 / 60)
    sentence = verdict(check)
    assert sentence.startswith("the model does not fit (")
    named = check["ksd_ngram"].to_dataset().isel(ngram=check["ksd_ngram"]["p_value"].values <= 0.05)
    frequent = named["label"].values[named["z"].values > 0].tolist()
    assert frequent
    assert all(label[0] != label[2] for label in frequent)  # such triples are not in the data
    assert sum(repr(label) in sentence for label in frequent) >= 2


def test_a_report_says_how_to_make_the_check_again(
    divided: xr.DataTree, put_aside: xr.DataTree, tmp_path: Path
) -> None:
    for check, call, words in (
        (divided, "fit=..., folds=4, num_bootstrap=23", "Divided predictive p-values of folds held out in turn"),
        (put_aside, "posterior=..., held_out=True, num_bootstrap=23", "Split predictive p-values of held-out data"),
    ):
        html = report(check, tmp_path / "report.html").read_text(encoding="utf-8")
        assert f"pyro_ksd.ksd_check(model, data, {call}, level=0.05, seed=3)" in html
        assert words in html
        assert words in check._repr_html_()


def test_few_draws_are_told() -> None:
    check = ksd_check(program, DATA, fit=conjugate(10), folds=4, **{**OPTIONS, "views": "content-1"})
    assert check["ksd"].attrs["num_bootstrap"] == 9
    assert verdict(check).endswith(
        "; but 9 draws cannot reach the level 0.05, take num_bootstrap=19 or more, from 21 or more posterior draws"
    )


def test_more_draws_than_asked_for_are_thinned() -> None:
    check = ksd_check(program, DATA, fit=conjugate(300), folds=3, num_bootstrap=10, **OPTIONS)
    assert check["ksd"].attrs["num_bootstrap"] == 10


@pytest.mark.parametrize(
    "fit", [FitNUTS(num_samples=12, warmup_steps=5), FitSVI(num_samples=12, num_steps=5)], ids=["NUTS", "SVI"]
)
def test_ready_made_fits_can_be_passed(fit: Any) -> None:
    check = ksd_check(program, DATA, fit=fit, folds=3, **OPTIONS)
    assert check["ksd"].attrs["num_bootstrap"] == 11
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1


def test_there_are_five_folds_by_default() -> None:
    check = ksd_check(program, DATA, fit=conjugate(5), **OPTIONS)
    assert check["ksd_fold"].sizes["fold"] == 5


def test_the_seed_decides_about_folds_and_draws(divided: xr.DataTree) -> None:
    other = ksd_check(program, DATA, fit=conjugate(), folds=4, seed=4, **OPTIONS)
    assert not other["ksd_fold"]["fold_index"].equals(divided["ksd_fold"]["fold_index"])
    state = torch.get_rng_state()
    ksd_check(program, DATA, fit=conjugate(5), folds=3, **OPTIONS)
    assert torch.get_rng_state().equal(state)


def test_impossible_sequences_are_set_apart() -> None:
    data = Sequences.of([*DATA.to_lists(), []], "abc")  # the chain makes no empty sequence

    def fit(model: Any, sequences: Sequences) -> dict[str, Tensor]:
        return conjugate()(model, sequences[sequences.lengths > 0])

    with pytest.warns(UserWarning, match="probability zero to 1 of 21 sequences"):
        check = ksd_check(program, data, fit=fit, folds=3, **{**OPTIONS, "order": None})
    check_result(check, "check")
    assert float(check["ksd"]["p_value_overall"]) == 0.0
    assert check["ksd_impossible"]["sequence"].values.tolist() == [20]
    assert check["ksd_fold"]["sequence"].values.tolist() == list(range(20))
    assert sorted(check["ksd_fold"]["num_sequences"].values.tolist()) in ([6, 7, 7], [6, 6, 8])
    np.testing.assert_allclose(check["ksd"]["contribution"].sum("sequence"), check["ksd"]["statistic"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": True}, "held_out: expected posterior= beside it, the draws from the other data, found none"),
        ({"held_out": 1, "posterior": {}}, "held_out: expected True or False, found 1"),
        ({"folds": 5}, "folds: expected fit= beside it, which finds the posterior of each fold, found none"),
        ({"fit": conjugate(), "folds": 2}, "folds: expected an integer of at least 3, found 2"),
        ({"fit": conjugate(), "folds": 11}, "folds: expected at least 2 sequences in each, found 20 sequences for 11"),
        ({"fit": conjugate(), "posterior": {}}, "fit: expected no posterior= beside it, as it finds one for each fold"),
        (
            {"fit": FitNUTS},
            "fit: expected a function of (program, sequences), found the class FitNUTS; pass an instance",
        ),
        ({"fit": lambda data: data}, "fit: expected a function of (program, sequences), found one of (data)"),
        ({"fit": conjugate(), "replicates": True}, "replicates: expected no held_out= or fit= beside it"),
        ({"fit": conjugate(), "localize": False}, "localize: expected True beside fit=, found False"),
        ({"fit": conjugate(), "gram": True}, "fit: expected it alone, found gram= beside it; leave out gram="),
        ({"fit": conjugate(), "refit": conjugate()}, "fit: expected it alone, found refit= beside it"),
        ({"fit": conjugate(1)}, "posterior: expected at least 2 draws, to average over and to replicate data from"),
    ],
)
def test_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        ksd_check(program, DATA, **OPTIONS, **options)
    assert message in str(error.value)
