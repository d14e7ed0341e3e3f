# SPDX-License-Identifier: Apache-2.0
"""The groups of a check."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

torch = pytest.importorskip("torch")

import pyro  # noqa: E402
from example_models import walk  # noqa: E402
from pictures import labels  # noqa: E402
from synthetic import made_up_check  # noqa: E402

from pyro_ksd import MarkovSequence, Sequences, View, ksd_check, plot_ngrams, verdict  # noqa: E402
from pyro_ksd.examples import random_walk  # noqa: E402
from pyro_ksd.fit_tests.absolute import goodness_of_fit  # noqa: E402
from pyro_ksd.fit_tests.localization import localize  # noqa: E402
from pyro_ksd.fit_tests.predictive import posterior_predictive  # noqa: E402
from pyro_ksd.kernels import ContiguousKernel, EmbeddingKernel, HammingKernel, StartKernel  # noqa: E402
from pyro_ksd.models.posterior.posterior_models import PosteriorModels  # noqa: E402
from pyro_ksd.results import groups  # noqa: E402
from pyro_ksd.results.groups import predictive_datatree, to_datatree  # noqa: E402
from pyro_ksd.results.labels import operation, spelled  # noqa: E402
from pyro_ksd.stein.assembly import stein_matrices  # noqa: E402
from pyro_ksd.stein.operators import ZanellaOperator  # noqa: E402
from pyro_ksd.stein.views import default_views  # noqa: E402

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def check() -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=40, seed=7, progress=False)


def test_groups_hold_the_result(check: xr.DataTree) -> None:
    result = goodness_of_fit(walk(), DATA, default_views(), num_bootstrap=40, seed=7)
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
    assert set(check.children) == {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "observed_data"}


def test_shares_add_up(check: xr.DataTree) -> None:
    ksd, ngrams = check["ksd"].to_dataset(), check["ksd_ngram"].to_dataset()
    np.testing.assert_allclose(ksd["contribution"].sum("sequence"), ksd["statistic"], rtol=1e-12)
    np.testing.assert_allclose(ksd["attribution"].sum("position"), ksd["contribution"], rtol=1e-9, atol=1e-14)
    after = ksd["position"] > xr.DataArray(DATA.lengths.numpy(), dims="sequence")
    assert (ksd["attribution"].isnull() == after).all()
    for name, share in ngrams.groupby("view_name").sum()["share"].to_series().items():
        np.testing.assert_allclose(share, ksd["statistic"].sel(view=name), rtol=1e-10)


def test_layout_is_that_of_the_made_up_checks(check: xr.DataTree) -> None:
    with_all = ksd_check(walk(), DATA, num_bootstrap=3, gram=True, progress=False)
    made_up = made_up_check()
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


def test_observed_data_is_whole(check: xr.DataTree) -> None:
    observed = check["observed_data"].to_dataset()
    symbols = json.loads(observed["token"].attrs["alphabet"])
    again = Sequences.of(observed["token"].values, len(symbols), pad=-1)
    assert again.to_lists() == DATA.to_lists()
    assert observed["length"].values.tolist() == DATA.lengths.tolist()


WORDS = [["AH", "B", "K"], ["a b", "^", "$"], ["$", "^", " "], ["0", "1", "10"], ["-1", "nothing", "length"]]


@pytest.mark.parametrize("symbols", ["abc", *WORDS], ids=repr)
def test_codes_of_ngrams_are_spelled_by_their_labels(symbols: Any) -> None:
    alphabet = list(symbols)
    lists = random_walk(3, hold=0.5).draw(12, torch.Generator().manual_seed(0)).to_lists()
    data = Sequences.of([[alphabet[code] for code in x] for x in lists], alphabet)
    operator = ZanellaOperator()
    own = [View("first two", operator, StartKernel(2)), View("mixed", operator, ContiguousKernel(1, 4))]
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
        if view in ("length", "rests"):
            assert codes == [-1] * 4
            assert label != ""
        else:
            assert label == (f"^{text}" if view in ("start", "first two") else text)
            assert all(0 <= code <= 3 for code in codes[: len([c for c in codes if c >= 0])])  # padding comes last
            assert 3 not in codes or view in ("start", "first two")  # only a start may be over
        seen.add(view)
    assert seen == {"content-1", "content-2", "content-3", "start", "length", "first two", "mixed", "rests"}


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
    assert plain.startswith("the model does not fit (p = 0.020): it makes 'xx', 'zz' and 'yy' too rarely")
    starts = labels(plot_ngrams(check, view="start", num=4))
    assert {*starts, "nothing"} == {*visible.values(), "nothing"}  # a start that is over
    plt.close("all")


def test_edits_are_told_in_words_from_their_codes(check: xr.DataTree) -> None:
    edits = check["ksd_edit"].to_dataset()
    result = goodness_of_fit(walk(), DATA, default_views(), num_bootstrap=40, seed=7)
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
    assert set(tree.children) == {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "ksd_ppc", "observed_data"}
    assert tree["ksd_ppc"].sizes == {"chain": 2, "draw": 2, "view": 5}
    np.testing.assert_array_equal(tree["ksd_ppc"]["realized"].values.reshape(4, 5), found.realized)
    np.testing.assert_array_equal(tree["ksd"]["p_value"], found.p_value)
    np.testing.assert_array_equal(tree["ksd_null"]["extreme"].values[0], found.replicated.extreme)
    assert {"kind": "posterior predictive", "seed": 3}.items() <= tree["ksd"].attrs.items()
    assert tree["ksd"].attrs["seconds_posterior"] > 0
    assert verdict(tree)


def test_impossible_rows_are_named_and_left_out() -> None:
    whole = Sequences.of([[0, 1], [], *DATA.to_lists()], 5)
    rest = Sequences.of([[0, 1], *DATA.to_lists()], 5)
    result = goodness_of_fit(walk(), rest, default_views(), num_bootstrap=3)
    tree = to_datatree(result, localize(result), whole, {1: "x_0"}, settings={}, gram=True)
    assert tree["ksd_impossible"]["site"].to_series().to_dict() == {1: "x_0"}
    assert tree["ksd"]["sequence"].values.tolist() == tree["ksd"]["sequence_bis"].values.tolist() == [0, *range(2, 14)]
    assert tree["observed_data"].sizes["sequence"] == 14
    assert 1 not in tree["ksd_edit"]["sequence_index"]
    edits = localize(result)[0].edits
    own = tree["ksd_edit"].to_dataset().isel(edit=slice(0, len(edits.share)))
    assert own["sequence_index"].values.tolist() == [row + (row > 0) for row in edits.sequence.tolist()]
    possible = to_datatree(result, localize(result), rest, {}, settings={}, gram=False)
    assert "ksd_impossible" not in possible.children
