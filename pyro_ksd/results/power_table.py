# SPDX-License-Identifier: Apache-2.0
"""The table of a power study: how often a check sees a fault, by view and sample size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import exp, floor, log, log10
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyro_ksd.results.findings import listed

_GOAL = 0.8  # the power that studies are commonly planned for
_CONFIDENCE = 0.95
_LOOKS: dict[str, Any] = {"justify": "left", "index_names": False}


class PowerTable(pd.DataFrame):
    """The power of each view, and of all of them together, at each sample size.

    ``table["power"]`` has one row for each view and one column for each sample size; ``table["lower"]`` and
    ``table["upper"]`` are the ends of 95 % intervals. The answer in one sentence is ``table.attrs["verdict"]``.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return PowerTable

    def __repr__(self) -> str:
        shown = self._cells().to_string(**_LOOKS)
        return "\n".join([*map(str.rstrip, shown.splitlines()), "", self._caption()])

    def _repr_html_(self) -> str:
        return f"{self._cells().to_html(**_LOOKS)}\n<p>{escape(self._caption())}</p>"

    def _cells(self) -> pd.DataFrame:
        """One text for each view and sample size."""
        meaning = self.attrs["meaning"]
        width = max(map(len, meaning.values()))
        columns = {"looks at": [meaning[view].ljust(width) for view in self.index]}
        for n in self["power"].columns:
            each = zip(self["power"][n], self["lower"][n], self["upper"][n], strict=True)
            columns[f"n = {n:,}"] = [f"{power:.2f} ({lower:.2f}-{upper:.2f})" for power, lower, upper in each]
        return pd.DataFrame(columns, index=self.index)

    def _caption(self) -> str:
        sentence = self.attrs["verdict"]
        kinds: Mapping[int, str] = self.attrs["kinds"]
        words = [
            f"the {kind} bootstrap at n = {listed([f'{n:,}' for n in kinds if kinds[n] == kind])}"
            for kind in dict.fromkeys(kinds.values())
        ]
        return (
            f"{sentence[0].upper()}{sentence[1:]}. ({self.attrs['runs']} simulated checks at each n with "
            f"{listed(words)}, level {self.attrs['level']:g}; in brackets, 95 % intervals)"
        )


def tabulated(
    seen: Mapping[str, Sequence[int]],
    runs: int,
    meaning: Mapping[str, str],
    kinds: Mapping[int, str],
    level: float,
) -> PowerTable:
    """A table of shares with their intervals.

    :param seen: by view, and last by ``"overall"``, in how many of the runs the fault was seen at each sample size.
    :param runs: the number of simulated checks at each sample size.
    :param meaning: what each view looks at, in words.
    :param kinds: by sample size, ascending, where the null draws of most checks came from.
    :param level: of the checks.

    >>> table = tabulated({"overall": [31, 88]}, 100, {"overall": "all"}, {50: "parametric", 200: "wild"}, 0.05)
    >>> print(table)
            looks at n = 50           n = 200
    overall all      0.31 (0.23-0.41) 0.88 (0.80-0.93)
    <BLANKLINE>
    Visible in 80 % of the checks from about n = 160. (100 simulated checks at each n with the parametric bootstrap at
    n = 50 and the wild bootstrap at n = 200, level 0.05; in brackets, 95 % intervals)
    """
    counts = np.array(list(seen.values()))
    lower, upper = wilson_interval(counts, runs)
    sizes = list(kinds)
    parts = {"power": counts / runs, "lower": lower, "upper": upper}
    columns = pd.MultiIndex.from_product([list(parts), sizes], names=[None, "n"])
    table = PowerTable(np.hstack(list(parts.values())), index=pd.Index(list(seen), name="view"), columns=columns)
    sentence = visibility(sizes, (counts[-1] / runs).tolist())
    table.attrs |= {
        "verdict": sentence,
        "runs": runs,
        "level": level,
        "kinds": dict(kinds),
        "meaning": dict(meaning),
    }
    return table


def wilson_interval(successes: NDArray[Any], trials: int) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""The ends of 95 % intervals of probabilities, from how often something happened in independent trials.

    With :math:`\hat p = k / n` and the normal quantile :math:`z`,

    .. math:: \frac{\hat p + \frac{z^2}{2n} \pm z \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4n^2}}}
        {1 + \frac{z^2}{n}}

    (E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927).

    >>> lower, upper = wilson_interval(np.array([0, 10]), 10)
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([0.0, 0.72], [0.28, 1.0])
    """
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    share = successes / trials
    center = share + z**2 / (2 * trials)
    spread = z * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    scale = 1 + z**2 / trials
    return np.clip((center - spread) / scale, 0.0, 1.0), np.clip((center + spread) / scale, 0.0, 1.0)


def visibility(sizes: Sequence[int], power: Sequence[float]) -> str:
    """From which sample size on a fault is visible in 80 % of the checks, in words.

    Between two sample sizes the power is taken to be linear in the logarithm of the size.

    :param sizes: ascending.
    :param power: of all views together, at each of them.

    >>> visibility([50, 100, 400], [0.2, 0.6, 1.0])
    'visible in 80 % of the checks from about n = 200'
    >>> visibility([50], [0.31])
    'visible in 31 % of the checks at n = 50'
    """
    if len(sizes) == 1:
        return f"visible in {_percent(power[0])} of the checks at n = {sizes[0]:,}"
    enough = len(sizes)
    while enough and power[enough - 1] >= _GOAL:
        enough -= 1
    if enough == len(sizes):
        return f"visible in only {_percent(power[-1])} of the checks at n = {sizes[-1]:,}, the largest n of the study"
    if not enough:
        return f"visible in 80 % of the checks from n = {sizes[0]:,} on, or fewer"
    below, above = enough - 1, enough
    share = (_GOAL - power[below]) / (power[above] - power[below])
    crossing = exp(log(sizes[below]) + share * log(sizes[above] / sizes[below]))
    return f"visible in 80 % of the checks from about n = {_two_digits(crossing):,}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _two_digits(number: float) -> int:
    """The number with two digits that count."""
    return round(round(number, 1 - floor(log10(number))))
