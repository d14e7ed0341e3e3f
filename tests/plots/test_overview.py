# SPDX-License-Identifier: Apache-2.0
"""A check on one page."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from pictures import assert_nothing_overlaps, labels
from synthetic import MEANINGS, PHONEMES, TEN_VIEWS, VIEWS, changed, made_up_check, misfit, only

from pyro_ksd.plots import plot_check, plot_ngrams
from pyro_ksd.plots.style import points
from pyro_ksd.results.verdicts import reason_views, verdict, worst_view


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
    "ten views": lambda: misfit(made_up_check(views=TEN_VIEWS)),
    "all views": lambda: misfit(made_up_check(PHONEMES, views=list(MEANINGS))),
}


@pytest.mark.parametrize("name", CHECKS)
def test_check_on_one_page(name: str) -> None:
    check = CHECKS[name]()
    views, null, ngrams, sequences = plot_check(check)
    assert labels(views)[-1] == ("impossible sequences" if "impossible" in name else "all views together")
    worst = worst_view(check, [str(view) for view in check["ksd"]["view"].values])
    assert null.get_ylabel().startswith(f"{worst}\n")
    if ngrams.get_xlabel() == "length":
        assert worst == "length"
    else:
        assert 1 <= len(ngrams.patches) <= 8
    assert sequences.get_title(loc="left").startswith(worst)
    assert len(labels(sequences)) == min(8, check["ksd"].sizes["sequence"])
    assert views.figure.get_suptitle().lower() == verdict(check).lower()
    assert len(plt.get_fignums()) == 1
    assert_nothing_overlaps(views.figure)


STYLES = {
    "default": {},
    "dark_background": plt.style.library["dark_background"],
    "sizes of ArviZ's styles": {
        "axes.labelsize": 15,
        "axes.titlesize": 16,
        "legend.fontsize": 14,
        "xtick.labelsize": 14,
        "ytick.labelsize": 14,
        "figure.constrained_layout.use": True,
    },
    "letters of a talk": {"font.size": 14},
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("fits", [True, False])
def test_labels_do_not_overlap_in_any_style(style: str, fits: bool) -> None:
    check = made_up_check(views=TEN_VIEWS, p_value_overall=0.6 if fits else 0.004)
    with plt.rc_context(STYLES[style]):
        axes = plot_check(check if fits else misfit(check))
        assert_nothing_overlaps(axes[0].figure)
    views, *_, sequences = axes
    for ax in (views, sequences):
        between = points(ax)[1] / abs(np.diff(ax.get_ylim())[0])
        assert between > 1.4 * ax.get_yticklabels()[0].get_fontsize()


@pytest.mark.parametrize(
    ("overall", "of_pairs", "of_length", "shown"),
    [
        (0.01, 0.003, 0.002, "ngrams"),
        (0.01, 0.003, 0.3, "ngrams"),
        (0.01, 0.01, 0.002, "length"),  # pairs do not reject the model with the weight that they have
        (0.01, 0.3, 0.002, "length"),
        (0.3, 0.3, 0.002, "ngrams"),
        (0.01, 0.3, 0.3, "none"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_check_shows_ngrams_unless_something_else_is_wrong(
    overall: float, of_pairs: float, of_length: float, shown: str, known: bool
) -> None:
    views = [*VIEWS, "Hamming"]
    p_values = {"content-2": of_pairs, "length": of_length, "Hamming": 0.005}
    check = changed(
        misfit(made_up_check(views=views)),
        "ksd",
        p_value=np.array([p_values.get(view, 0.7) for view in views]),
        p_value_overall=np.array(overall),
    )
    if not known:
        del check["ksd_length"]
    axes = plot_check(check)
    below = [ax.get_xlabel().split("\n")[0] for ax in axes]
    assert ("← too rare    under the model    too frequent →" in below) == (shown == "ngrams")
    assert ("length" in below) == (shown == "length" and known)
    assert len(axes) == (3 if shown == "none" else 4)  # features of the length where its distribution is unknown
    told = axes[1].get_ylabel().split("\n")[0]
    assert axes[-1].get_title(loc="left").startswith(f"{told},")
    if axes[2].get_xlabel() != "length":
        assert axes[2].get_title(loc="left").startswith(f"{told},")
    assert_nothing_overlaps(axes[0].figure)


def test_the_page_is_about_what_the_verdict_names() -> None:
    check = made_up_check(views=TEN_VIEWS)
    p_values = {"content-2": 0.002, "surprise": 0.002, "repeats": 0.002}
    check = changed(check, "ksd", p_value=[p_values.get(view, 0.7) for view in TEN_VIEWS], statistic=np.ones(10))
    null = check["ksd_null"]["ksd"].values * (np.array(TEN_VIEWS) != "repeats")  # its null draws do not vary
    check = changed(check, "ksd_null", ksd=null)
    features = check["ksd_ngram"].to_dataset()
    check = changed(check, "ksd_ngram", p_value=np.where(features["view_name"].values == "content-2", 0.001, 1))
    told = verdict(check)
    assert "too rare" in told
    assert "runs" not in told
    _, null_axes, ngrams, sequences = plot_check(check)
    assert null_axes.get_ylabel().startswith("content-2\n")
    assert ngrams.get_title(loc="left").startswith("content-2,")
    assert sequences.get_title(loc="left").startswith("content-2,")


def test_check_without_features() -> None:
    check = made_up_check()
    check["ksd_ngram"] = xr.DataTree(check["ksd_ngram"].to_dataset().isel(ngram=slice(0)))
    assert len(plot_check(check)) == 3
    with pytest.raises(ValueError, match="expected a check with a view that has features such as n-grams, found none"):
        plot_ngrams(check)


def test_a_check_of_a_model_can_be_drawn(check: xr.DataTree) -> None:
    axes = plot_check(check)
    assert axes[0].figure.get_suptitle().lower() == verdict(check).lower()
    assert_nothing_overlaps(axes[0].figure)


def test_all_panels_are_about_one_view_that_the_verdict_names() -> None:
    """The length is worse than the pairs, and the verdict names both."""
    check = made_up_check(views=TEN_VIEWS)
    p_values = {"content-2": 0.002, "length": 0.0001}
    check = changed(check, "ksd", p_value=[p_values.get(view, 0.7) for view in TEN_VIEWS], statistic=np.ones(10))
    features = check["ksd_ngram"].to_dataset()
    check = changed(check, "ksd_ngram", p_value=np.where(features["view_name"].values == "content-2", 0.001, 1))
    assert reason_views(check)[0] == "content-2"
    _, null, ngrams, sequences = plot_check(check)
    assert null.get_ylabel().startswith("content-2\n")
    assert ngrams.get_title(loc="left").startswith("content-2,")
    assert sequences.get_title(loc="left").startswith("content-2,")


def test_features_of_a_view_that_the_verdict_does_not_name_are_not_drawn() -> None:
    """The first symbol has the smallest p-value with several features, but only the mirror image counts."""
    check = made_up_check(views=TEN_VIEWS)
    p_values = {"start": 0.04, "mirror": 0.0002}
    check = changed(check, "ksd", p_value=[p_values.get(view, 0.7) for view in TEN_VIEWS], statistic=np.ones(10))
    assert reason_views(check) == ["mirror"]
    _, null, sequences = plot_check(check)
    assert null.get_ylabel().startswith("mirror\n")
    assert sequences.get_title(loc="left").startswith("mirror,")
