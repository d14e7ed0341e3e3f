# SPDX-License-Identifier: Apache-2.0
"""The picture of the p-values of all views."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from pictures import GRAY, PURPLE, as_axes, labels, line, words
from synthetic import MEANINGS, TEN_VIEWS, VIEWS, made_up_check

from pyro_ksd import plots

plot_views = as_axes(plots.plot_views)


def test_views_shows_every_p_value_with_its_level_and_resolution() -> None:
    ax = plot_views(made_up_check())
    assert labels(ax) == [*VIEWS, "all views together"]
    rejects, others = line(ax, "p ≤ 0.05 by itself"), line(ax, "p > 0.05")
    assert dict(zip(rejects.get_ydata(), rejects.get_xdata(), strict=True)) == {1: 0.002, 4: 0.008, 5: 0.004}
    assert dict(zip(others.get_ydata(), others.get_xdata(), strict=True)) == {0: 0.43, 2: 0.08, 3: 1.0}
    assert rejects.get_marker() != others.get_marker()
    assert (to_hex(rejects.get_color()), to_hex(others.get_color())) == (PURPLE, GRAY)
    assert set(line(ax, "level 0.05").get_xdata()) == {0.05}
    assert set(line(ax, "smallest possible p = 0.005").get_xdata()) == {1 / 201}
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the overall p-value comes last
    assert words(ax)[:6] == ["p = 0.430", "p = 0.002", "p = 0.080", "p = 1.000", "p = 0.008", "p = 0.004"]


def test_views_writes_the_meanings_if_there_is_room() -> None:
    assert words(plot_views(made_up_check()))[6:] == [MEANINGS[name] for name in VIEWS]
    assert words(plot_views(made_up_check(views=TEN_VIEWS)))[11:] == [MEANINGS[name] for name in TEN_VIEWS]
    assert len(words(plot_views(made_up_check(), figsize=(4, 4)))) == 6


def test_impossible_sequences_have_a_row_at_the_left_end() -> None:
    ax = plot_views(made_up_check(impossible=3, p_value_overall=0.3))
    assert [label.get_text() for label in ax.get_yticklabels()][-2:] == ["all views together", "impossible sequences"]
    [against] = [line for line in ax.get_lines() if line.get_label() == "p ≤ 0.05 by itself"]
    [silent] = [line for line in ax.get_lines() if line.get_label() == "p > 0.05"]
    rows = len(ax.get_yticks())
    assert (against.get_xdata()[-1], against.get_ydata()[-1]) == (pytest.approx(0.002 / 1.5), rows - 1)
    assert ax.get_xlim()[0] < 0.002 / 1.5
    assert (silent.get_xdata()[-1], silent.get_ydata()[-1]) == (0.3, rows - 2)
    assert "p = 0" in [text.get_text() for text in ax.texts]
