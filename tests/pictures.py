# SPDX-License-Identifier: Apache-2.0
"""Reading pictures: what is written and drawn in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

BLUE, VERMILION, PURPLE, GRAY = "#0072b2", "#d55e00", "#8e5ba6", "#666666"


def as_axes(plot: Callable[..., Any]) -> Callable[..., Any]:
    """A function that plots, but always returns axes, also where ArviZ 1.x makes it return a ``PlotCollection``."""

    @wraps(plot)
    def returns_axes(*args: Any, **options: Any) -> Any:
        return axes_of(plot(*args, **options))

    return returns_axes


def axes_of(picture: Any) -> Any:
    """The axes of a picture that a function returned: itself, or those of a ``PlotCollection`` of ArviZ 1.x."""
    if not hasattr(picture, "viz"):
        return picture
    axes = picture.viz["plot"].values
    return axes.item() if axes.ndim == 0 else axes


def only_axes(picture: Any) -> Axes:
    """The axes of a picture with one panel."""
    (ax,) = np.ravel(axes_of(picture))
    assert isinstance(ax, Axes)
    return ax


def line(ax: Axes, label: str) -> Any:
    """The line with a label."""
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found


def words(picture: Any) -> list[str]:
    """The texts inside or beside the axes of a picture with one panel."""
    return [text.get_text() for text in only_axes(picture).texts]


def labels(picture: Any) -> list[str]:
    """The labels of the rows of a picture with one panel."""
    return [label.get_text() for label in only_axes(picture).get_yticklabels()]


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
