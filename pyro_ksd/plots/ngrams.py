# SPDX-License-Identifier: Apache-2.0
"""The n-grams that are too frequent or too rare under the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.plots.drawing import draw, one_or_all, spelled_names
from pyro_ksd.plots.picture import Panel, Picture, RowBars, Rows, Rule
from pyro_ksd.plots.style import MIN_ROWS
from pyro_ksd.results.containers import alphabet_of, dataset
from pyro_ksd.results.findings import direction_words
from pyro_ksd.results.labels import are_letters, readable, spelled, spelled_symbols
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.verdicts import worst_view
from pyro_ksd.results.view_choice import chosen_views, feature_kind, num_features, speaking_views, views_with_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ngrams(
    check: Any,
    *,
    view: str | Sequence[str] | None = None,
    num: int = 10,
    ax: Axes | npt.NDArray[np.object_] | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
    plot_collection: Any = None,
    backend: str | None = None,
    labeller: Any = None,
    aes_by_visuals: Mapping[str, Sequence[str]] | None = None,
    visuals: Mapping[str, Mapping[str, Any] | bool] | None = None,
    **pc_kwargs: Any,
) -> Any:
    """Draws the n-grams (or other features) of a view that are most clearly wrong under the model.

    A bar is the z-score of an n-gram: to the right if it is too frequent under the model, to the left if too rare. The
    n-grams are those with the smallest p-values, which are corrected for the number of n-grams of the view; the longest
    bar comes first. A bar is filled if the p-value is at most the level, but only in a view that counts in
    :func:`~pyro_ksd.results.summary`: under a true model some n-gram or other of ten views often has a small p-value.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param view: the name of a view with features, or a list of several, each with a panel of its own. Left out, the
        worst one that has more than one, other than the length; see :func:`~pyro_ksd.plots.plot_lengths` for that.
    :param num: how many n-grams of a view to show.
    :param ax: axes of matplotlib to draw on, one for each view, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of the function that makes the figure, for matplotlib those of
        ``matplotlib.pyplot.subplots``.
    :param plot_collection: where ArviZ 1.x is installed, a ``PlotCollection`` to draw on.
    :param backend: where ArviZ 1.x is installed, ``"matplotlib"``, ``"plotly"`` or ``"bokeh"``; left out, the one that
        ``arviz.rcParams["plot.backend"]`` names.
    :param labeller: a labeller of ArviZ, which spells the names of views.
    :param aes_by_visuals: which aesthetics of the ``PlotCollection`` each mark follows; all of them if left out.
    :param visuals: how marks and texts look, such as ``{"bars": {"color": "black"}, "legend": False}``. Marks are
        ``"bars"`` and ``"zero"``, texts ``"title"``, ``"x_label"``, ``"y_label"``, ``"ticklabels"``, ``"notes"``
        and ``"legend"``.
    :param pc_kwargs: where ArviZ 1.x is installed, more arguments of ``PlotCollection.wrap``.
    :returns: a ``PlotCollection`` where ArviZ 1.x is installed, unless ``ax`` is given; else the axes, or an array
        of them if ``view`` is a list.

    >>> import matplotlib.pyplot as plt
    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> picture = plot_ngrams(check, view=["content-2", "content-3"])
    >>> ax = plot_ngrams(check, num=2, ax=plt.figure().add_subplot())
    >>> [label.get_text() for label in ax.get_yticklabels()]  # the walk always moves
    ['bb', 'aa']
    """
    check_number("num", num, least=1)
    worst = view_of_ngrams(check)
    if worst is None:
        raise ValueError(
            "expected a check with a view that has features such as n-grams, found none; use plot_sequences"
        )
    names = [worst] if view is None else chosen_views(check, view, views_with_features(check))
    spelled_views = spelled_names(labeller, "view", names)
    panels = {name: _panel(check, name, shown, num) for name, shown in zip(names, spelled_views, strict=True)}
    labels = [" ".join(label) for panel in panels.values() if panel.rows for label in panel.rows.labels]
    most = max(len(panel.rows.labels) for panel in panels.values() if panel.rows)
    size = (6.5 + 0.06 * max(map(len, labels)), len(names) * (1.6 + 0.32 * max(most, MIN_ROWS)))
    picture = Picture(panels, size, legend="none")
    single = view is None or isinstance(view, str)
    drawn = draw(
        picture,
        None if single else "view",
        ax=ax,
        figsize=figsize,
        backend_kwargs=backend_kwargs,
        plot_collection=plot_collection,
        backend=backend,
        visuals=visuals,
        aes_by_visuals=aes_by_visuals,
        pc_kwargs=pc_kwargs,
    )
    return one_or_all(drawn, single=single)


def _panel(check: Any, name: str, shown: str, num: int) -> Panel:
    """The bars of one view.

    :param shown: the name of the view as it is written.
    """
    one = dataset(check, "ksd").sel(view=name)
    features = _most_telling(check, name, num)
    z = features["z"].values
    p_values = features["p_value"].values
    level = one.attrs["level"]
    speaking = speaking_views(check)
    counts = name in speaking
    if counts:
        looks = f"filled: p ≤ {level:g}, hatched: p > {level:g}"
    else:
        looks = f"hatched: {'this view' if speaking else 'all views together'} found nothing"
    few, many = direction_words(feature_kind(one))
    reach = 1.08 * float(np.abs(z).max()) or 1.0
    return Panel(
        [
            RowBars("bars", {"color": "against"}, z, counts & (p_values <= level)),
            Rule("zero", {"color": "words", "width": 0.8}, "x", 0.0),
        ],
        title=[f"{shown}, {p_text(float(one['p_value']))}", str(one["meaning"].item())],
        x_label=[f"← too {few}    under the model    too {many} →", f"z-score ({looks})"],
        x_limits=(-reach, reach),
        y_limits=(max(len(z), MIN_ROWS) - 0.4, -0.6),
        rows=Rows(_symbols(check, name, features), list(map(p_text, p_values)), share=0.5, grid=False),
    )


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
