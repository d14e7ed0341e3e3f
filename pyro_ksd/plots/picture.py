# SPDX-License-Identifier: Apache-2.0
"""What a picture shows, as plain data: matplotlib and the backends of ``arviz_plots`` draw the same description.

Looks are in the words of ``arviz_plots``: ``color``, ``facecolor``, ``width``, ``linestyle``, ``marker``, ``size`` (an
area in square points) and ``alpha``. A color is what it means, one of :data:`MEANINGS`, and each drawing knows which
color that is in the style that is in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

MEANINGS = ("data", "model", "against", "quiet", "words", "faint", "background")
"""What colors mean: the data, the model, evidence against it, none; words and lines, faint lines, what lies behind."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """How an axis is scaled.

    :param kind: ``"asinh"`` has the coordinate ``asinh(x / width)``.

    >>> Scale("log").forward(np.array([0.01, 1.0])).tolist()
    [-2.0, 0.0]
    """

    kind: Literal["linear", "log", "asinh"] = "linear"
    width: float = 1.0

    def forward(self, values: Any) -> Numbers:
        """The coordinates of values."""
        if self.kind == "log":
            return np.asarray(np.log10(values))
        return np.asarray(np.arcsinh(np.asarray(values) / self.width) if self.kind == "asinh" else values, dtype=float)

    def ticks(self, low: float, high: float, room: float) -> list[float]:
        """Powers of ten between two values; with an asinh scale, 0 and powers of both signs.

        :param room: the share of the axis that a label takes.

        >>> Scale("log").ticks(0.002, 1.0, room=0.1)
        [0.01, 0.1, 1.0]
        >>> Scale("asinh").ticks(-3.0, 2000.0, room=0.2)
        [0.0, 10.0, 100.0, 1000.0]
        """
        smallest = low if self.kind == "log" else self.width
        powers = 10.0 ** np.arange(np.ceil(np.log10(smallest)), np.floor(np.log10(max(high, -low))) + 1)
        if self.kind == "log":
            return [float(power) for power in powers]
        whole = float(self.forward(high) - self.forward(low))
        ticks = [0.0]
        for sign, end in ((1, high), (-1, -low)):
            last = 0.0
            for power in powers[powers <= end].tolist():
                place = float(self.forward(power)) / whole
                if place - last >= room:
                    ticks.append(sign * power)
                    last = place
        return ticks


@dataclass(frozen=True)
class Mark:
    """Something drawn in a panel.

    :param name: the name by which ``visuals`` changes it.
    :param look: color, marker and so on, by name.
    :param label: what the legend calls it; nothing if it is not in the legend.
    """

    name: str
    look: Mapping[str, Any]
    label: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Points(Mark):
    """Points, each with a horizontal interval of ``x ± half`` if ``half`` is given."""

    x: Numbers
    y: Numbers
    half: Numbers | None = None
    caps: bool = False


@dataclass(frozen=True)
class Line(Mark):
    """A line through points."""

    x: Numbers
    y: Numbers


@dataclass(frozen=True)
class Rule(Mark):
    """A line across the whole panel, at a value of the horizontal (``"x"``) or vertical axis (``"y"``)."""

    axis: Literal["x", "y"]
    at: float


@dataclass(frozen=True)
class Histogram(Mark):
    """Bars of some counts between edges, one more than counts."""

    edges: Numbers
    counts: Numbers


@dataclass(frozen=True)
class RowBars(Mark):
    """A horizontal bar from 0 in each row 0, 1, ..., filled or hatched."""

    values: Numbers
    filled: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """What is written beside the rows 0, 1, ... of a panel.

    :param labels: of each row, in parts that can be abbreviated one by one.
    :param notes: to the right of the rows.
    :param meanings: below the labels of the first rows, where there is room.
    :param share: of the width of the panel that labels may take; if None, they are written as they are.
    :param lines: in how many lines a label may be written, where rows are high enough.
    :param grid: whether faint lines lead from the labels to the marks.
    """

    labels: list[list[str]]
    notes: list[str]
    meanings: list[str] = field(default_factory=list)
    share: float | None = None
    lines: int = 1
    grid: bool = True


@dataclass(frozen=True)
class Panel:
    """One panel of a picture.

    :param marks: from back to front.
    :param title: in lines.
    :param x_label: in lines.
    :param y_label: in lines; upright beside the panel if the vertical axis has no numbers.
    :param rows: what is written beside named rows, if there are any; they run from top to bottom.
    :param y_numbers: whether the vertical axis has numbers.
    :param square: whether both axes are equally long.
    """

    marks: list[Mark]
    title: list[str] = field(default_factory=list)
    x_label: list[str] = field(default_factory=list)
    y_label: list[str] = field(default_factory=list)
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    x_scale: Scale = Scale()
    rows: Rows | None = None
    y_numbers: bool = False
    square: bool = False


@dataclass(frozen=True)
class Picture:
    """Panels with their names.

    :param panels: by the name of what each of them shows.
    :param size: width and height in inches, for letters of 10 points.
    :param columns: how many panels stand one beside the other.
    :param legend: where the legend of the first panel stands, if there is one.
    """

    panels: Mapping[str, Panel]
    size: tuple[float, float]
    columns: int = 1
    legend: Literal["above", "inside", "none"] = "above"

    def mark_names(self) -> list[str]:
        """The names of the marks, each once."""
        return list(dict.fromkeys(mark.name for panel in self.panels.values() for mark in panel.marks))
