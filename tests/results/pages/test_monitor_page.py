# SPDX-License-Identifier: Apache-2.0
"""What the report says of a monitor, of made-up results."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from synthetic import made_up_monitor

from pyro_ksd import report
from pyro_ksd.results.pages.monitor_page import page_of_monitor


@pytest.mark.parametrize(
    ("clear", "changes", "headline"),
    [
        (True, False, "The model does not fit"),
        (False, False, "No evidence against the model"),
        (True, True, "The sequences have changed"),
        (False, True, "No change"),
    ],
)
def test_the_page_says_what_was_found(clear: bool, changes: bool, headline: str) -> None:
    page = page_of_monitor(made_up_monitor(clear=clear, changes=changes))
    assert (page.headline, page.rejected, page.changes, page.num_sequences) == (headline, clear, changes, 250)
    assert page.needed == pytest.approx(10_000 if changes else 20)
    assert ("first clear after 180 of 250" in page.sentence) == clear
    names = [name for name, _, _ in page.views]
    assert names == ["content-2", "surprise", "length"]
    assert [evidence for _, evidence, _ in page.views] == pytest.approx([own / math.log(10) for own in (9, -0.4, 0.2)])
    p_values = [p for _, _, p in page.views]
    assert all(map(math.isnan, p_values)) if changes else p_values == [1e-4, 0.9, 0.8]


def test_features_come_in_the_order_of_their_scores() -> None:
    page = page_of_monitor(made_up_monitor())
    assert page.features == [
        ("length", "length 3", "too frequent", 7.0),
        ("content-2", "aa", "too rare", -6.0),
        ("content-2", "ab", "too frequent", 5.0),
        ("surprise", "log-probability", "less probable", 2.0),
        ("content-2", "ba", "too frequent", 0.3),
    ]


def test_the_chart_is_drawn_to_scale() -> None:
    chart = page_of_monitor(made_up_monitor()).chart
    top, bottom = 1.05 * 9 / math.log(10), -0.4 / math.log(10)
    assert (chart.top, chart.bottom) == pytest.approx((top, bottom))
    points = [tuple(map(float, pair.split(","))) for pair in chart.overall.split(" ")]
    expected = [100 * (top - own / math.log(10)) / (top - bottom) for own in (0, 0.2, 7.9)]
    assert [x for x, _ in points] == [0, 40, 100]
    assert [y for _, y in points] == pytest.approx(expected, abs=0.01)
    assert chart.needed == pytest.approx(100 * (top - math.log10(20)) / (top - bottom), abs=0.01)
    assert chart.first_clear == 72
    assert len(chart.views) == 3
    assert page_of_monitor(made_up_monitor(clear=False)).chart.first_clear == -1


def test_infinite_evidence_can_be_drawn() -> None:
    result = made_up_monitor()
    result["ksd_monitor"]["log_evidence_overall"][1] = math.inf
    chart = page_of_monitor(result).chart
    assert math.isfinite(chart.top)
    assert "nan" not in chart.overall
    assert "inf" not in chart.overall


@pytest.mark.parametrize("clear", [True, False])
def test_a_monitor_has_a_report(tmp_path: Path, clear: bool) -> None:
    text = report(made_up_monitor(clear=clear), tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Does the model still fit?" in text
    assert "pyro_ksd.ksd_monitor(model, alphabet, level=0.05, seed=0)" in text
    assert "probability of at most 5 %" in text
    assert len(re.findall("<polyline", text)) == 4
    assert ("<strong>The model does not fit</strong>" in text) == clear
    assert ("dotted line" in text) == clear
    assert text.count("<tr data-view") == 5
    changes = report(made_up_monitor(clear=clear, changes=True), tmp_path / "changes.html").read_text(encoding="utf-8")
    assert "run_length=10000" in changes
    assert "at least 10,000 sequences on average until a false alarm" in changes
