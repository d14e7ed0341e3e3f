# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: colors, axes, and how numbers and symbols are written."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.common.option_checks import check_instance, check_mapping, found, is_real
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.p_values import p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE = "#0072B2"
"""For the data."""

VERMILION = "#D55E00"
"""For the model; with the blue of the data from the Okabe-Ito palette, safe for color-blind readers."""

PURPLE = "#8E5BA6"
"""For evidence against the model."""

DIVERGING = "PRGn_r"
"""Green below 0, white at 0, purple above, which is against the model; safe for color-blind readers."""

MIN_ROWS = 3
"""Room for so many rows keeps a single one from being drawn too high."""

GRAY = "0.4"
"""For words of second rank, and for what is no evidence, on light backgrounds."""

LABEL = 50
"""Points that the label of a tick takes in letters of 10 points."""


def axes_for(
    ax: Any,
    count: int,
    default_size: tuple[float, float],
    figsize: Any,
    backend_kwargs: Mapping[str, Any] | None,
    *,
    columns: int = 1,
) -> npt.NDArray[np.object_]:
    """The given axes, or those of a new figure, row by row, as a flat array.

    :param ax: axes, an array of axes, or None for a new figure.
    :param count: how many axes are needed.
    :param default_size: width and height of a new figure in inches, unless ``figsize`` is given.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.
    :param columns: how many new axes stand one beside the other.
    """
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    keywords = figure_options(default_size, figsize, backend_kwargs)
    if ax is None:
        with refused_options(backend_kwargs):
            grid = plt.subplots(math.ceil(count / columns), columns, squeeze=False, **keywords)[1].ravel()
        for unused in grid[count:]:
            unused.remove()
        ax = grid[:count]
    axes: npt.NDArray[np.object_] = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    for one in axes:
        check_instance("ax", one, Axes, "axes of matplotlib, such as plt.subplots()[1]")
    if len(axes) != count:
        raise ValueError(
            f"expected ax to hold {count} axes, one for each view, found {len(axes)}; leave ax out to make them"
        )
    return axes


def new_figure(default_size: tuple[float, float], figsize: Any, backend_kwargs: Mapping[str, Any] | None) -> Figure:
    """A new figure without axes; arguments as for :func:`axes_for`."""
    import matplotlib.pyplot as plt

    keywords = figure_options(default_size, figsize, backend_kwargs)
    with refused_options(backend_kwargs):
        return plt.figure(**keywords)


def figure_options(
    default_size: tuple[float, float], figsize: Any, backend_kwargs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The options of a new figure.

    :param default_size: width and height in inches for letters of 10 points; larger ones make the figure higher.

    >>> figure_options((7, 3), "large", None)
    Traceback (most recent call last):
    ValueError: figsize: expected the width and the height in inches, such as (7, 3), found 'large'
    """
    options = {} if backend_kwargs is None else backend_kwargs
    check_mapping("backend_kwargs", options, "arguments of matplotlib.pyplot.subplots, by name")
    width, height = default_size
    size = (width, height * font_scale()) if figsize is None else figsize
    pair = isinstance(size, Sequence | np.ndarray) and len(size) == 2
    if not pair or not all(is_real(inches) and 0 < inches < np.inf for inches in size):
        raise ValueError(
            f"figsize: expected the width and the height in inches, such as (7, 3), found {found(figsize)}"
        )
    return {"layout": "constrained", "figsize": size, **options}


@contextmanager
def refused_options(backend_kwargs: Mapping[str, Any] | None) -> Iterator[None]:
    """Names the options that matplotlib does not take."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"backend_kwargs: expected arguments of matplotlib.pyplot.subplots, found {backend_kwargs}: {error}"
        ) from error


def font_scale() -> float:
    """How much larger than 10 points the largest labels are in the style that is in use, at least 1."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    sizes = (
        rcParams["font.size"],
        rcParams["axes.labelsize"],
        rcParams["xtick.labelsize"],
        rcParams["ytick.labelsize"],
    )
    return max(10.0, *(FontProperties(size=size).get_size_in_points() for size in sizes)) / 10


def foreground() -> str:
    """The color of words and lines in the style that is in use: dark on light backgrounds, light on dark ones."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def background() -> str:
    """The color behind what is drawn, in the style that is in use."""
    import matplotlib as mpl

    return str(mpl.rcParams["axes.facecolor"])


def is_dark() -> bool:
    """Whether the background is dark in the style that is in use."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(foreground())) > 1.5


def quiet() -> str:
    """The color of words of second rank, and of what is no evidence."""
    return "0.65" if is_dark() else GRAY


def faint() -> str:
    """The color of lines of second rank."""
    return "0.45" if is_dark() else "0.7"


def points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes as they are now, in points."""
    extent = ax.get_window_extent()
    return 72 * extent.width / ax.figure.dpi, 72 * extent.height / ax.figure.dpi


def write_beside(ax: Axes, texts: Iterable[str], **keywords: Any) -> None:
    """Writes one text to the right of each row 0, 1, ... of the axes.

    :param keywords: more arguments of ``ax.text``.
    """
    keywords = {"va": "center", "fontsize": "small", **keywords}
    for row, text in enumerate(texts):
        ax.text(1.015, row, text, transform=ax.get_yaxis_transform(), **keywords)


def legend_above(ax: Axes) -> None:
    """Puts the legend above the axes, in two columns if they are wide enough."""
    columns = 2 if points(ax)[0] > 300 else 1
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize="small", borderpad=0)


def view_title(ax: Axes, check: Any, name: str) -> None:
    """Titles the axes with the name of a view, its p-value and what it looks at."""
    one = dataset(check, "ksd").sel(view=name)
    meaning = textwrap.fill(str(one["meaning"].item()), max(20, int(points(ax)[0] / 6)))
    ax.set_title(f"{name}, {p_text(float(one['p_value']))}\n{meaning}", loc="left", fontsize="medium", wrap=True)
