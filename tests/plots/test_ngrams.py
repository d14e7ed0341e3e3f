# SPDX-License-Identifier: Apache-2.0
"""The pictures, by what is drawn in them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from synthetic import MEANINGS, made_up_check

from pyro_ksd.plots import plot_check, plot_gram, plot_ngrams, plot_null, plot_sequences, plot_views
from pyro_ksd.plots.text_fitting import abbreviations, fitting_texts, text_width
from pyro_ksd.results.check_table import verdict
from pyro_ksd.results.view_choice import worst_first

matplotlib.use("agg")
VIEWS = list(MEANINGS)
BLUE, VERMILION = "#0072b2", "#d55e00"
PHONEMES = [f"phoneme-{name}" for name in ("AH0", "B", "CH", "D", "EH1", "F", "G", "IY2", "K", "<unknown>")]
ONE_AXES: list[Callable[..., Any]] = [plot_views, plot_null, plot_ngrams, plot_sequences, plot_gram]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def changed(check: xr.DataTree, group: str, **values: Any) -> xr.DataTree:
    """A copy of a check with other values of some variables."""
    groups = {name: check[name].to_dataset() for name in check.children}
    old = groups[group]
    groups[group] = old.assign({name: (old[name].dims, np.asarray(value)) for name, value in values.items()})
    return xr.DataTree.from_dict(groups)


def only(check: xr.DataTree, *views: str) -> xr.DataTree:
    groups = {name: check[name].to_dataset() for name in check.children}
    for name in ("ksd", "ksd_null"):
        groups[name] = groups[name].sel(view=list(views))
    return xr.DataTree.from_dict(groups)


def misfit(check: xr.DataTree) -> xr.DataTree:
    """The statistics of a check that finds something: they are positive, and a few sequences make them up."""
    attribution = check["ksd"]["attribution"].values ** 2
    contribution = np.nansum(attribution, -1)
    parts = {"attribution": attribution, "contribution": contribution, "statistic": contribution.sum(1)}
    return changed(check, "ksd", **parts)


def line(ax: Axes, label: str) -> Any:
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def labels(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


# Views


def test_views_shows_every_p_value_with_its_level_and_resolution() -> None:
    ax = plot_views(made_up_check())
    assert labels(ax) == [*VIEWS, "all views together"]
    rejects, others = line(ax, "against the model"), line(ax, "nothing found")
    assert dict(zip(rejects.get_ydata(), rejects.get_xdata(), strict=True)) == {1: 0.002, 4: 0.03, 5: 0.004}
    assert dict(zip(others.get_ydata(), others.get_xdata(), strict=True)) == {0: 0.43, 2: 0.08, 3: 1.0}
    assert rejects.get_marker() != others.get_marker()
    assert (to_hex(rejects.get_color()), to_hex(others.get_color())) == (VERMILION, BLUE)
    assert set(line(ax, "level 0.05").get_xdata()) == {0.05}
    assert set(line(ax, "smallest possible p = 0.005").get_xdata()) == {1 / 201}
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the overall p-value comes last
    assert words(ax)[:6] == ["p = 0.430", "p = 0.002", "p = 0.080", "p = 1.000", "p = 0.030", "p = 0.004"]


def test_views_writes_the_meanings_if_there_is_room() -> None:
    assert words(plot_views(made_up_check()))[6:] == list(MEANINGS.values())
    assert len(words(plot_views(made_up_check(), figsize=(4, 4)))) == 6


# Null


def test_null_draws_every_draw_and_the_observed_value() -> None:
    check = made_up_check()
    axes = plot_null(check)
    assert len(axes) == 5
    for ax, name in zip(axes, VIEWS, strict=True):
        draws, ksd = check["ksd_null"]["ksd"].sel(view=name).values.ravel(), check["ksd"].to_dataset().sel(view=name)
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == np.histogram(draws, 40)[0].tolist()
        assert set(line(ax, "observed").get_xdata()) == {float(ksd["statistic"])}
        assert ax.get_ylabel() == f"{name}\np = {float(ksd['p_value']):.3f}"
        assert ax.get_xscale() == "linear"
    assert axes[-1].get_xlabel() == "KSD² estimate"


def test_null_of_chosen_views() -> None:
    check = made_up_check()
    assert [ax.get_ylabel() for ax in plot_null(check, view="start")] == ["start\np = 1.000"]
    chosen = plot_null(check, view=["length", "content-2"])
    assert [ax.get_ylabel() for ax in chosen] == ["length\np = 0.030", "content-2\np = 0.002"]


@pytest.mark.parametrize("far", ["observed", "null draws", "both"])
def test_null_stays_readable_with_values_far_out(far: str) -> None:
    check = only(made_up_check(), "content-2")
    draws = check["ksd_null"]["ksd"].values
    if far != "observed":
        draws = np.random.default_rng(0).standard_cauchy(draws.shape) ** 3
        check = changed(check, "ksd_null", ksd=draws)
    statistic = 0.5 if far == "null draws" else 100 * np.quantile(np.abs(draws), 0.95)
    (ax,) = plot_null(changed(check, "ksd", statistic=[statistic]), figsize=(4.5, 2))
    assert ax.get_xlabel() == "KSD² estimate, compressed axis"
    assert sum(bar.get_height() for bar in ax.patches) == draws.size
    ax.figure.draw_without_rendering()
    (left, right), drawn = ax.get_xlim(), np.quantile(draws, [0.05, 0.95])
    assert left < draws.min() < draws.max() < right
    assert left < statistic < right
    middle = np.diff(ax.transAxes.inverted().transform(ax.transData.transform([(x, 0) for x in drawn]))[:, 0])
    assert middle > 0.15
    assert_nothing_overlaps(ax.figure)


def test_null_draws_without_spread() -> None:
    check = only(made_up_check(), "content-2")
    (ax,) = plot_null(changed(check, "ksd_null", ksd=np.ones((1, 200, 1))))
    assert sum(bar.get_height() for bar in ax.patches) == 200


# N-grams


def test_ngrams_are_those_with_the_smallest_p_values() -> None:
    check = made_up_check()
    z = np.random.default_rng(0).normal(size=check["ksd_ngram"].sizes["ngram"])
    check = changed(check, "ksd_ngram", z=z)
    features = check["ksd_ngram"].to_dataset().to_dataframe().query("view_name == 'content-2'")
    features = features.sort_values("p_value").head(6)
    ax = plot_ngrams(check, num=6)
    assert labels(ax) == features["label"].tolist()
    assert [bar.get_width() for bar in ax.patches] == features["z"].tolist()
    assert words(ax) == [f"p = {p:.3f}" for p in features["p_value"]]
    assert {p <= 0.05 for p in features["p_value"]} == {True, False}
    for bar, z, p in zip(ax.patches, features["z"], features["p_value"], strict=True):
        color = BLUE if z > 0 else VERMILION
        assert to_hex(bar.get_edgecolor()) == color
        assert to_hex(bar.get_facecolor()) == (color if p <= 0.05 else "#ffffff")
        assert bool(bar.get_hatch()) == (p > 0.05)
    left, right = ax.get_xlim()
    assert left == -right
    assert ax.get_xlabel().startswith("← too rarely    the model makes it    too often →\n")
    assert ax.get_title(loc="left") == "content-2, p = 0.002\npairs of neighbors"


def test_ngrams_with_equal_p_values_are_sorted_by_their_scores() -> None:
    check = made_up_check()
    ax = plot_ngrams(changed(check, "ksd_ngram", p_value=np.full(check["ksd_ngram"].sizes["ngram"], 0.5)))
    widths = [abs(bar.get_width()) for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("p_value", "statistic", "worst"),
    [
        ([0.5, 0.4, 0.3, 0.2, 0.1], [1, 1, 1, 1, 1], "start"),
        ([0.1, 0.1, 0.1, 0.2, 0.1], [1, 3, 2, 9, 9], "content-2"),
        ([0.1, 0.1, 0.1, 0.1, 0.1], [9, 1, 1, 1, 9], "content-1"),
    ],
)
def test_ngrams_of_the_worst_view_other_than_length(p_value: list[float], statistic: list[float], worst: str) -> None:
    check = changed(made_up_check(), "ksd", p_value=p_value, statistic=statistic)
    assert plot_ngrams(check).get_title(loc="left").startswith(worst)


def test_worst_view_compares_statistics_to_their_null_draws() -> None:
    check = changed(made_up_check(), "ksd", p_value=np.full(5, 0.1), statistic=np.array([5, 4, 4, 4, 3]))
    null = check["ksd_null"]["ksd"].values * [10, 10, 1, 10, 10]
    assert worst_first(changed(check, "ksd_null", ksd=null), VIEWS)[0] == "content-3"
    assert worst_first(changed(check, "ksd_null", ksd=0 * null), VIEWS)[0] == "content-1"


def test_ngrams_says_short_and_long_of_the_length() -> None:
    for ax in (plot_ngrams(made_up_check(), view="length"), plot_ngrams(only(made_up_check(), "length"))):
        assert ax.get_xlabel().startswith("← too short    the model makes sequences    too long →\n")
        assert labels(ax) == ["length"]


def test_ngrams_shows_symbols_that_are_invisible_or_look_like_mathematics() -> None:
    check = made_up_check(["$", " ", "\n"])
    ax = plot_ngrams(changed(check, "ksd_ngram", z=np.arange(check["ksd_ngram"].sizes["ngram"])), num=9)
    found = check["ksd_ngram"].to_dataset().to_dataframe().query("view_name == 'content-2'")["label"]
    assert set(labels(ax)) == {label.replace(" ", "␣").replace("\n", "\\n") for label in found}
    assert "$$" in labels(ax)
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())


def test_ngrams_of_the_start_are_symbols() -> None:
    assert set(labels(plot_ngrams(made_up_check(["$", "^", "c"]), view="start"))) == {"$", "^", "c"}
    check = made_up_check(list("abc"))
    spelled = [label.replace("^c", "^$") for label in check["ksd_ngram"]["label"].values]
    check = changed(check, "ksd_ngram", label=np.array(spelled, dtype=object))
    assert set(labels(plot_ngrams(check, view="start"))) == {"a", "b", "nothing"}


def test_ngrams_of_long_symbols_leave_room_for_the_bars() -> None:
    ax = plot_ngrams(made_up_check(PHONEMES), view="content-3", figsize=(6, 4))
    assert all(label.count("…") == 3 for label in labels(ax))
    assert len(set(labels(ax))) == 10
    assert_nothing_overlaps(ax.figure)
    assert ax.get_position().width > 0.3


# Sequences


def cells_of(ax: Axes) -> PolyCollection:
    (cells,) = [artist for artist in ax.collections if isinstance(artist, PolyCollection)]
    return cells


@pytest.mark.parametrize("impossible", [0, 2])
def test_sequences_with_the_largest_contributions(impossible: int) -> None:
    check = misfit(made_up_check(list("wxyz"), impossible=impossible))
    one = check["ksd"].to_dataset().sel(view="content-2")
    order = one["sequence"].values[np.argsort(-one["contribution"].values)[:4]]
    ax = plot_sequences(check, num=4)
    shares = 100 * one["contribution"].sel(sequence=order).values / float(one["statistic"])
    assert 1 < shares[0] < 10
    assert labels(ax) == [f"{index}  ({share:.2f} %)" for index, share in zip(order, shares, strict=True)]
    assert ax.get_ylabel() == "sequence\n(share of the statistic)"

    expected, texts, columns = [], [], []
    for row, index in enumerate(order):
        observed = check["observed_data"].to_dataset().sel(sequence=index)
        length = int(observed["length"])
        expected += one["attribution"].sel(sequence=index).values[: length + 1].tolist()
        texts += [(column, row, "wxyz"[code]) for column, code in enumerate(observed["token"].values[:length])]
        columns += [(column, 1.0) for column in range(length)] + [(length, 0.4)]
    cells = cells_of(ax)
    assert cells.get_array().tolist() == expected
    assert [(*text.get_position(), text.get_text()) for text in ax.texts] == texts
    lefts = [path.vertices[:, 0].min() for path in cells.get_paths()]
    widths = [np.ptp(path.vertices[:, 0]) for path in cells.get_paths()]
    assert np.allclose(np.stack([lefts, widths], 1), np.array(columns) - [0.5, 0])
    low, high = cells.get_clim()
    assert low == -high == -np.abs(expected).max()


def test_sequences_show_no_percentages_of_nothing() -> None:
    check = made_up_check()
    largest = check["ksd"]["contribution"].sel(view="content-1").max().item()
    ax = plot_sequences(check, view="content-1", num=1)
    assert labels(ax)[0].endswith(f"  ({largest:.2g})")
    assert ax.get_ylabel() == "sequence\n(part of the statistic)"
    strongest = np.abs(cells_of(ax).get_array()).max()
    assert cells_of(ax).get_clim()[1] == pytest.approx(strongest / 0.3)  # pale
    assert "−" in labels(plot_sequences(check, num=30))[-1]


@pytest.mark.parametrize(
    ("symbols", "longest", "written"),
    [
        (list("ab"), 12, {"a", "b"}),
        ([*"abcdefg", "<unknown>"], 40, {*"abcdefg", "<…"}),
        (PHONEMES, 12, None),
        ([f"{number}-phoneme" for number in range(8)], 30, None),
        (list("ACGT"), 200, set()),
        (PHONEMES, 200, set()),
        (["$x$", "\\", " ", "\n"], 12, {"$x$", "\\", "␣", "\\n"}),
    ],
)
def test_symbols_stay_within_their_cells(symbols: list[str], longest: int, written: set[str] | None) -> None:
    ax = plot_sequences(misfit(made_up_check(symbols, longest=longest, num_sequences=12)))
    ax.figure.draw_without_rendering()
    cell = np.abs(np.diff(ax.transData.transform([(0, 0), (1, 0.8)]), axis=0))[0]
    for text in ax.texts:
        assert (text.get_window_extent().size <= cell).all()
        assert not text.get_parse_math()
    found = set(words(ax))
    assert found == written or (
        written is None and len(found) >= len(symbols) / 2 and any("…" in text for text in found)
    )


def test_letters_can_be_read_on_their_cells() -> None:
    ax = plot_sequences(misfit(made_up_check()))
    ax.figure.draw_without_rendering()
    faces = iter(cells_of(ax).get_facecolor())
    rows = [sum(text.get_position()[1] == row for text in ax.texts) for row in range(10)]
    colors = iter(ax.texts)
    for length in rows:
        for _ in range(length):
            dark = next(faces)[:3].mean() < 0.5
            if dark:
                assert next(colors).get_color() == "white"
            else:
                next(colors)
        next(faces)
    assert {text.get_color() for text in ax.texts} == {"white", "black"}


def test_an_empty_sequence_is_a_gap_only() -> None:
    check = misfit(made_up_check(num_sequences=3))
    attribution = check["ksd"]["attribution"].values
    attribution[:, 0, 1:] = np.nan
    observed = check["observed_data"].to_dataset()
    tokens, lengths = observed["token"].values, observed["length"].values
    tokens[0], lengths[0] = -1, 0
    check = changed(check, "ksd", attribution=attribution, contribution=np.tile([3.0, 2.0, 1.0], (5, 1)))
    check["observed_data"]["length"].values[:] = lengths
    check["observed_data"]["token"].values[:] = tokens
    ax = plot_sequences(check, num=1)
    assert (len(ax.texts), len(cells_of(ax).get_paths())) == (0, 1)


def test_abbreviations_keep_the_side_that_tells_symbols_apart() -> None:
    width = text_width("phon…", 10)
    assert set(abbreviations(PHONEMES[:3], width, 10).values()) == {"…-AH0", "…e-B", "…e-CH"}
    assert set(abbreviations(["cat-noun", "dog-noun"], width, 10).values()) == {"cat-…", "dog-…"}
    assert abbreviations(["phoneme"], text_width("…", 10), 10) == {"phoneme": "…"}
    assert abbreviations(["phoneme"], 0, 10) == {"phoneme": ""}


def test_letters_are_as_large_as_they_can_be() -> None:
    symbols = list("abcdefghi")
    assert fitting_texts(symbols, 20, 20) == ({symbol: symbol for symbol in symbols}, 9)
    assert fitting_texts(symbols, 20, 10)[1] == 7
    assert set(fitting_texts(symbols, 20, 5)[0].values()) == {""}
    assert fitting_texts([*symbols, "long"], 14, 20)[0]["long"] == "l…"
    assert set(fitting_texts([f"phoneme-{number:03}" for number in range(60)], 12, 20)[0].values()) == {""}


# The Stein kernel matrix


def test_gram_is_sorted_by_contribution() -> None:
    check = made_up_check(num_sequences=8, impossible=1)
    one = check["ksd"].to_dataset().sel(view="start")
    order = np.argsort(-one["contribution"].values)
    ax = plot_gram(check, view="start")
    (image,) = ax.images
    assert np.array_equal(image.get_array(), one["gram"].values[order][:, order])
    low, high = image.get_clim()
    assert low == -high
    assert labels(ax) == [str(index) for index in one["sequence"].values[order]]
    assert plot_gram(made_up_check()).get_title(loc="left").startswith("content-2")


def test_gram_colors_leave_out_the_diagonal() -> None:
    check = made_up_check()
    gram = np.ones((5, 30, 30)) + 1e6 * np.eye(30)
    assert plot_gram(changed(check, "ksd", gram=gram)).images[0].get_clim() == (-1, 1)
    assert plot_gram(changed(check, "ksd", gram=0 * gram)).images[0].get_clim() == (-1, 1)


def test_gram_must_be_in_the_check() -> None:
    with pytest.raises(ValueError, match=r"found none; run ksd_check\(\.\.\., gram=True\)"):
        plot_gram(made_up_check(gram=False))


# All of it on one page


def all_ones(check: xr.DataTree) -> xr.DataTree:
    return changed(check, "ksd", p_value=np.ones(5), p_value_overall=1.0)


CHECKS: dict[str, Callable[[], xr.DataTree]] = {
    "2 symbols, 200 positions": lambda: misfit(made_up_check(list("HT"), longest=200)),
    "60 symbols, p-values of 1": lambda: all_ones(made_up_check([f"{number:02}" for number in range(60)])),
    "long symbols": lambda: misfit(made_up_check(PHONEMES)),
    "5 sequences, 2 impossible": lambda: misfit(made_up_check(num_sequences=5, impossible=2)),
    "5000 sequences": lambda: misfit(made_up_check(num_sequences=5000, gram=False)),
    "one view": lambda: only(made_up_check(), "content-2"),
    "only the length": lambda: only(made_up_check(), "length"),
}


def assert_nothing_overlaps(figure: Figure) -> None:
    """No two texts overlap, and none leaves the figure."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for ax in figure.axes:  # ticks beyond the limits are not drawn
        for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
            low, high = sorted(axis.get_view_interval())
            hidden = {
                label for label in axis.get_ticklabels(which="both") if not low <= label.get_position()[side] <= high
            }
            boxes = [box for box, text in zip(boxes, texts, strict=True) if text not in hidden]
            texts = [text for text in texts if text not in hidden]
    for name, box in boxes:
        assert figure.bbox.x0 - 1 <= box.x0 < box.x1 <= figure.bbox.x1 + 1, name
        assert figure.bbox.y0 - 1 <= box.y0 < box.y1 <= figure.bbox.y1 + 1, name
    for (one, a), (other, b) in combinations(boxes, 2):
        shared = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(shared) < 2, f"{one!r} overlaps {other!r}"


@pytest.mark.parametrize("name", CHECKS)
def test_check_on_one_page(name: str) -> None:
    check = CHECKS[name]()
    views, null, ngrams, sequences = plot_check(check)
    assert labels(views)[-1] == "all views together"
    worst = worst_first(check, [str(view) for view in check["ksd"]["view"].values])[0]
    assert null.get_ylabel().startswith(f"{worst}\n")
    assert 1 <= len(ngrams.patches) <= 8
    assert sequences.get_title(loc="left").startswith(worst)
    assert len(labels(sequences)) == min(8, check["ksd"].sizes["sequence"])
    assert views.figure.get_suptitle().lower() == verdict(check).lower()
    assert len(plt.get_fignums()) == 1
    assert_nothing_overlaps(views.figure)


@pytest.mark.parametrize("plot", ONE_AXES, ids=lambda plot: plot.__name__)
def test_nothing_overlaps_in_single_pictures(plot: Callable[..., Any]) -> None:
    ax = plot(misfit(made_up_check(PHONEMES, num_sequences=12)))
    assert_nothing_overlaps(np.ravel(ax)[0].figure)


@pytest.mark.parametrize(("overall", "of_pairs", "drawn"), [(0.01, 0.01, 4), (0.01, 0.3, 3), (0.3, 0.3, 4)])
def test_check_shows_ngrams_unless_something_else_is_wrong(overall: float, of_pairs: float, drawn: int) -> None:
    p_values = {"content-1": 0.6, "content-2": of_pairs, "content-3": 0.5, "start": 0.7, "length": 0.002}
    check = misfit(made_up_check())
    check = changed(
        check, "ksd", p_value=np.array([p_values[view] for view in VIEWS]), p_value_overall=np.array(overall)
    )
    axes = plot_check(check)
    assert len(axes) == drawn
    assert_nothing_overlaps(axes[0].figure)


def test_check_without_features() -> None:
    check = made_up_check()
    check["ksd_ngram"] = xr.DataTree(check["ksd_ngram"].to_dataset().isel(ngram=slice(0)))
    assert len(plot_check(check)) == 3
    with pytest.raises(ValueError, match="expected a check with a view that has features such as n-grams, found none"):
        plot_ngrams(check)


# What all pictures share


@pytest.mark.parametrize("plot", ONE_AXES, ids=lambda plot: plot.__name__)
def test_axes_can_be_given(plot: Callable[..., Any]) -> None:
    check = only(made_up_check(), "start")
    figure, ax = plt.subplots()
    assert np.ravel(plot(check, ax=ax))[0] is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("plot", [*ONE_AXES, plot_check], ids=lambda plot: plot.__name__)
def test_figures_can_be_shaped(plot: Callable[..., Any]) -> None:
    figure = np.ravel(plot(made_up_check(), figsize=(11, 10), backend_kwargs={"dpi": 50}))[0].figure
    assert figure.get_size_inches().tolist() == [11, 10]
    assert figure.dpi == 50
    assert figure.get_layout_engine() is not None


def test_null_takes_as_many_axes_as_views() -> None:
    check = made_up_check()
    axes = plt.subplots(1, 2)[1]
    assert plot_null(check, view=["start", "length"], ax=axes).tolist() == axes.tolist()
    with pytest.raises(ValueError, match="expected ax to hold 5 axes, one for each view, found 2"):
        plot_null(check, ax=axes)


@pytest.mark.parametrize("plot", [plot_null, plot_ngrams, plot_sequences, plot_gram], ids=lambda plot: plot.__name__)
def test_an_unknown_view_is_named_with_the_known_ones(plot: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"one of \['content-1', .*, 'length'\], found 'content-9'"):
        plot(made_up_check(), view="content-9")
    assert plt.get_fignums() == []


def test_no_views_and_no_rows_are_mistakes() -> None:
    with pytest.raises(ValueError, match="expected view to name some of"):
        plot_null(made_up_check(), view=[])
    for plot in (plot_ngrams, plot_sequences, plot_check):
        with pytest.raises(ValueError, match="expected num to be 1 or more, found 0"):
            plot(made_up_check(), num=0)
    assert plt.get_fignums() == []


def test_other_containers_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a check with the group 'ksd'"):
        plot_views(xr.DataTree())


def test_inference_data_gives_the_same_pictures() -> None:
    arviz = pytest.importorskip("arviz")
    if not hasattr(arviz, "from_datatree"):
        pytest.skip("ArviZ 1 has only DataTree")
    check = misfit(made_up_check(impossible=1))
    other = arviz.from_datatree(check)
    for one_ax, other_ax in zip(
        [*plot_check(check), plot_gram(check)], [*plot_check(other), plot_gram(other)], strict=True
    ):
        assert (labels(one_ax), words(one_ax)) == (labels(other_ax), words(other_ax))


def test_plots_need_neither_torch_nor_pyro() -> None:
    heavy = ("torch", "pyro", "matplotlib", "arviz")
    code = f"import json, sys, pyro_ksd.plots; print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == []
