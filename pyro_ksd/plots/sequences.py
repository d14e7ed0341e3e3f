# SPDX-License-Identifier: Apache-2.0
"""The sequences that contribute most to the statistic, and where in them the misfit lies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.plots.style import DIVERGING, MIN_ROWS, axes_for, font_scale, points, view_title
from pyro_ksd.plots.text_fitting import fitting_texts, text_width
from pyro_ksd.results.containers import alphabet_of, dataset, has_all_data
from pyro_ksd.results.labels import readable
from pyro_ksd.results.verdicts import worst_view
from pyro_ksd.results.view_choice import known_view, view_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection

_GAP = 0.4  # the width of the last cell of a row; that of the others is 1
_MIN_COLUMNS = 8  # room for so many keeps a single cell from being drawn too wide
_BRIGHTNESS = (0.299, 0.587, 0.114)  # of red, green and blue
_PALE = 0.3  # the strongest color where nothing was found
_LABEL = 30  # points that the label of a tick takes in letters of 10 points
_FEW = 60  # positions that can be told apart by lines between them


def plot_sequences(
    check: Any,
    *,
    view: str | None = None,
    num: int = 10,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> Axes:
    """Draws the sequences with the largest contributions to a view's statistic, and which positions it comes from.

    A row is a sequence, named by its index in the data and its contribution: in percent of the statistic if the view
    rejects the model, as it is if not, since contributions then cancel. A cell is a position, with its symbol;
    the narrow last cell of a row is the gap at the end of the sequence. The cells add up to the contribution.

    Equal sequences have one row, named by the first of them and their number, such as ``×10``. Its cells and its
    contribution are those of each of them, not their sum. Of partitioned data only some sequences are kept, so that
    there may be more equal ones.

    Where the view found nothing, the colors are pale: some sequence always has the largest part.

    A sequence is always drawn whole. Symbols that are too wide for a cell are abbreviated, and long sequences are drawn
    without symbols.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param view: the name of a view. Left out, the worst one.
    :param num: how many different sequences to show, up to 1,000, or all with ``ksd_check(..., attribution=True)``.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> ax = plot_sequences(check, num=3)
    >>> [label.get_text() for label in ax.get_yticklabels()]  # which sequences, and their share of the statistic
    ['1  (24.2 %)', '0  (20.6 %)', '5  (20.6 %)']
    """
    from matplotlib.ticker import MaxNLocator

    check_number("num", num, least=1)
    names = view_names(check)
    observed = dataset(check, "ksd_data")
    name = worst_view(check, names) if view is None else known_view(view, names)
    ksd = dataset(check, "ksd", "contribution", "attribution").sel(view=name)
    places, counts = _distinct_rows(ksd, observed, num)
    attribution = ksd["attribution"].transpose("shown", "position").values[places]
    shown = ksd.sel(sequence=ksd["shown_sequence"].values[places])
    observed = observed.sel(sequence=shown["sequence"])
    alphabet = [readable(symbol) for symbol in alphabet_of(check)]
    symbols = [
        [alphabet[code] for code in codes[:length]]
        for codes, length in zip(observed["token"].values, observed["length"].values, strict=True)
    ]

    [ax] = axes_for(ax, 1, _figure_size(symbols), figsize, backend_kwargs)
    ax.set_xlim(-0.5, max(*map(len, symbols), _MIN_COLUMNS) - 0.4 + _GAP)
    ax.set_ylim(max(len(symbols), MIN_ROWS) - 0.5, -0.5)
    most = max(2, int(points(ax)[0] / (_LABEL * font_scale())))
    ticks = np.asarray(MaxNLocator(most, integer=True).tick_values(1, ax.get_xlim()[1]))
    ticks = ticks[(ticks >= 1) & (ticks <= ax.get_xlim()[1] + 1)].astype(int)
    ax.set_xticks(ticks - 1, [str(tick) for tick in ticks])
    ax.set_xlabel("position, counted from 1\n(narrow last cell: the gap at the end)")
    found = float(ksd["statistic"]) > 0 and float(ksd["p_value"]) <= ksd.attrs["level"]
    ax.set_yticks(range(len(symbols)), _row_labels(shown, found, counts, has_all_data(check)))
    words = f"index of the sequence, from 0\n({'share' if found else 'part'} of the statistic)"
    if max(counts) > 1:
        words += "\n×10: ten equal sequences"
    ax.set_ylabel(words, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    view_title(ax, check, name)
    cells = _draw_cells(ax, attribution, list(map(len, symbols)), strength=1.0 if found else _PALE)
    note = "purple: against the model" if found else "pale: nothing was found"
    bar = ax.figure.colorbar(cells, ax=ax)
    bar.set_label(f"part of the statistic\n({note})", fontsize="small")
    values = np.asarray(cells.get_array())
    if np.ptp(values) > 0:  # the colors are symmetric around 0, but not all of them occur
        bar.ax.set_ylim(min(0.0, float(values.min())), max(0.0, float(values.max())))
    _write_symbols(ax, cells, symbols)
    return ax


def _figure_size(symbols: list[list[str]]) -> tuple[float, float]:
    """A figure in which the symbols can be read, unless it would be too wide."""
    cell = max([18, *(6 + text_width(symbol, 9) for symbol in set(chain(*symbols)))])
    width = 3 + max(map(len, symbols)) * cell / 72
    return min(max(width, 7), 13), 1.8 + 0.3 * max(len(symbols), MIN_ROWS)


def _distinct_rows(ksd: xr.Dataset, observed: xr.Dataset, num: int) -> tuple[list[int], list[int]]:
    """The first places among the shown sequences that differ, and how many sequences of the data equal each of them.

    Sequences are equal if they have the same symbols and the same contribution.

    :param ksd: the group of a check, at one view.
    :param num: how many places at most.
    """
    rows = ksd["shown_sequence"].values
    tokens = observed["token"].sel(sequence=ksd["sequence"]).transpose("sequence", "position").values
    contributions = ksd["contribution"].values
    number = ksd.get_index("sequence").get_indexer(rows)
    places: list[int] = []
    counts: list[int] = []
    counted = np.zeros(len(tokens), dtype=bool)
    for place, row in enumerate(number):
        if len(places) == num:
            break
        if counted[row]:
            continue
        near = np.flatnonzero(np.isclose(contributions, contributions[row], rtol=1e-6, atol=0.0) & ~counted)
        equal = near[(tokens[near] == tokens[row]).all(1)]
        counted[equal] = True
        places.append(place)
        counts.append(len(equal))
    return places, counts


def _row_labels(shown: xr.Dataset, found: bool, counts: list[int], all_counted: bool) -> list[str]:
    """The index of each sequence, how many are equal to it, and the contribution of one of them."""
    statistic = float(shown["statistic"])
    contributions = shown["contribution"].values
    largest = abs(contributions).max() / abs(statistic) if found else 0.0
    places = max(0, -math.floor(math.log10(largest))) if largest else 0  # three digits of the largest share
    labels = []
    for index, part, count in zip(shown["sequence"].values, contributions, counts, strict=True):
        share = f"{100 * part / statistic:.{places}f} %" if found else f"{part:.2g}"
        share = share.replace("-", "−")
        if count > 1:
            more = "" if all_counted else " or more"
            labels.append(f"{index} ×{count}{more}  ({share} each)")
        else:
            labels.append(f"{index}  ({share})")
    return labels


def _draw_cells(ax: Axes, attribution: npt.NDArray[np.float64], lengths: list[int], strength: float) -> PolyCollection:
    """Draws one rectangle for each position and one for the gap at the end, row by row.

    :param strength: of the strongest color, between 0 and 1.
    """
    from matplotlib.collections import PolyCollection

    corners = []
    for row, length in enumerate(lengths):
        edges = [*np.arange(length + 1) - 0.5, length - 0.5 + _GAP]
        corners += [[(a, row - 0.4), (b, row - 0.4), (b, row + 0.4), (a, row + 0.4)] for a, b in pairwise(edges)]
    values = np.concatenate([parts[: length + 1] for parts, length in zip(attribution, lengths, strict=True)])
    lines = {"edgecolors": "0.75", "linewidths": 0.5} if max(lengths) <= _FEW else {"edgecolors": "face"}
    cells = PolyCollection(corners, cmap=DIVERGING, **lines)
    cells.set_array(values)
    reach = float(np.abs(values).max()) / strength or 1.0
    cells.set_clim(-reach, reach)
    ax.add_collection(cells)
    return cells


def _write_symbols(ax: Axes, cells: PolyCollection, symbols: list[list[str]]) -> None:
    """Writes the symbols into the cells, as far as they fit."""
    figure = ax.figure.canvas.figure
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # settles how large the cells are
    width, height = np.abs(ax.transData.transform((1, 0.8)) - ax.transData.transform((0, 0))) * 72 / figure.dpi
    texts, size = fitting_texts(chain(*symbols), width - 2, height)
    brightness = iter(cells.to_rgba(np.asarray(cells.get_array()))[:, :3] @ _BRIGHTNESS)
    for row, line in enumerate(symbols):
        for position, symbol in enumerate(line):
            color = "black" if next(brightness) > 0.5 else "white"
            if texts[symbol]:
                text = ax.text(position, row, texts[symbol], color=color, size=size, ha="center", va="center")
                text.set_parse_math(False)
                text.set_in_layout(False)  # it lies within the axes
        next(brightness)  # the gap at the end
