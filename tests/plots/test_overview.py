# SPDX-License-Identifier: Apache-2.0
"""A check on one page."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from pictures import assert_nothing_overlaps, labels
from synthetic import PHONEMES, VIEWS, changed, made_up_check, misfit, only

from pyro_ksd.plots import plot_check, plot_ngrams
from pyro_ksd.results.verdicts import verdict
from pyro_ksd.results.view_choice import worst_first


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


def test_a_check_of_a_model_can_be_drawn(check: xr.DataTree) -> None:
    axes = plot_check(check)
    assert axes[0].figure.get_suptitle().lower() == verdict(check).lower()
    assert_nothing_overlaps(axes[0].figure)
