# SPDX-License-Identifier: Apache-2.0
"""A check of partitioned data finds what the check of the same data in memory finds, however they are cut."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from partitioned_data import assert_identical, assert_same, in_parts, numbers

from pyro_ksd import (
    AutoregressiveModel,
    HiddenMarkovSequence,
    PartitionedSequences,
    Sequences,
    View,
    edit_table,
    ksd_check,
    ksd_compare,
    load,
    plot_check,
    report,
    sequence_table,
    summary,
    verdict,
)
from pyro_ksd.checks import check_of_parts
from pyro_ksd.examples import random_walk
from pyro_ksd.kernels import EmbeddingKernel, HammingKernel, LandmarkKernel
from pyro_ksd.models import SequenceModel
from pyro_ksd.stein import ZanellaOperator

WALK = random_walk(3, hold=0.1)
CUTS = {"one part": (), "two parts": (150,), "uneven": (1, 40, 40, 299), "many": tuple(range(20, 300, 20))}


@cache
def data() -> Sequences:
    return random_walk(3, hold=0.25).draw(300, torch.Generator().manual_seed(0)).over("abc")


def options(**others: Any) -> dict[str, Any]:
    return {"num_bootstrap": 99, "progress": False, "seed": 3, **others}


@cache
def in_memory() -> xr.DataTree:
    return ksd_check(WALK, data(), bootstrap="wild", tolerance=0.01, **options())


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_every_cut_gives_what_data_in_memory_give(cuts: tuple[int, ...]) -> None:
    check = ksd_check(WALK, in_parts(data(), cuts), tolerance=0.01, **options())
    assert_same(in_memory(), check)
    assert verdict(check) == verdict(in_memory())
    assert check["ksd"].attrs["num_sequences"] == check["ksd_data"].attrs["num_sequences"] == 300
    known = Sequences.of(check["ksd_data"]["token"].values, "abc", pad=-1).to_lists()
    assert known == [data().to_lists()[row] for row in check["ksd_data"]["sequence"].values]


def test_the_model_in_the_example_does_not_fit() -> None:
    assert float(in_memory()["ksd"]["p_value_overall"]) < 0.05
    assert np.isfinite(in_memory()["ksd_ngram"]["observed"]).sum() > 3


def test_a_true_model_may_fit() -> None:
    drawn = WALK.draw(200, torch.Generator().manual_seed(1)).over("abc")
    check = ksd_check(WALK, in_parts(drawn, (70, 90)), **options())
    assert_same(ksd_check(WALK, drawn, bootstrap="wild", **options()), check)
    assert float(check["ksd"]["p_value_overall"]) > 0.05


def test_only_the_sequences_with_the_largest_shares_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pyro_ksd.fit_tests.localization.MOST_SHOWN", 7)
    monkeypatch.setattr("pyro_ksd.fit_tests.largest_shares.MOST_EDITS", 5)
    whole = ksd_check(WALK, data(), bootstrap="wild", tolerance=0.01, **options())
    found = []
    for cuts in ((40, 41, 200), (150,)):
        check = ksd_check(WALK, in_parts(data(), cuts), tolerance=0.01, **options())
        assert_same(whole, check)
        ksd = check["ksd"].to_dataset()
        assert ksd.sizes["shown"] == 7
        assert 7 < check["ksd_data"].sizes["sequence"] < 100
        assert set(check["ksd_edit"]["sequence_index"].values) <= set(check["ksd_data"]["sequence"].values)
        for view in ksd["view"].values:
            own = ksd.sel(view=view)
            known = own["contribution"].dropna("sequence")["sequence"].values
            assert sorted(own["shown_sequence"].values) == sorted(known)
        contribution = whole["ksd"]["contribution"].sel(sequence=ksd["sequence"].values).values
        both = ~np.isnan(ksd["contribution"].values)
        np.testing.assert_allclose(ksd["contribution"].values[both], contribution[both], rtol=1e-8)
        found.append(check)
    assert verdict(check) == verdict(whole)
    assert summary(check).attrs["sequences"] == 300
    assert str(summary(check)) == str(summary(whole))
    check.to_netcdf(tmp_path / "check.nc")
    loaded = load(tmp_path / "check.nc")
    xr.testing.assert_identical(loaded, check)
    plot_check(loaded)
    plt.close("all")
    assert len(sequence_table(loaded, view="content-2")) == 7
    assert len(edit_table(loaded, view="content-2")) == 5
    text = report(loaded, tmp_path / "check.html").read_text()
    assert "Data with the largest shares" in text
    assert "of the 300 sequences" not in text


def test_impossible_sequences_are_set_apart() -> None:
    rows = data().to_lists()
    for place in (200, 160, 150, 40, 0):
        rows.insert(place, [])  # which the walk never makes
    mixed = Sequences.of(rows, "abc")
    with pytest.warns(UserWarning, match=r"probability zero to 5 of 305 .*: sequence 0, \[\]; sequence 41, \[\];"):
        whole = ksd_check(WALK, mixed, bootstrap="wild", **options())
    for cuts in ((1, 100), (41, 152, 203), (0, 1)):
        with pytest.warns(UserWarning, match="probability zero to 5 of 305 .*: sequence 0, .*; sequence 41, .*; sequ"):
            check = ksd_check(WALK, in_parts(mixed, cuts), **options())
        assert_same(whole, check)
        assert verdict(check) == verdict(whole)
        assert str(summary(check)) == str(summary(whole))
        assert check["ksd_impossible"]["sequence"].values.tolist() == [0, 41, 152, 163, 204]
        shown = [
            {(row, round(share, 9)) for row, share in zip(rows, shares, strict=True)}
            for rows, shares in (
                (own["shown_sequence"].values.tolist(), own["contribution"].sel(sequence=own["shown_sequence"]).values)
                for own in (tree["ksd"].to_dataset().isel(view=1) for tree in (check, whole))
            )
        ]
        assert shown[0] == shown[1]


def test_hardly_any_possible_sequences() -> None:
    with pytest.raises(ValueError, match=r"probability zero to 2 of 3 .* too few others are left"):
        ksd_check(WALK, PartitionedSequences.of([["", ""], ["ab"]], "abc"), **options())


def test_large_data_are_looked_at_by_the_same_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 800)
    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.SAMPLED_CHUNKS", 9)
    monkeypatch.setattr("pyro_ksd.fit_tests.partitioned.SAMPLED_CHUNKS", 9)
    whole = ksd_check(WALK, data(), bootstrap="wild", tolerance=0.01, **options())
    assert np.isfinite(whole["ksd_ngram"]["factor"]).any()
    assert abs(numbers(whole)["ngram.factor"] - numbers(in_memory())["ngram.factor"])[0] != 0.0
    assert_same(whole, ksd_check(WALK, in_parts(data(), (33, 160)), tolerance=0.01, **options()))


def test_draws_of_signs_that_do_not_fit_into_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", 3500)
    assert_same(in_memory(), ksd_check(WALK, in_parts(data(), (33, 160)), tolerance=0.01, **options()))


def test_parts_with_other_codes_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse features: every part has columns of its own, and takes as many draws as fit for these."""
    monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", 30_000)
    model = random_walk(30, hold=0.1)
    drawn = model.draw(30, torch.Generator().manual_seed(2))
    views = {"views": ["content-2", "content-3"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some views hardly recur
        whole = ksd_check(model, drawn, bootstrap="wild", **views, **options())
        assert_same(whole, ksd_check(model, in_parts(drawn, (5, 30)), **views, **options()))


# ------------------------------------------------------------------------------------------------ models


def stopping(x: Any) -> None:
    stop = pyro.param("stop", torch.tensor(0.5))
    table = torch.full((3, 3), 0.45).fill_diagonal_(0.1)
    from pyro_ksd import MarkovSequence

    with pyro.plate("sequences", len(x)):
        pyro.sample("x", MarkovSequence.from_transitions(torch.ones(3) / 3, table, stop), obs=x)


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.inner = torch.nn.Linear(5, 5).double()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(torch.nn.functional.one_hot(tokens.clamp(min=0), 5).double().cumsum(1) / 4)


def test_programs() -> None:
    pyro.clear_param_store()
    pyro.param("stop", torch.tensor(0.2))
    for order in (None, 1):
        settings = options(order=order, views=["content-2", "length"])
        whole = ksd_check(stopping, data(), bootstrap="wild", **settings)
        assert_same(whole, ksd_check(stopping, in_parts(data(), (33, 160)), **settings))
    pyro.clear_param_store()


def test_hidden_markov_models_and_networks() -> None:
    hidden = HiddenMarkovSequence(torch.ones(2) / 2, torch.eye(2) * 0.8 + 0.1, torch.rand(2, 3).softmax(1), 0.1)
    assert_same(
        ksd_check(hidden, data(), bootstrap="wild", views="content-2", **options()),
        ksd_check(hidden, in_parts(data(), (33, 160)), views="content-2", **options()),
    )
    network = AutoregressiveModel(Network().eval(), prompt=[4], end=3, max_length=30)
    drawn = network.draw(60, torch.Generator().manual_seed(0))
    assert_same(
        ksd_check(network, drawn, bootstrap="wild", views=["content-1", "length"], **options()),
        ksd_check(network, in_parts(drawn, (20,)), views=["content-1", "length"], **options()),
    )


def test_the_setup_sees_some_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_of_parts, "SOME_ROWS", 110)
    assert_same(in_memory(), ksd_check(WALK, in_parts(data(), (33, 160)), tolerance=0.01, **options()))

    class Undrawn(SequenceModel):
        alphabet_size = 3

        def log_joint(self, sequences: Sequences) -> torch.Tensor:
            return WALK.log_joint(sequences)

    one = ksd_check(Undrawn(), in_parts(data(), (33, 160)), views=["length", "content-1"], **options())
    other = ksd_check(Undrawn(), in_parts(data(), (100,)), views=["length", "content-1"], **options())
    assert_same(one, other)


def test_ends() -> None:
    ended = Sequences.of([[*row, "."] for row in data().to_lists()], "abc.")

    def program(x: torch.Tensor) -> None:
        with pyro.plate("sequences", len(x)):
            steps = (x >= 0).sum(1)
            pyro.factor("score", -1.5 * steps.double())

    settings = options(end=".", views=["content-1", "length"])
    assert_same(
        ksd_check(program, ended, bootstrap="wild", **settings), ksd_check(program, in_parts(ended, (9,)), **settings)
    )
    unended = PartitionedSequences.of([ended[:200], Sequences.of([["a", "b"]], "abc.")], "abc.")
    with pytest.raises(ValueError, match=r"end: expected '.' as the last symbol"):
        ksd_check(program, unended, **settings)


def test_models_without_lengths() -> None:
    def program(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in pyro.markov(range(sequences.shape[1])):
                with pyro.poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3)), obs=sequences[:, t])

    with pytest.warns(UserWarning, match="no probability to lengths"):
        whole = ksd_check(program, data(), bootstrap="wild", **options(views=["content-2"]))
    with pytest.warns(UserWarning, match="no probability to lengths"):
        check = ksd_check(program, in_parts(data(), (9, 90)), **options(views=["content-2"]))
    assert_same(whole, check)


# ------------------------------------------------------------------------------------------------ views


def lengths_of(sequences: Sequences) -> torch.Tensor:
    return sequences.lengths.double()[:, None].sqrt()


def test_views_of_your_own() -> None:
    few = Sequences.of(["ab", "bca", "c"], "abc")
    landmarks = LandmarkKernel.from_sequences(HammingKernel(), few, num_landmarks=3)
    views = [
        View("function", ZanellaOperator(), EmbeddingKernel(lengths_of)),
        View("landmarks", ZanellaOperator(), landmarks),
    ]
    assert_same(
        ksd_check(WALK, data(), views=views, bootstrap="wild", **options()),
        ksd_check(WALK, in_parts(data(), (33, 160)), views=views, **options()),
    )


def test_kernels_without_features_are_refused() -> None:
    views = ["content-1", View("Hamming", ZanellaOperator(), HammingKernel())]
    with pytest.raises(ValueError, match="view 'Hamming': expected a kernel with features for partitioned data"):
        ksd_check(WALK, in_parts(data(), (33, 160)), views=views, **options())


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        ({"gram": True}, "gram="),
        ({"attribution": True}, "attribution="),
        ({"bootstrap": "parametric"}, "bootstrap="),
        ({"posterior": {"stop": torch.tensor([0.1])}}, "posterior="),
        ({"fit": lambda model, sequences: model}, "fit="),
        ({"localize": False}, "localize="),
        ({"refit": lambda model, sequences: model, "gram": True}, "refit=, gram="),
    ],
)
def test_what_needs_all_data_is_refused(passed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"data in memory for {words}, found PartitionedSequences; .*data.load()"):
        ksd_check(WALK, in_parts(data(), (33,)), **options(**passed))


def test_other_calls_want_data_in_memory() -> None:
    with pytest.raises(ValueError, match=r"data: expected data in memory, found PartitionedSequences\(2 parts .*load"):
        ksd_compare({"one": WALK, "two": random_walk(3)}, in_parts(data(), (33,)), progress=False)


def test_a_dask_collection_is_refused_with_the_way_out() -> None:
    bag = pytest.importorskip("dask.bag").from_sequence(["ab", "b"])
    with pytest.raises(ValueError, match=r"data: expected sequences, found .*Bag.*PartitionedSequences.from_dask"):
        ksd_check(WALK, bag, **options())


def test_finished_parts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.stein.part_sums.KEPT_SECONDS", 0.0)
    rows = data()
    reads = {"all": 0, "stop": 10**9}

    def reader(begin: int) -> Any:
        def read() -> Sequences:
            reads["all"] += 1
            if reads["all"] == reads["stop"]:
                raise KeyboardInterrupt
            return rows[begin : begin + 50].narrowed()

        return read

    def parts() -> PartitionedSequences:
        reads["all"] = 0
        return PartitionedSequences.of([reader(begin) for begin in range(0, 300, 50)], "abc")

    file = tmp_path / "work"
    whole = ksd_check(WALK, parts(), **options())
    total = reads["all"]
    reads["stop"] = 3 * 6 + 5  # counting, the sample and the first look come before
    with pytest.raises(KeyboardInterrupt, match="stopped after 4 of 6 parts, which are kept in"):
        ksd_check(WALK, parts(), checkpoint=file, **options())
    reads["stop"] = 10**9
    check = ksd_check(WALK, parts(), checkpoint=file, **options())
    assert reads["all"] == total - 4
    assert_identical(whole, check)
    with pytest.raises(ValueError, match="differs in: data, parts;"):
        ksd_check(WALK, in_parts(rows, (100,)), checkpoint=file, **options())
    with pytest.raises(ValueError, match="differs in: data, model or views;"):
        ksd_check(WALK, in_parts(rows[list(range(299, -1, -1))], range(50, 300, 50)), checkpoint=file, **options())


def test_errors_name_the_part() -> None:
    class Refusing(SequenceModel):
        alphabet_size = 3

        def log_joint(self, sequences: Sequences) -> torch.Tensor:
            values = WALK.log_joint(sequences)
            return values.masked_fill(sequences.lengths == 81, torch.nan)

    parts = [data()[:100], Sequences.of(["ab", "ab" * 40 + "a"], "abc")]
    monkey = pytest.MonkeyPatch()
    monkey.setattr(check_of_parts, "SOME_ROWS", 50)
    with pytest.raises(ValueError, match=r"part 1 of the data, which begins with sequence 100: .*NaN for sequence 1"):
        ksd_check(Refusing(), PartitionedSequences.of(parts, "abc"), **options(views=["content-1"]))
    monkey.undo()


def test_parts_can_be_sent() -> None:
    part = in_parts(data(), (100,)).parts[1]
    assert pickle.loads(pickle.dumps(part)).load().to_lists() == part.load().to_lists()
