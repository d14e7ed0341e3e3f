# SPDX-License-Identifier: Apache-2.0
"""The picture of a monitor."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from pictures import PURPLE, assert_nothing_overlaps
from synthetic import made_up_monitor

from pyro_ksd.plots import plot_evidence


def test_every_view_has_a_line_and_all_together_another() -> None:
    [ax] = plot_evidence(made_up_monitor())
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"content-2", "surprise", "length", "all together"} <= set(lines)
    assert lines["content-2"].get_xdata().tolist() == [0, 100, 250]
    assert lines["content-2"].get_ydata().tolist() == pytest.approx([0, 0.5 / math.log(10), 9 / math.log(10)])
    assert lines["all together"].get_ydata().tolist() == pytest.approx([0, 0.2 / math.log(10), 7.9 / math.log(10)])
    assert to_hex(lines["all together"].get_color()) == PURPLE
    assert_nothing_overlaps(ax.figure)


@pytest.mark.parametrize(("changes", "height", "word"), [(False, math.log10(20), "rejected"), (True, 4.0, "alarm")])
def test_the_needed_evidence_and_the_time_are_marked(changes: bool, height: float, word: str) -> None:
    [ax] = plot_evidence(made_up_monitor(changes=changes))
    dashed = next(line for line in ax.get_lines() if line.get_linestyle() == "--")
    assert dashed.get_ydata()[0] == pytest.approx(height)
    assert word in {text.get_text() for text in ax.texts}
    dotted = next(line for line in ax.get_lines() if line.get_linestyle() == ":")
    assert dotted.get_xdata()[0] == 180
    [quiet] = plot_evidence(made_up_monitor(clear=False, changes=changes))
    assert all(line.get_linestyle() != ":" for line in quiet.get_lines())


def test_draws_where_it_is_told() -> None:
    figure, own = plt.subplots()
    assert plot_evidence(made_up_monitor(), ax=own)[0] is own
    plt.close(figure)
