# SPDX-License-Identifier: Apache-2.0
"""Pictures of a page as numbers: the lengths, and a statistic beside its null draws. Templates draw them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.results.containers import dataset, has_group, num_sequences
from pyro_ksd.results.length_shares import MOST_BARS, length_bins
from pyro_ksd.results.pages.rendering import number

_BINS = 24
_CHANCE = (
    1.63  # the distance of two samples, in its own scale, that is exceeded once in 100 times (Kolmogorov, Smirnov)
)
_REACH = 3.0  # how far beyond the null draws, in their range, the statistic is still drawn to scale


@dataclass(frozen=True)
class LengthChart:
    """How long sequences are; all numbers in percent of the width or the height of the picture.

    :ivar bars: for each bin, its left edge, its width, the height for the data, that for the model, and its name.
    :ivar ticks: where lengths are written, and which.
    :ivar top: the largest share, in percent.
    :ivar observed_mean: of the lengths of the data.
    :ivar expected_mean: of those of the model.
    :ivar is_estimated: whether the model was not sampled.
    :ivar differences: which lengths differ most, sentence by sentence.
    """

    bars: list[tuple[float, float, float, float, str]]
    ticks: list[tuple[float, str]]
    top: float
    observed_mean: float
    expected_mean: float
    is_estimated: bool
    differences: list[str]


@dataclass(frozen=True)
class NullChart:
    """A statistic beside its null draws; all numbers in percent of the width or the height of the picture.

    :ivar view: whose statistic it is.
    :ivar bars: for each bin of the null draws, its left edge, its width and its height.
    :ivar place: of the statistic.
    :ivar multiple: the statistic by the largest null draw, if it is too far out to be drawn to scale, else 0.
    """

    view: str
    bars: list[tuple[float, float, float]]
    place: float
    multiple: float


def length_chart(check: Any) -> LengthChart | None:
    """The lengths of the data and of the model, if the check compared them."""
    if not has_group(check, "ksd_length"):
        return None
    lengths = dataset(check, "ksd_length", "observed", "expected")
    edges, observed, expected = length_bins(lengths, MOST_BARS)
    top = max(float(observed.max()), float(expected.max()))
    left, wide = edges[0], edges[-1] - edges[0]
    width = edges[1] - edges[0]
    names = [
        str(int(start + 0.5)) if width == 1 else f"{int(start + 0.5)} to {int(start + width - 0.5)}"
        for start in edges[:-1].tolist()
    ]
    bars = [
        (100 * (start - left) / wide, 100 * width / wide, 100 * data / top, 100 * model / top, name)
        for start, data, model, name in zip(
            edges[:-1].tolist(), observed.tolist(), expected.tolist(), names, strict=True
        )
    ]
    step = max(1, round(len(bars) / 8))
    ticks = [(start + size / 2, name.split(" ")[0]) for start, size, _, _, name in bars[::step]]
    length = lengths["length"].values
    return LengthChart(
        bars=bars,
        ticks=ticks,
        top=100 * top,
        observed_mean=float(lengths["observed"].values @ length),
        expected_mean=float(lengths["expected"].values @ length),
        is_estimated=not lengths.attrs.get("num_drawn", 0),
        differences=_length_differences(lengths, num_sequences(check, "ksd")),
    )


def _length_differences(lengths: xr.Dataset, size: int) -> list[str]:
    """Which short lengths, and which long ones, the model makes too often, if it is known from draws and not by chance.

    The lengths are those at which the cumulative distributions differ most.
    """
    num_drawn = int(lengths.attrs.get("num_drawn", 0))
    if not num_drawn:
        return []
    chance = _CHANCE * math.sqrt(1 / size + 1 / num_drawn)
    data, model = (np.cumsum(lengths[name].values) for name in ("observed", "expected"))
    label = lengths["length"].values
    found = []
    short = int(np.argmax(model - data))
    if model[short] - data[short] > chance:
        found.append(_difference(data[short], model[short], f"at most {label[short]} symbols"))
    long = int(np.argmax(data - model))
    if data[long] - model[long] > chance:
        found.append(_difference(1 - data[long], 1 - model[long], f"at least {label[long] + 1} symbols"))
    return found


def _difference(data: float, model: float, lengths: str) -> str:
    own = f"{number(100 * data, 2)} %" if round(data, 6) > 0 else "none"
    return f"{number(100 * model, 2)} % of the model's sequences have {lengths}, and {own} of the data."


def null_chart(check: Any, view: str) -> NullChart | None:
    """A statistic beside its null draws, if these vary."""
    statistic = float(dataset(check, "ksd")["statistic"].sel(view=view))
    draws = dataset(check, "ksd_null")["ksd"].sel(view=view).values.ravel()
    low, high = float(min(draws.min(), statistic)), float(draws.max())
    if not high > draws.min():
        return None
    is_far = statistic > high + _REACH * (high - low)
    last = high + 0.25 * (high - low) if is_far else max(high, statistic)
    counts, _ = np.histogram(draws, _BINS, (low, last))
    width = 100 / _BINS
    return NullChart(
        view=view,
        bars=[
            (index * width, width, 100 * count / counts.max()) for index, count in enumerate(counts.tolist()) if count
        ],
        place=100 * (min(statistic, last) - low) / (last - low),
        multiple=statistic / high if is_far and high > 0 else 0.0,
    )
