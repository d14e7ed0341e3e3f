# SPDX-License-Identifier: Apache-2.0
"""What a page says of a comparison."""

from __future__ import annotations

import math

import pytest
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd import compare_table
from pyro_ksd.results.pages.comparison_page import page_of_comparison


@pytest.mark.parametrize("impossible", [0, 2])
@pytest.mark.parametrize("error", [0.05, 5.0])
def test_the_page_says_what_the_table_says(error: float, impossible: int) -> None:
    comparison = made_up_comparison(THREE, error=error, impossible=impossible)
    table = compare_table(comparison)
    page = page_of_comparison(comparison)
    assert [row.model for row in page.rows] == table.index.tolist()
    for row in page.rows:
        own = table.loc[row.model]
        for name in ("rank", "ksd", "se", "d_ksd", "d_se", "z", "p_value", "finding"):
            value = getattr(row, name)
            assert value == own[name] or (math.isnan(value) and math.isnan(own[name]))
        assert 0 <= row.low <= row.middle <= row.high <= 100 + 1e-9
        assert row.high - row.middle == pytest.approx(row.middle - row.low)
    assert page.sentence[1:] == f"{table.attrs['verdict'][1:]}."
    assert page.headline == ("No model is clearly the best" if error == 5 else "'order 2' comes closest to the data")
    ranks = comparison["ksd_compare"]["rank"]
    for view, meaning, own in page.view_ranks:
        assert own == ranks.sel(view=view, model=table.index.tolist()).values.tolist()
        assert meaning == comparison["ksd_compare"]["meaning"].sel(view=view).item()
    assert page.num_sequences == 30 + impossible


def test_bars_have_one_scale() -> None:
    rows = {row.model: row for row in page_of_comparison(made_up_comparison({"a": 1.0, "b": 3.0}, error=1.0)).rows}
    assert (rows["a"].low, rows["a"].middle, rows["a"].high) == pytest.approx((0, 25, 50))
    assert (rows["b"].low, rows["b"].high) == pytest.approx((50, 100))
