# SPDX-License-Identifier: Apache-2.0
"""Which views of a check are reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.common.option_checks import found
from pyro_ksd.results.containers import dataset


def view_names(check: Any) -> list[str]:
    """The views of a check, in their order."""
    return [str(name) for name in dataset(check, "ksd")["view"].values]


def views_with_features(check: Any) -> list[str]:
    """The views of a check that have n-grams or other features to show."""
    owners = {str(name) for name in dataset(check, "ksd_ngram")["view_name"].values}
    return [name for name in view_names(check) if name in owners]


def num_features(check: Any, name: str) -> int:
    """How many features a view has."""
    return int((dataset(check, "ksd_ngram")["view_name"].values == name).sum())


def feature_kind(one: Any) -> str:
    """What the features of a view stand for, if they have names; other tests than this package's own know of none.

    :param one: the ``ksd`` group at one view.
    """
    return str(one["feature_kind"].item()) if "feature_kind" in one else ""


def p_value_of_views(ksd: xr.Dataset) -> float:
    """The p-value of all views together, which look only at sequences that are possible under the model.

    :param ksd: the group of a check.
    """
    return float(ksd["p_value_possible"] if "p_value_possible" in ksd else ksd["p_value_overall"])


def speaking_views(check: Any) -> list[str]:
    """The views whose findings count: none unless all of them together reject the model.

    Under a true model some view or other finds something in many checks; only all views together keep the level. When
    they reject, the view with the smallest p-value for its weight counts, and others whose p-values are small enough
    for their share ``s`` of the weight, at most ``s`` times the level (Bonferroni).
    """
    ksd = dataset(check, "ksd")
    level = float(ksd.attrs["level"])
    if p_value_of_views(ksd) > level:
        return []
    weight = ksd["weight"].values if "weight" in ksd else np.ones(ksd.sizes["view"])
    ratio = ksd["p_value"].values / (weight / weight.sum())
    speaking = (ratio <= level * (1 + 1e-9)) | (ratio == ratio.min())
    return [name for name, speaks in zip(view_names(check), speaking.tolist(), strict=True) if speaks]


def known_view(view: str, names: list[str]) -> str:
    """The view that was asked for.

    :raises ValueError: if it is none of the ``names``.
    """
    if not isinstance(view, str) or view not in names:
        raise ValueError(f"expected view to be one of {names}, found {found(view)}")
    return view


def chosen_views(check: Any, view: str | Sequence[str] | None, names: list[str] | None = None) -> list[str]:
    """The views that were asked for: one name, several, or all if left out.

    :param names: those to choose from; all views of the check if left out.
    :raises ValueError: if one of them is none of these, or there is none.
    """
    known = view_names(check) if names is None else names
    if view is None:
        return known
    asked = [view] if isinstance(view, str) else view
    if not isinstance(asked, Sequence) or not asked:
        raise ValueError(f"expected view to name some of {known}, found {found(asked)}; leave it out for all of them")
    return [known_view(name, known) for name in asked]


def worst_first(check: Any, names: list[str]) -> list[str]:
    """Some views in ascending order of their p-values.

    Among equal p-values the one comes first whose statistic is the largest multiple of the 95 % quantile of its null
    draws.
    """
    ksd = dataset(check, "ksd").sel(view=names)
    threshold = dataset(check, "ksd_null")["ksd"].sel(view=names).quantile(0.95, ("chain", "draw")).values
    multiple = ksd["statistic"].values / np.maximum(threshold, 1e-100)  # a null without spread has the quantile 0
    return [names[index] for index in np.lexsort((-multiple, ksd["p_value"].values))]
