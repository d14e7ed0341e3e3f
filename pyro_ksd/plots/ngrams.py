# SPDX-License-Identifier: Apache-2.0
"""The n-grams that are too frequent or too rare under the model."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.plots.style import (
    GRAY,
    MIN_ROWS,
    PURPLE,
    axes_for,
    background,
    foreground,
    points,
    view_title,
    write_beside,
)
from pyro_ksd.plots.text_fitting import abbreviations
from pyro_ksd.results.containers import alphabet_of, dataset
from pyro_ksd.results.findings import direction_words
from pyro_ksd.results.labels import are_letters, readable, spelled, spelled_symbols
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.verdicts import worst_view
from pyro_ksd.results.view_choice import feature_kind, known_view, num_features, speaking_views, views_with_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ngrams(
    check: Any,
    *,
    view: str | None = None,
    num: int = 10,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> Axes:
    """Draws the n-grams (or other features) of a view that are most clearly wrong under the model.

    A bar is the z-score of an n-gram: to the right if it is too frequent under the model, to the left if too rare. The
    n-grams are those with the smallest p-values, which are corrected for the number of n-grams of the view; the longest
    bar comes first. A bar is filled if the p-value is at most the level, but only in a view that counts in
    :func:`~pyro_ksd.results.summary`: under a true model some n-gram or other of ten views often has a small p-value.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param view: the name of a view with features. Left out, the worst one that has more than one, other than
        the length; see :func:`~pyro_ksd.plots.plot_lengths` for that.
    :param num: how many n-grams to show.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> ax = plot_ngrams(check, num=2)
    >>> [label.get_text() for label in ax.get_yticklabels()]  # the walk always moves
    ['bb', 'aa']
    """
    check_number("num", num, least=1)
    name = view_of_ngrams(check) if view is None else known_view(view, views_with_features(check))
    if name is None:
        raise ValueError(
            "expected a check with a view that has features such as n-grams, found none; use plot_sequences"
        )
    features = _most_telling(check, name, num)
    z = features["z"].values
    p_values = features["p_value"].values
    labels = _symbols(check, name, features)

    size = (6.5 + 0.06 * max(len(" ".join(label)) for label in labels), 1.6 + 0.32 * max(len(labels), MIN_ROWS))
    [ax] = axes_for(ax, 1, size, figsize, backend_kwargs)
    level = dataset(check, "ksd").attrs["level"]
    speaking = speaking_views(check)
    counts = name in speaking
    for row, (height, p) in enumerate(zip(z, p_values, strict=True)):
        ax.barh(row, height, height=0.7, **_look(filled=counts and p <= level))
    ax.axvline(0, color=foreground(), linewidth=0.8)
    reach = 1.08 * np.abs(z).max() or 1.0
    ax.set_xlim(-reach, reach)
    ax.set_ylim(max(len(z), MIN_ROWS) - 0.4, -0.6)
    ax.set_yticks(np.arange(len(z)), _fitting_labels(ax, labels), parse_math=False)
    kind = feature_kind(dataset(check, "ksd").sel(view=name))
    few, many = direction_words(kind)
    directions = f"← too {few}    under the model    too {many} →"
    if counts:
        looks = f"filled: p ≤ {level:g}, hatched: p > {level:g}"
    else:
        looks = f"hatched: {'this view' if speaking else 'all views together'} found nothing"
    ax.set_xlabel(f"{directions}\nz-score ({looks})")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    view_title(ax, check, name)
    write_beside(ax, map(p_text, p_values))
    return ax


def view_of_ngrams(check: Any) -> str | None:
    """The view whose features tell most; the length, or one with a single feature, only if there is no other."""
    names = views_with_features(check)
    ksd = dataset(check, "ksd")
    telling = [name for name in names if num_features(check, name) > 1 and feature_kind(ksd.sel(view=name)) != "length"]
    return worst_view(check, telling or names) if names else None


def _most_telling(check: Any, name: str, num: int) -> xr.Dataset:
    """The features of a view with the smallest p-values, in descending order of their absolute z-scores."""
    features = dataset(check, "ksd_ngram")
    features = features.isel(ngram=features["view_name"].values.astype(str) == name)
    height = np.abs(features["z"].values)
    chosen = np.lexsort((-height, features["p_value"].values))[:num]
    return features.isel(ngram=chosen[np.argsort(-height[chosen], kind="stable")])


def _symbols(check: Any, name: str, features: xr.Dataset) -> list[list[str]]:
    """The symbols of each n-gram, to be abbreviated one by one; a label in one piece where each is one letter."""
    kind = feature_kind(dataset(check, "ksd").sel(view=name))
    alphabet = alphabet_of(check)
    if kind in ("end", "ends", "skip") and are_letters(alphabet):
        return [[readable(str(label))] for label in features["label"].values]
    if kind == "position":
        symbols = [spelled(ngram, alphabet) for ngram in features["symbol"].values.tolist()]
        pairs = zip(symbols, features["label"].values, strict=True)
        return [[f"{readable(symbol)}{str(label).removeprefix(symbol)}"] for symbol, label in pairs]
    if kind not in ("ngram", "start"):
        return [[" ".join(map(readable, str(label).split(" ")))] for label in features["label"].values]
    found = []
    for ngram in features["symbol"].values.tolist():
        codes = [code for code in ngram if code >= 0]
        symbols = spelled_symbols(codes, alphabet)
        if codes == [len(alphabet)]:
            symbols = ["nothing"]  # the sequence is over before it begins
        elif are_letters(alphabet):
            symbols = ["".join(symbols)]
        found.append([readable(symbol) for symbol in symbols])
    return found


def _look(filled: bool) -> dict[str, Any]:
    if filled:
        return {"edgecolor": PURPLE, "facecolor": PURPLE}
    return {"edgecolor": GRAY, "facecolor": background(), "hatch": "////"}


def _fitting_labels(ax: Axes, labels: list[list[str]]) -> list[str]:
    """Labels that take no more room than half as much as the axes have now."""
    room = 0.5 * points(ax)[0] / max(map(len, labels))
    texts = abbreviations(chain(*labels), room, float(ax.yaxis.get_ticklabels()[0].get_fontsize()))
    return [" ".join(texts[symbol] or "…" for symbol in label) for label in labels]
