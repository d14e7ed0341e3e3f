# SPDX-License-Identifier: Apache-2.0
"""What the card and the report say of a comparison of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyro_ksd.results.comparison_table import compare_table
from pyro_ksd.results.containers import data_of, dataset


@dataclass(frozen=True)
class ModelRow:
    """A model in the order of all.

    :ivar model: its name.
    :ivar rank: from 1, for the best.
    :ivar ksd: the statistic of all views together.
    :ivar se: its standard error.
    :ivar d_ksd: the difference to the best.
    :ivar d_se: its standard error.
    :ivar z: their ratio, NaN for the best.
    :ivar p_value: of the difference, NaN for the best.
    :ivar finding: in words.
    :ivar low: the left end of the bar from one standard error below to one above, in percent of the picture.
    :ivar middle: the place of the statistic.
    :ivar high: the right end.
    """

    model: str
    rank: int
    ksd: float
    se: float
    d_ksd: float
    d_se: float
    z: float
    p_value: float
    finding: str
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class ComparisonPage:
    """What is said of a comparison.

    :ivar headline: the best model.
    :ivar sentence: the result in words.
    :ivar rows: the models, the best one first.
    :ivar view_ranks: for each view, its name, what it looks at, and the rank of each model in the order of ``rows``.
    :ivar num_sequences: of the data.
    """

    headline: str
    sentence: str
    rows: list[ModelRow]
    view_ranks: list[tuple[str, str, list[int]]]
    num_sequences: int


def page_of_comparison(comparison: Any) -> ComparisonPage:
    """What to say of a comparison."""
    table = compare_table(comparison)
    low = min(0.0, float((table["ksd"] - table["se"]).min()))
    wide = float((table["ksd"] + table["se"]).max()) - low or 1.0
    rows = []
    for name, own in table.iterrows():
        numbers = {column: float(own[column]) for column in ("ksd", "se", "d_ksd", "d_se", "z", "p_value")}
        places = {
            "low": numbers["ksd"] - numbers["se"],
            "middle": numbers["ksd"],
            "high": numbers["ksd"] + numbers["se"],
        }
        percent = {place: 100 * (value - low) / wide for place, value in places.items()}
        rows.append(ModelRow(str(name), int(own["rank"]), finding=str(own["finding"]), **numbers, **percent))
    ranks = dataset(comparison, "ksd_compare", name="comparison")
    names = [row.model for row in rows]
    view_ranks = [
        (
            str(view),
            str(ranks["meaning"].sel(view=view).item()),
            ranks["rank"].sel(view=view, model=names).values.tolist(),
        )
        for view in ranks["view"].values
    ]
    sentence = table.attrs["verdict"]
    as_good = [row.model for row in rows[1:] if row.finding.startswith(("may be", "cannot be"))]
    headline = f"{rows[0].model!r} comes closest to the data" if not as_good else "No model is clearly the best"
    total = data_of(comparison).sizes["sequence"]
    return ComparisonPage(headline, f"{sentence[0].upper()}{sentence[1:]}.", rows, view_ranks, total)
