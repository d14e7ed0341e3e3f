# SPDX-License-Identifier: Apache-2.0
"""The features that a view names, each with how often it is in the data and in the model's sequences, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from pyro_ksd.results.containers import alphabet_of, data_of, dataset
from pyro_ksd.results.detail_tables import ngram_table, texts
from pyro_ksd.results.findings import features_of
from pyro_ksd.results.labels import readable, readable_label
from pyro_ksd.results.pages.rendering import number
from pyro_ksd.results.view_choice import feature_kind

_SHARES = ("start", "end")
"""Kinds of features that a sequence has or not."""


@dataclass(frozen=True)
class FeatureRow:
    """A feature that stands out.

    :ivar label: what it is called.
    :ivar finding: such as ``"too rare"``.
    :ivar amount: by how much, in words; empty if that is not known.
    :ivar weight: by how much every occurrence must be weighted, in words; empty if that is not known.
    :ivar observed: how often it is in the data, in words.
    :ivar expected: how often it is in sequences of the model, in words.
    :ivar observed_width: the width of its bar, in percent of the widest bar.
    :ivar expected_width: the same.
    """

    label: str
    finding: str
    amount: str
    weight: str
    observed: str
    expected: str
    observed_width: float
    expected_width: float

    @property
    def has_bars(self) -> bool:
        """Whether it is known how often it occurs in both."""
        return bool(self.observed and self.expected)


def named_features(check: Any, view: str, most: int) -> list[FeatureRow]:
    """The features that a view names, those first that stand out most.

    :param view: with features.
    :param most: how many to show.
    """
    table = ngram_table(check, view=view)
    table = table[table["finding"] != ""].head(most)
    kind = feature_kind(dataset(check, "ksd").sel(view=view))
    largest = float(np.nanmax(table[["observed", "expected"]].to_numpy(dtype=float), initial=0.0)) or 1.0
    symbols = alphabet_of(check)
    return [_row(own, kind, symbols, largest) for _, own in table.iterrows()]


def with_interval(value: float, low: float, high: float, noun: str = "") -> str:
    """A number with its interval.

    :param noun: what it is a number of.

    >>> with_interval(3.04, 1.27, 4.96, " times"), with_interval(0.25, 0.2, 0.5)
    ('3 times (1.3 to 5)', '0.25 (0.2 to 0.5)')
    """
    return f"{number(value, 2)}{noun} ({number(low, 2)} to {number(high, 2)})"


def examples(check: Any, view: str, most: int) -> tuple[int, list[str]]:
    """In how many sequences the first feature of a view stands, and some of them; none for features without symbols."""
    one = dataset(check, "ksd").sel(view=view)
    kind = feature_kind(one)
    named = ngram_table(check, view=view)
    named = named[named["finding"] != ""]
    if kind not in ("ngram", "start", "end") or named.empty:
        return 0, []
    features = features_of(check, one)
    [codes] = features["symbol"].values[features["label"].values == named["label"].iloc[0]][:1]
    data = data_of(check)
    end = len(alphabet_of(check))  # the code of the place after the end
    ngram = [-1 if code == end else int(code) for code in codes if code >= 0]
    rows = np.flatnonzero(_has(data, ngram, kind))
    own = texts(check, data.isel(sequence=rows))
    return len(rows), [readable(text) for text in dict.fromkeys(own.tolist())][:most]


def _has(data: xr.Dataset, ngram: list[int], kind: str) -> NDArray[np.bool_]:
    """Which sequences have an n-gram, anywhere or at their start or end; ``[sequence]``.

    :param ngram: its codes, -1 for the place after the end of the sequence.
    """
    tokens = data["token"].values
    padded = np.pad(tokens, ((0, 0), (0, len(ngram))), constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(ngram), axis=1)
    matches = (windows == np.array(ngram)).all(-1)
    if kind == "end":
        place = data["length"].values - len(ngram)
        at_end: NDArray[np.bool_] = (place >= 0) & matches[np.arange(len(tokens)), np.maximum(place, 0)]
        return at_end
    found: NDArray[np.bool_] = matches[:, 0] if kind == "start" else matches.any(1)
    return found


def _row(own: pd.Series[Any], kind: str, symbols: list[str], largest: float) -> FeatureRow:
    observed, expected, ratio = (_interval(own, name) for name in ("observed", "expected", "ratio"))
    factor = _interval(own, "factor")
    has_counts = not (math.isnan(observed[0]) or math.isnan(expected[0]))
    unit = max(observed[0], expected[0]) if has_counts else math.nan
    return FeatureRow(
        label=readable_label(str(own["label"]), kind, symbols),
        finding=str(own["finding"]),
        amount=_amount(*ratio, str(own["finding"])),
        weight="" if math.isnan(factor[0]) else with_interval(*factor),
        observed=_frequency(observed[0], kind, unit),
        expected=_frequency(expected[0], kind, unit),
        observed_width=100 * observed[0] / largest if has_counts else 0.0,
        expected_width=100 * expected[0] / largest if has_counts else 0.0,
    )


def _interval(own: pd.Series[Any], name: str) -> tuple[float, float, float]:
    return float(own[name]), float(own[f"{name}_low"]), float(own[f"{name}_high"])


def _amount(ratio: float, low: float, high: float, finding: str) -> str:
    """The data by the model, in words; nothing if that is not known."""
    if math.isnan(ratio):
        return ""
    if low <= 1 <= high:
        size = "little" if finding == "too rare" else "much"
        return f"about as often in both, but given the rest of the sequence the model gives it too {size} probability"
    if math.isinf(ratio):
        return f"none in the draws from the model; in the data at least {number(low, 2)} times as often"
    if ratio > 1:
        return f"{with_interval(ratio, low, high, ' times')} as often in the data as in the model"
    if ratio == 0:
        return f"none in the data; in the model at least {number(1 / high, 2)} times as often"
    return f"{with_interval(1 / ratio, 1 / high, 1 / low, ' times')} as often in the model as in the data"


def _frequency(mean: float, kind: str, unit: float) -> str:
    """How often a feature occurs.

    :param mean: the mean number in a sequence.
    :param unit: the larger one of the two numbers that are compared, which have the same unit.
    """
    if math.isnan(mean) or math.isnan(unit):
        return ""
    if kind in _SHARES:
        return f"{number(100 * mean)} % of sequences"
    return f"{number(100 * mean)} in 100 sequences" if unit < 1 else f"{number(mean)} in a sequence"
