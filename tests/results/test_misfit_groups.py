# SPDX-License-Identifier: Apache-2.0
"""Where the misfit sits: codes are spelled, edits told in words, shares kept."""

from __future__ import annotations

import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

torch = pytest.importorskip("torch")

from example_models import walk  # noqa: E402
from pictures import labels  # noqa: E402

from pyro_ksd import MarkovSequence, Sequences, View, ksd_check, plot_ngrams, verdict  # noqa: E402
from pyro_ksd.checks.check_setup import model_and_views  # noqa: E402
from pyro_ksd.examples import random_walk  # noqa: E402
from pyro_ksd.fit_tests.absolute import goodness_of_fit  # noqa: E402
from pyro_ksd.fit_tests.localization import localize  # noqa: E402
from pyro_ksd.fit_tests.misfit_extent import extent  # noqa: E402
from pyro_ksd.kernels import (  # noqa: E402
    ContiguousKernel,
    EmbeddingKernel,
    EndKernel,
    EndsKernel,
    HammingKernel,
    StartKernel,
)
from pyro_ksd.results.groups import to_datatree  # noqa: E402
from pyro_ksd.results.labels import are_letters, operation, spelled, spelled_symbols  # noqa: E402
from pyro_ksd.stein.operators import ZanellaOperator  # noqa: E402
from pyro_ksd.stein.views import default_views  # noqa: E402

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))

EDGES = {"start": ("^", ""), "first two": ("^", ""), "end": ("", "$"), "ends": ("^", "$")}
WORDS = [["AH", "B", "K"], ["a b", "^", "$"], ["$", "^", " "], ["0", "1", "10"], ["-1", "nothing", "length"]]


def views_of(data: Sequences, model: MarkovSequence | None = None) -> list[View]:
    """The views that a check takes."""
    return model_and_views(walk() if model is None else model, data, None, None, None).views


@pytest.fixture(scope="module")
def check() -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=40, seed=7, progress=False)


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
