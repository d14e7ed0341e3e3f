# SPDX-License-Identifier: Apache-2.0
"""The picture of a monitor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from pictures import PURPLE, assert_nothing_overlaps
from synthetic import made_up_monitor

from pyro_ksd.plots import plot_evidence
from pyro_ksd.plots.evidence import _spread
from pyro_ksd.plots.style import GRAY


def test_every_view_has_a_line_and_all_together_another() -> None:
    [ax] = plot_evidence(made_up_monitor())
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"content-2", "surprise", "length", "all together"} <= set(lines)
    assert lines["content-2"].get_xdata().tolist() == [0, 100, 250]
    assert lines["content-2"].get_ydata().tolist() == pytest.approx([0, 0.5 / math.log(10), 9 / math.log(10)])
    assert lines["all together"].get_ydata().tolist() == pytest.approx([0, 0.2 / math.log(10), 7.9 / math.log(10)])
    assert to_hex(lines["all together"].get_color()) == PURPLE
    assert to_hex(lines["content-2"].get_color()) == PURPLE  # 9 natural units are more than 20-fold
    assert lines["surprise"].get_color() == lines["length"].get_color() == GRAY
    names = {text.get_text(): text for text in ax.texts}
    assert all(names[name].get_color() == line.get_color() for name, line in lines.items() if name in names)
    assert_nothing_overlaps(ax.figure)


@pytest.mark.parametrize(("changes", "height", "word"), [(False, math.log10(20), "rejected"), (True, 4.0, "alarm")])
def test_the_needed_evidence_and_the_time_are_marked(changes: bool, height: float, word: str) -> None:
    [ax] = plot_evidence(made_up_monitor(changes=changes))
    dashed = next(line for line in ax.get_lines() if line.get_linestyle() == "--")
    assert dashed.get_ydata()[0] == pytest.approx(height)
    assert word in {text.get_text() for text in ax.texts}
    assert ax.get_ylim()[1] > height + 0.08 * np.ptp(ax.get_ylim())  # room for the word
    dotted = next(line for line in ax.get_lines() if line.get_linestyle() == ":")
    assert dotted.get_xdata()[0] == 180
    [quiet] = plot_evidence(made_up_monitor(clear=False, changes=changes))
    assert all(line.get_linestyle() != ":" for line in quiet.get_lines())


def test_names_stand_at_the_ends_of_their_lines() -> None:
    [ax] = plot_evidence(made_up_monitor())
    names = {text.get_text(): text for text in ax.texts}
    heights = [names[name].get_position()[1] for name in ("surprise", "length", "all together", "content-2")]
    assert heights == sorted(heights)
    bottom, top = ax.get_ylim()
    assert heights[3] == pytest.approx((9 / math.log(10) - bottom) / (top - bottom), abs=0.05)


@pytest.mark.parametrize("places", [[0.2], [0.1, 0.5, 0.9], [0.0, 0.0, 0.0], [0.1, 0.12, 0.3, 0.31, 0.32], [0.5] * 6])
def test_spread_places_are_apart_and_moved_little(places: list[float]) -> None:
    found = _spread(np.array(places), 0.1)
    assert (np.diff(found) >= 0.1 - 1e-12).all()
    assert found.mean() == pytest.approx(np.mean(places))
    # The least squares solution, by brute force over which neighbors touch.
    best = min((np.square(one - places).sum() for one in _candidates(places, 0.1)), default=0.0)
    assert np.square(found - places).sum() == pytest.approx(best)


def _candidates(places: list[float], least: float) -> Iterator[np.ndarray]:
    for touching in product([False, True], repeat=len(places) - 1):
        groups = np.cumsum([0, *(not touch for touch in touching)])
        found = np.zeros(len(places))
        for group in range(groups[-1] + 1):
            own = np.flatnonzero(groups == group)
            found[own] = np.mean(np.array(places)[own]) + least * (np.arange(len(own)) - (len(own) - 1) / 2)
        if (np.diff(found) >= least - 1e-12).all():
            yield found


def test_draws_where_it_is_told() -> None:
    figure, own = plt.subplots()
    assert plot_evidence(made_up_monitor(), ax=own)[0] is own
    plt.close(figure)
