# SPDX-License-Identifier: Apache-2.0
"""Which view speaks for a check."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic import VIEWS, changed, made_up_check

from pyro_ksd.results.view_choice import (
    chosen_views,
    feature_kind,
    known_view,
    speaking_views,
    view_names,
    views_with_features,
    worst_first,
)


def test_worst_view_compares_statistics_to_their_null_draws() -> None:
    check = changed(made_up_check(), "ksd", p_value=np.full(5, 0.1), statistic=np.array([5, 4, 4, 4, 3]))
    null = check["ksd_null"]["ksd"].values * [10, 10, 1, 10, 10]
    assert worst_first(changed(check, "ksd_null", ksd=null), VIEWS)[0] == "content-3"
    assert worst_first(changed(check, "ksd_null", ksd=0 * null), VIEWS)[0] == "content-1"


def test_names_of_views_and_of_those_with_features() -> None:
    check = made_up_check()
    assert view_names(check) == views_with_features(check) == VIEWS
    owners = check["ksd_ngram"]["view_name"].values
    check["ksd_ngram"] = xr.DataTree(
        check["ksd_ngram"].to_dataset().isel(ngram=np.isin(owners, ["length", "content-2"]))
    )
    assert views_with_features(check) == ["content-2", "length"]  # in the order of the views


def test_a_test_without_features_has_no_kinds() -> None:
    ksd = made_up_check()["ksd"].to_dataset()
    assert [feature_kind(ksd.sel(view=name)) for name in VIEWS] == ["ngram", "ngram", "ngram", "start", "length"]
    assert feature_kind(ksd.drop_vars("feature_kind").sel(view="start")) == ""


SPEAKING = [
    # p-values of content-1, -2, -3 (a ninth of the weight each), start and length (a third each)
    ([0.5, 0.5, 0.5, 0.5, 0.5], ["start", "length"]),  # both are the worst
    ([0.4, 0.5, 0.5, 0.9, 0.9], ["start", "length"]),
    ([0.1, 0.5, 0.5, 0.9, 0.9], ["content-1"]),
    ([0.0055, 0.0057, 0.001, 0.5, 0.5], ["content-1", "content-3"]),
    ([0.05 / 9, 0.5, 0.5, 0.05 / 3, 0.017], ["content-1", "start"]),  # the bounds are included
    ([0.5, 0.5, 0.5, 0.03, 0.04], ["start"]),
    ([0.0, 0.0, 0.0, 0.0, 0.0], VIEWS),
]


@pytest.mark.parametrize(("p_values", "speaking"), SPEAKING)
def test_views_speak_if_they_reject_with_their_share_of_the_weight(p_values: list[float], speaking: list[str]) -> None:
    check = changed(made_up_check(), "ksd", p_value=p_values)
    assert speaking_views(check) == speaking
    assert speaking_views(changed(check, "ksd", p_value_overall=0.05)) == speaking
    assert speaking_views(changed(check, "ksd", p_value_overall=0.0501)) == []


def test_views_without_weights_count_alike() -> None:
    check = changed(made_up_check(), "ksd", p_value=[0.01, 0.011, 0.5, 0.0099, 0.5])
    check["ksd"] = xr.DataTree(check["ksd"].to_dataset().drop_vars("weight"))
    assert speaking_views(check) == ["content-1", "start"]


def test_the_level_decides_who_speaks() -> None:
    check = changed(made_up_check(), "ksd", p_value=[0.5, 0.5, 0.5, 0.03, 0.06], p_value_overall=0.2)
    assert speaking_views(check) == []
    check["ksd"].attrs["level"] = 0.2
    assert speaking_views(check) == ["start", "length"]
    check["ksd"].attrs["level"] = 0.1
    assert speaking_views(check) == []


def test_one_view_several_or_all_may_be_chosen() -> None:
    check = made_up_check()
    assert chosen_views(check, None) == VIEWS
    assert chosen_views(check, "start") == ["start"]
    assert chosen_views(check, ["length", "content-1"]) == ["length", "content-1"]
    assert chosen_views(check, ("length",)) == ["length"]
    assert known_view("start", VIEWS) == "start"
    with pytest.raises(ValueError, match=r"expected view to be one of \['content-1', .*'length'\], found 'end'"):
        chosen_views(check, ["start", "end"])
    with pytest.raises(ValueError, match=r"expected view to name some of \['content-1', .*, found \[\]; leave it out"):
        chosen_views(check, [])


def test_the_smallest_p_value_comes_first() -> None:
    check = made_up_check()
    assert worst_first(check, VIEWS) == ["content-2", "length", "content-3", "content-1", "start"]
    assert worst_first(check, ["start", "content-3"]) == ["content-3", "start"]
