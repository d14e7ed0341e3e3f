# SPDX-License-Identifier: Apache-2.0
"""The groups of a check."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

torch = pytest.importorskip("torch")

import pyro  # noqa: E402
from example_models import Unsampled, walk  # noqa: E402
from pictures import labels  # noqa: E402
from synthetic import SIZES, made_up_check  # noqa: E402

from pyro_ksd import MarkovSequence, Sequences, View, ksd_check, plot_ngrams, summary, verdict  # noqa: E402
from pyro_ksd.checks.check_setup import model_and_views  # noqa: E402
from pyro_ksd.examples import random_walk  # noqa: E402
from pyro_ksd.fit_tests.absolute import goodness_of_fit  # noqa: E402
from pyro_ksd.fit_tests.localization import localize  # noqa: E402
from pyro_ksd.fit_tests.misfit_extent import extent  # noqa: E402
from pyro_ksd.fit_tests.predictive import posterior_predictive  # noqa: E402
from pyro_ksd.kernels import (  # noqa: E402
    ContiguousKernel,
    EmbeddingKernel,
    EndKernel,
    EndsKernel,
    HammingKernel,
    LengthKernel,
    StartKernel,
)
from pyro_ksd.models.posterior.posterior_models import PosteriorModels  # noqa: E402
from pyro_ksd.results import groups  # noqa: E402
from pyro_ksd.results.groups import predictive_datatree, to_datatree  # noqa: E402
from pyro_ksd.results.labels import are_letters, operation, spelled, spelled_symbols  # noqa: E402
from pyro_ksd.results.validation import check_result  # noqa: E402
from pyro_ksd.stein.assembly import stein_matrices  # noqa: E402
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator  # noqa: E402
from pyro_ksd.stein.views import default_views  # noqa: E402

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


def views_of(data: Sequences, model: MarkovSequence | None = None) -> list[View]:
    """The views that a check takes."""
    return model_and_views(walk() if model is None else model, data, None, None, None).views


@pytest.fixture(scope="module")
def check() -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=40, seed=7, progress=False)


def test_groups_hold_the_result(check: xr.DataTree) -> None:
    result = goodness_of_fit(walk(), DATA, views_of(DATA), num_bootstrap=40, seed=7)
    ksd, null = check["ksd"].to_dataset(), check["ksd_null"].to_dataset()
    assert ksd["view"].values.tolist() == [view.name for view in result.views]
    np.testing.assert_allclose(ksd["statistic"], result.statistic, rtol=1e-12)
    np.testing.assert_allclose(ksd["p_value"], result.p_value)
    assert float(ksd["p_value_overall"]) == result.p_value_overall
    np.testing.assert_allclose(null["ksd"].values[0], result.null.statistic, rtol=1e-10)
    np.testing.assert_allclose(null["extreme"].values[0], result.null.extreme, rtol=1e-10)
    assert null["ksd"].dims == null["extreme"].dims == ("chain", "draw", "view")
    assert {"kind": "parametric", "num_bootstrap": 40, "seed": 7, "level": 0.05}.items() <= ksd.attrs.items()
    assert all(0 <= ksd.attrs[f"seconds_{stage}"] < 60 for stage in ("model", "kernels", "bootstrap", "localization"))
    groups_of_all = {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "ksd_data", "ksd_length", "ksd_draws"}
    assert set(check.children) == groups_of_all | {"posterior_predictive", "observed_data"}
    assert ksd["weight"].values.tolist() == [view.weight for view in result.views]
    assert ksd["feature_kind"].values.tolist() == [view.kernel.feature_kind for view in result.views]
    assert ksd["meaning"].values.tolist() == [view.kernel.meaning for view in result.views]
    assert "tolerance" not in ksd.attrs
    assert "tolerance_p_value" not in ksd


def test_the_extent_is_in_the_groups() -> None:
    data = walk(hold=0.5).draw(50, torch.Generator().manual_seed(0))
    check = ksd_check(walk(hold=0.1), data, num_bootstrap=99, seed=3, tolerance=0.02, level=0.06, progress=False)
    setup = model_and_views(walk(hold=0.1), data, None, None, None)
    result = goodness_of_fit(walk(hold=0.1), data, setup.views, num_bootstrap=99, seed=3)
    size = extent(result, localize(result), data, setup.drawn, level=0.06, tolerance=0.02, seed=3)
    ksd, ngrams = check["ksd"].to_dataset(), check["ksd_ngram"].to_dataset()
    assert size.tolerated is not None
    assert size.drawn is not None
    assert float(ksd["foreign_share_overall"]) == size.foreign.share_overall > 0
    np.testing.assert_array_equal(ksd["foreign_share"], size.foreign.share)
    assert ksd.attrs["tolerance"] == 0.02
    np.testing.assert_array_equal(ksd["tolerance_p_value"], size.tolerated.p_value)
    assert float(ksd["tolerance_p_value_overall"]) == size.tolerated.p_value_overall < 0.06
    np.testing.assert_allclose(ksd["discrepancy"], size.tolerated.closeness.estimate, rtol=1e-10)
    np.testing.assert_allclose(ksd["discrepancy_upper"], size.tolerated.closeness.upper, rtol=1e-10)
    factors, told = size.tolerated.factors, check["ksd_factor"].to_dataset()
    assert told.attrs["tolerance"] == 1.25
    assert [one.view for one in factors] == [0, 1, 2]
    owners = [
        name for name, one in zip(("content-1", "content-2", "content-3"), factors, strict=True) for _ in one.symbols
    ]
    assert told["view_name"].values.tolist() == owners
    codes = [[code for code in row if code >= 0] for row in told["symbol"].values.tolist()]
    assert codes == [[code for code in row if code >= 0] for one in factors for row in one.symbols.tolist()]
    assert told["label"].values.tolist() == ["".join(map(str, row)) for row in codes]
    for name, field in {"factor": "log_factor", "factor_low": "low", "factor_high": "high"}.items():
        np.testing.assert_allclose(
            told[name], torch.cat([getattr(one.tilts, field).exp() for one in factors]), rtol=1e-7
        )
    for name in ("within", "outside"):
        np.testing.assert_array_equal(told[name], torch.cat([getattr(one, f"is_{name}") for one in factors]))
    assert told["outside"].values.any()
    for name in SIZES:
        expected = torch.cat([getattr(sizes, name) for sizes in size.sizes])
        np.testing.assert_allclose(ngrams[name], expected, rtol=1e-9)
        assert np.isfinite(ngrams[name].values).any()
    drawn = check["ksd_draws"].to_dataset()
    codes = Sequences.of(drawn["token"].values, 5, pad=-1).to_lists()
    assert codes == size.drawn[:20].to_lists()
    assert drawn["length"].values.tolist() == [len(x) for x in codes]
    assert drawn["token"].attrs["alphabet"] == check["ksd_data"]["token"].attrs["alphabet"]


@pytest.mark.parametrize("impossible", [0, 2])
def test_lengths_are_those_of_the_data_and_of_the_model(impossible: int) -> None:
    ends = torch.full((3,), 0.25, dtype=torch.double)
    model = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, ends)
    lists = [[0, 1], [2], [1, 1, 1], [2, 1], *[[0] * 20] * 2]
    whole = Sequences.of([*[[]] * impossible, *lists], 3)  # the chain has no empty sequences
    context = pytest.warns(UserWarning, match="probability zero|impossible") if impossible else nullcontext()
    with context:
        check = ksd_check(model, whole, num_bootstrap=20, progress=False)
    lengths = check["ksd_length"].to_dataset()
    assert lengths.attrs["num_drawn"] == 100
    observed = {length: lengths["observed"].values[length] for length in (1, 2, 3, 20)}
    assert observed == pytest.approx({1: 1 / 6, 2: 2 / 6, 3: 1 / 6, 20: 2 / 6})
    assert lengths["observed"].values.sum() == pytest.approx(1)
    assert lengths["length"].values.tolist() == list(range(lengths.sizes["length"]))
    expected = lengths["expected"].values
    assert expected[0] == 0
    assert expected.sum() == pytest.approx(1)
    np.testing.assert_allclose(expected[1:15], 0.25 * 0.75 ** np.arange(14), rtol=0.01)


def test_lengths_of_a_model_without_draws_go_beyond_those_of_the_data() -> None:
    ends = torch.full((3,), 0.25, dtype=torch.double)
    model = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, ends)
    data = Sequences.of([[0, 1, 1], [2, 0, 1], [1, 1, 2], [2, 1, 0, 0]] * 5, 3)
    check = ksd_check(Unsampled(model), data, views="length", num_bootstrap=20, progress=False)
    check_result(check, "check")
    lengths = check["ksd_length"].to_dataset()
    assert (lengths.attrs["num_drawn"], lengths.attrs["complete"]) == (0, 1)
    assert lengths.attrs["unseen"] == pytest.approx(1 - 0.25 * (0.75**2 + 0.75**3))
    for name in ("expected", "expected_low", "expected_high"):  # only the length decides on the ratios
        np.testing.assert_allclose(lengths[name].values[:30], [0.0, *(0.25 * 0.75 ** np.arange(29))], rtol=1e-5)


def test_a_check_without_the_length_knows_no_lengths() -> None:
    check = ksd_check(walk(), DATA, views=["content-2"], num_bootstrap=5, progress=False)
    assert "ksd_length" not in check.children
    lengths = View("length", TailBlockOperator(), LengthKernel())  # its features are not made from the model
    check = ksd_check(walk(), DATA, views=[lengths], num_bootstrap=5, progress=False)
    assert "ksd_length" not in check.children
    assert summary(check).loc["length", "looks at"] == "the length"


def test_a_model_without_a_sampler_has_no_draws() -> None:
    check = ksd_check(Unsampled(walk()), DATA, num_bootstrap=5, progress=False)
    assert "ksd_draws" not in check.children
    assert "ksd_length" in check.children


def test_shares_add_up(check: xr.DataTree) -> None:
    ksd, ngrams = check["ksd"].to_dataset(), check["ksd_ngram"].to_dataset()
    np.testing.assert_allclose(ksd["contribution"].sum("sequence"), ksd["statistic"], rtol=1e-12)
    shown = ksd["contribution"].sel(sequence=ksd["shown_sequence"])
    assert shown.dims == ("view", "shown")
    np.testing.assert_allclose(ksd["attribution"].sum("position"), shown, rtol=1e-9, atol=1e-14)
    assert (shown.diff("shown") <= 0).all()
    assert (np.sort(ksd["shown_sequence"], axis=1) == ksd["sequence"].values).all()
    after = ksd["position"] > xr.DataArray(DATA.lengths.numpy()[ksd["shown_sequence"]], dims=("view", "shown"))
    assert (ksd["attribution"].isnull() == after).all()
    shares = ngrams.groupby("view_name").sum()["share"].to_series()
    assert len(shares) == 10
    for name, share in shares.items():
        np.testing.assert_allclose(share, ksd["statistic"].sel(view=name), rtol=1e-10)


def test_layout_is_that_of_the_made_up_checks(check: xr.DataTree) -> None:
    with_all = ksd_check(walk(), DATA, num_bootstrap=3, gram=True, tolerance=0.1, progress=False)
    made_up = made_up_check(tolerance=0.1)
    assert set(with_all.children) == set(made_up.children)
    for name, group in made_up.children.items():
        found = with_all[name].to_dataset()
        assert {key: value.dims for key, value in found.variables.items()} == {
            key: value.dims for key, value in group.to_dataset().variables.items()
        }
        assert {key: value.dtype for key, value in found.variables.items()} == {
            key: value.dtype for key, value in group.to_dataset().variables.items()
        }
        assert set(group.attrs) <= set(found.attrs)
    gram = with_all["ksd"]["gram"].sel(view="content-2").values
    [matrix] = stein_matrices(walk(), DATA, default_views()[1:2])
    np.testing.assert_allclose(gram, matrix.dense(), rtol=1e-12)


def test_the_data_are_whole(check: xr.DataTree) -> None:
    observed = check["ksd_data"].to_dataset()
    symbols = json.loads(observed["token"].attrs["alphabet"])
    again = Sequences.of(observed["token"].values, len(symbols), pad=-1)
    assert again.to_lists() == DATA.to_lists()
    assert observed["length"].values.tolist() == DATA.lengths.tolist()


EDGES = {"start": ("^", ""), "first two": ("^", ""), "end": ("", "$"), "ends": ("^", "$")}
WORDS = [["AH", "B", "K"], ["a b", "^", "$"], ["$", "^", " "], ["0", "1", "10"], ["-1", "nothing", "length"]]


@pytest.mark.parametrize("symbols", ["abc", *WORDS], ids=repr)
def test_codes_of_ngrams_are_spelled_by_their_labels(symbols: Any) -> None:
    alphabet = list(symbols)
    lists = random_walk(3, hold=0.5).draw(12, torch.Generator().manual_seed(0)).to_lists()
    data = Sequences.of([[alphabet[code] for code in x] for x in lists], alphabet)
    operator = ZanellaOperator()
    own = [View("first two", operator, StartKernel(2)), View("mixed", operator, ContiguousKernel(1, 4))]
    own += [View("end", operator, EndKernel(2)), View("ends", operator, EndsKernel())]
    rests = View("rests", operator, EmbeddingKernel(lambda x: x.lengths[:, None].double()))
    pairs = View("Hamming", operator, HammingKernel())
    check = ksd_check(
        random_walk(3), data, views=[*default_views(), *own, rests, pairs], num_bootstrap=5, progress=False
    )
    ngrams = check["ksd_ngram"].to_dataset()
    assert ngrams["symbol"].dims == ("ngram", "place")
    assert ngrams["place"].values.tolist() == [0, 1, 2, 3]
    assert ngrams["symbol"].dtype == np.int64
    seen = set()
    for view, label, codes in zip(
        ngrams["view_name"].values, ngrams["label"].values, ngrams["symbol"].values.tolist(), strict=True
    ):
        text = spelled(codes, alphabet)
        if view in ("length", "rests", "surprise", "mirror", "repeats"):
            assert codes == [-1] * 4
            assert label != ""
        else:
            known = [code for code in codes if code >= 0]
            assert known == codes[: len(known)]  # padding comes last
            assert all(code <= 3 for code in known)
            assert 3 not in codes or view in EDGES  # only a start or an end may be over
            joint = "" if are_letters(alphabet) else " "
            if view in ("skip", "position"):
                first, *rest = spelled_symbols(codes, alphabet)
                middles = ["_", "__"] if view == "skip" else [f" at position {place} of 6" for place in range(1, 7)]
                whole = [f"{first}{joint}{middle}{joint}{second}" for middle in middles for second in rest]
                assert label in (whole if view == "skip" else [f"{first}{middle}" for middle in middles])
            elif view == "end" and 3 in codes:
                assert label == f"^{spelled([code for code in codes if code != 3], alphabet)}$"
            elif view in EDGES:
                before, after = EDGES[view]
                inner = text
                if view == "ends":  # without a first symbol it is empty
                    inner = "" if codes[0] == 3 else "...".join(spelled([code], alphabet) for code in codes[:2])
                assert label == f"{before}{inner}{after}"
            else:
                assert label == text
        seen.add(view)
    assert seen == {name.name for name in default_views()} | {"first two", "mixed", "rests", "end", "ends"}


@pytest.mark.parametrize("symbols", WORDS, ids=repr)
def test_symbols_with_spaces_and_signs_are_shown_as_they_are(symbols: list[str]) -> None:
    # The walk stands still half of the time, which its model never does: what is named are pairs of equal symbols.
    def named(names: list[str]) -> tuple[str, list[str], Any]:
        lists = random_walk(3, hold=0.5).draw(40, torch.Generator().manual_seed(0)).to_lists()
        data = Sequences.of([[names[code] for code in x] for x in lists], names)
        check = ksd_check(random_walk(3), data, views=["content-2", "start"], num_bootstrap=99, progress=False)
        return verdict(check), labels(plot_ngrams(check, view="content-2", num=3)), check

    plain, drawn, _ = named(["x", "y", "z"])
    told, shown, check = named(symbols)
    joint = "" if all(len(symbol) == 1 for symbol in symbols) else " "
    for symbol in symbols:
        assert repr(joint.join([symbol] * 2)) in told
    of = dict(zip("xyz", symbols, strict=True))
    visible = {key: symbol.replace(" ", "␣") for key, symbol in of.items()}
    assert shown == [joint.join(visible[letter] for letter in label) for label in drawn]
    [named_plain] = re.findall(r"^the model does not fit \(p = 0\.\d+\): ('.*) are too rare under the model", plain)
    assert {name[:4] for name in re.split(", | and ", re.sub(r" \(.*?\)", "", named_plain))} == {"'xx'", "'yy'", "'zz'"}
    starts = labels(plot_ngrams(check, view="start", num=4))
    assert {*starts, "nothing"} == {*visible.values(), "nothing"}  # a start that is over
    plt.close("all")


def test_edits_are_told_in_words_from_their_codes(check: xr.DataTree) -> None:
    edits = check["ksd_edit"].to_dataset()
    result = goodness_of_fit(walk(), DATA, views_of(DATA), num_bootstrap=40, seed=7)
    told = []
    for place in localize(result):
        pairs = zip(place.edits.removed.tolist(), place.edits.inserted.tolist(), strict=True)
        told += [operation(*pair, list("01234")) for pair in pairs]
    assert edits["operation"].values.tolist() == told
    assert {"insert", "delete", "replace"} == {words.split()[0] for words in told}


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def test_a_posterior_predictive_check_needs_no_test_of_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences.of(["ab", "b", "aba", "aa"])
    models = PosteriorModels(program, data, {"stop": torch.tensor([0.3, 0.4, 0.5, 0.2]).view(2, 2)})
    found = posterior_predictive(models, data, default_views())
    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.goodness_of_fit", None)
    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.GoodnessOfFit", None)
    monkeypatch.setattr(groups, "GoodnessOfFit", None)
    tree = predictive_datatree(found, data, {}, settings={"level": 0.05, "seed": 3})
    own = {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "ksd_ppc", "ksd_data"}
    assert set(tree.children) == own | {"observed_data", "posterior_predictive", "log_likelihood"}
    assert tree["ksd_ppc"].sizes == {"chain": 2, "draw": 2, "view": 10}
    np.testing.assert_array_equal(tree["ksd_ppc"]["realized"].values.reshape(4, 10), found.realized)
    assert tree["ksd"]["weight"].values.tolist() == [view.weight for view in default_views()]
    assert "foreign_share" not in tree["ksd"]
    assert "factor" not in tree["ksd_ngram"]
    np.testing.assert_array_equal(tree["ksd"]["p_value"], found.p_value)
    np.testing.assert_array_equal(tree["ksd_null"]["extreme"].values[0], found.replicated.extreme)
    assert {"kind": "posterior predictive", "seed": 3}.items() <= tree["ksd"].attrs.items()
    assert tree["ksd"].attrs["seconds_posterior"] > 0
    assert verdict(tree)


def test_impossible_rows_are_named_and_left_out() -> None:
    whole = Sequences.of([[0, 1], [], *DATA.to_lists()], 5)
    rest = Sequences.of([[0, 1], *DATA.to_lists()], 5)
    result = goodness_of_fit(walk(), rest, default_views(), num_bootstrap=3)
    places = localize(result)
    size = extent(result, places, rest, None)
    tree = to_datatree(result, places, whole, {1: "x_0"}, size, settings={}, gram=True)
    assert tree["ksd_impossible"]["site"].to_series().to_dict() == {1: "x_0"}
    assert tree["ksd"]["sequence"].values.tolist() == tree["ksd"]["sequence_bis"].values.tolist() == [0, *range(2, 14)]
    assert tree["ksd_data"].sizes["sequence"] == 14
    assert 1 not in tree["ksd_edit"]["sequence_index"]
    edits = places[0].edits
    own = tree["ksd_edit"].to_dataset().isel(edit=slice(0, len(edits.share)))
    assert own["sequence_index"].values.tolist() == [row + (row > 0) for row in edits.sequence.tolist()]
    possible = to_datatree(result, places, rest, {}, size, settings={}, gram=False)
    assert "ksd_impossible" not in possible.children
