# SPDX-License-Identifier: Apache-2.0
"""Reading pictures: what is written and drawn in them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

BLUE, VERMILION, PURPLE, GRAY = "#0072b2", "#d55e00", "#8e5ba6", "#666666"


def line(ax: Axes, label: str) -> Any:
    """The line with a label."""
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found


def words(ax: Axes) -> list[str]:
    """The texts inside or beside the axes."""
    return [text.get_text() for text in ax.texts]


def labels(ax: Axes) -> list[str]:
    """The labels of the rows."""
    return [label.get_text() for label in ax.get_yticklabels()]


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
